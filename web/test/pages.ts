/** Columns and models made in the test, encoded as docs/report_page_design.md says. */

import { gzipSync } from "node:zlib";
import { Columns, type Column, type Index, NO_NUMBER, type Numbers } from "../src/data.ts";
import { loadModel, type Model } from "../src/model.ts";

export class Made {
  readonly columns: Record<string, Column> = {};
  private readonly texts = new Map<string, string>();

  add(name: string, numbers: Numbers, { transform = "", dictionary }: { transform?: string; dictionary?: string } = {}): void {
    const type = ({ Uint8Array: "u8", Uint16Array: "u16", Uint32Array: "u32", Float32Array: "f32" } as const)[numbers.constructor.name as "Uint8Array"];
    this.columns[name] = { type, length: numbers.length, chunks: [], transform, ...(dictionary ? { dictionary } : {}) };
    for (let start = 0; start < numbers.length; start += 65_536) {
      const part = numbers.slice(start, start + 65_536);
      if (transform === "delta") for (let i = part.length - 1; i > 0; i--) part[i] -= part[i - 1];
      const bytes = new Uint8Array(part.buffer), size = part.BYTES_PER_ELEMENT;
      const shuffled = new Uint8Array(bytes.length);
      for (let i = 0; i < bytes.length; i++) shuffled[(i % size) * part.length + Math.floor(i / size)] = bytes[i];
      this.keep(name, shuffled);
    }
  }

  json(name: string, values: unknown[]): void {
    this.columns[name] = { type: "json", length: values.length, chunks: [] };
    this.keep(name, new TextEncoder().encode(JSON.stringify(values)));
  }

  decoder(): Columns {
    return new Columns(this.columns, (id) => this.texts.get(id) ?? "");
  }

  private keep(name: string, bytes: Uint8Array): void {
    const id = `k${this.texts.size}`;
    this.texts.set(id, gzipSync(bytes).toString("base64"));
    this.columns[name].chunks.push(id);
  }
}

export interface Value {
  slot: string;
  flags?: number;
  deviation?: number | null;
  tolerance?: number | null;
  inherited?: number;
  result?: string;
}

export interface Entry {
  name: string;
  golden?: string | 0 | null;
  flags?: number;
  parent?: number;
  values?: Value[];
}

const BOTH = 3;

export async function modelOf(entries: Entry[], index: Partial<Index> = {}): Promise<Model> {
  const made = new Made();
  const values = entries.flatMap((entry) => entry.values ?? [{ slot: "output.0" }]);
  const coded = (name: string, dictionary: string, list: unknown[], kind: new (list: number[]) => Numbers) => {
    const known = [...new Set(list)];
    made.add(name, new kind(list.map((each) => known.indexOf(each))), { dictionary });
    made.json(dictionary, known);
  };
  made.json("call_names", entries.map((entry) => entry.name));
  made.json("call_goldens", entries.map((entry) => (entry.golden === undefined ? 0 : entry.golden)));
  made.add("call_flags", new Uint8Array(entries.map((entry) => entry.flags ?? BOTH)));
  made.add("call_parent", new Uint32Array(entries.map((entry) => entry.parent ?? 0)), { transform: "delta" });
  const starts: number[] = [];
  let rows = 0;
  for (const entry of entries) {
    starts.push(rows);
    rows += entry.values?.length ?? 1;
  }
  made.add("call_rows", new Uint32Array(starts), { transform: "delta" });
  coded("call_how", "hows", entries.map(() => "name"), Uint8Array);
  made.add("call_taken", new Float32Array(entries.length));
  made.add("call_given", new Float32Array(entries.length));
  coded("row_slot", "slots", values.map((value) => value.slot), Uint16Array);
  made.add("row_golden_slot", new Uint16Array(values.length), { dictionary: "slots" });
  made.add("row_flags", new Uint8Array(values.map((value) => value.flags ?? BOTH)));
  const deviations = new Float32Array(values.map((value) => value.deviation ?? 0));
  const bits = new Uint32Array(deviations.buffer);
  values.forEach((value, row) => value.deviation === null && (bits[row] = NO_NUMBER));
  made.add("row_deviation", deviations);
  coded("row_tolerance", "tolerances", values.map((value) => (value.tolerance === undefined ? 1e-5 : value.tolerance)), Uint16Array);
  made.add("row_explained", new Uint8Array(values.length));
  made.add("row_inherited", new Uint32Array(values.map((value) => value.inherited ?? 0)), { transform: "delta" });
  coded("row_result", "results", values.map((value) => value.result ?? "agrees"), Uint8Array);
  const full: Index = {
    format: 1, kind: "comparison", mode: "statistics", columns: made.columns, origins: [], tolerated: [""], truncated: null, ...index,
  };
  return loadModel(full, made.decoder());
}
