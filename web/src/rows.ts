/** Rows of the table: which are left, in which order, and as text to copy. */

import { type Figures, SIDES, STATISTICS } from "./figures.ts";
import { CallFlag, type Model, WORDS } from "./model.ts";
import type { Facets, Sort } from "./page.ts";
import { figure, printable } from "./text.ts";

/** Rows that pass the filter and all menus, in execution order. */
export function narrowed(model: Model, passes: Uint8Array | null, facets: Facets, figures: Figures | null): Uint32Array {
  const rows = new Uint32Array(model.rows);
  const slotIs = model.slots.map((slot) => slot.startsWith(facets.kind));
  const types = facets.type ? figures?.types("target") : null;
  const typeIs = types?.texts.map((type) => dtypeOf(type) === facets.type);
  let count = 0;
  for (let call = 0; call < model.calls; call++) {
    if (facets.phase && model.phase(call) !== facets.phase) continue;
    const module = (model.callFlags[call] & CallFlag.MODULE) !== 0;
    if ((facets.kind === "module" && !module) || (facets.kind === "api" && module)) continue;
    const bySlot = facets.kind === "input" || facets.kind === "output" || facets.kind === "parameter";
    for (let row = model.firstRow[call], to = model.endRow(call); row < to; row++) {
      if (passes && !passes[row]) continue;
      if (facets.outcome && model.outcome[row] !== Number(facets.outcome)) continue;
      if (bySlot && !slotIs[model.slot[row]]) continue;
      if (facets.kind === "nonfinite" && !model.nonFinite(row)) continue;
      if (typeIs && !(figures!.place(row) >= 0 && typeIs[types!.codes[figures!.place(row)]])) continue;
      rows[count++] = row;
    }
  }
  return rows.subarray(0, count);
}

export function sorted(model: Model, rows: Uint32Array, sort: Sort): Uint32Array {
  if (sort === "order") return rows;
  if (sort === "name") {
    const calls = places(model.names), slots = places(model.slots);
    const place = (row: number) => calls[model.rowCall[row]] * slots.length + slots[model.slot[row] || model.goldenSlot[row]];
    return rows.slice().sort((a, b) => place(a) - place(b) || a - b);
  }
  const values = sort === "ratio" ? model.ratio : model.deviation;
  // What was not compared comes last, equal values in execution order.
  const key = new Float32Array(model.rows);
  for (const row of rows) key[row] = Number.isNaN(values[row]) ? -1 : values[row];
  return rows.slice().sort((a, b) => (key[a] === key[b] ? a - b : key[a] > key[b] ? -1 : 1));
}

/** Where each text stands among all in alphabetical order. */
function places(texts: string[]): Uint32Array {
  const place = new Uint32Array(texts.length);
  texts.map((_, number) => number).sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : a - b))
    .forEach((number, at) => (place[number] = at));
  return place;
}

export function dtypeOf(type: string): string {
  return type.split(" ", 1)[0];
}

export const HEADERS = ["Result", "Error Ratio", "Deviation", "Tolerance", "Name", "Golden Name", "Type", "Golden Type",
  "Max", "Golden Max", "Min", "Golden Min", "Mean", "Golden Mean", "Norm", "Golden Norm", "Reason"];

export interface Reasons { codes: ArrayLike<number>; texts: string[] }

/** What the explanations that were asked of a row allowed; "" where the page does not know. */
export async function askedOf(model: Model, row: number): Promise<string> {
  const all = model.columns.has("asked") ? await model.columns.json<{ row: number; text: string }>("asked") : [];
  return all.find((each) => each.row === row)?.text ?? "";
}

export async function loadReasons(model: Model): Promise<Reasons> {
  if (!model.columns.has("row_reason")) return { codes: [], texts: [] };
  return { codes: await model.columns.numbers("row_reason"), texts: await model.columns.dictionary("row_reason") };
}

/** A row as text between tabs; what a spreadsheet would take for a formula begins with an apostrophe. */
export function tabbed(model: Model, figures: Figures, reasons: Reasons, row: number): string {
  const call = model.rowCall[row];
  const golden = model.golden(call);
  const numbers = STATISTICS.flatMap((name) => SIDES.map((side) => figure(figures.value(`${side}_${name}`, row))));
  const deviation = model.deviationOf(row);
  return [
    WORDS[model.outcome[row]], deviation === null ? "" : String(model.ratio[row]), figure(deviation), model.tolerance(row)?.toString() ?? "",
    model.rowName(row), golden && `${golden}.${model.slots[model.goldenSlot[row]] || model.slotOf(row)}`, figures.type("target", row),
    figures.type("golden", row), ...numbers, reasons.texts[reasons.codes[row]] ?? "",
  ].map((text) => printable(text).replace(/^(?=[=+@\t]|-(?![\d.i]))/, "'")).join("\t");
}
