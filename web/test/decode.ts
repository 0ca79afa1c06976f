/** Decode the columns of a page as its script does, for tests in Python: a JSON text in, a JSON text out. */

import { readFileSync } from "node:fs";
import { Columns, type Column } from "../src/data.ts";

interface Request {
  columns: Record<string, Column>;
  chunks: Record<string, string>;
}

const requests = JSON.parse(readFileSync(0, "utf8")) as Request[];
const answers = await Promise.all(requests.map(async ({ columns, chunks }) => {
  const texts = new Map(Object.entries(chunks));
  const decoder = new Columns(columns, (id) => texts.get(id) ?? "");
  const decoded = Object.entries(columns).map(async ([name, { type }]) => {
    if (type === "json") return [name, await decoder.json(name)];
    const numbers = await decoder.numbers(name);
    return [name, Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString("base64")];
  });
  return Object.fromEntries(await Promise.all(decoded)) as unknown;
}));
process.stdout.write(JSON.stringify(answers));
