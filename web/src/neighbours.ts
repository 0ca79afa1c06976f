/** Producers and consumers of a call: tensors known again by equal figures, as dumps hold no edges. */

import { type Figures } from "./figures.ts";
import { type Model } from "./model.ts";

const MOST = 12;
/** Values of a call that are looked for: each takes a walk through all rows. */
const MOST_VALUES = 32;

/** ``by``: the row of the selected call that has the same figures. */
export interface Neighbour { call: number; row: number; by: number }

const isOutput = (model: Model, row: number) => model.slotOf(row).startsWith("output");
const isInput = (model: Model, row: number) => model.slotOf(row).startsWith("input");

/** Calls before this one that gave out what it takes in, the nearest first. */
export function producers(model: Model, figures: Figures, call: number): Neighbour[] {
  return linked(model, figures, call, isInput, (row) => isOutput(model, row) && row < model.firstRow[call]);
}

/** Calls that take in what this one gives out, the nearest first. */
export function consumers(model: Model, figures: Figures, call: number): Neighbour[] {
  return linked(model, figures, call, isOutput, (row) => isInput(model, row) && row >= model.endRow(call));
}

function linked(model: Model, figures: Figures, call: number, own: typeof isInput, other: (row: number) => boolean): Neighbour[] {
  const found = new Map<number, Neighbour>();
  let looked = 0;
  for (let row = model.firstRow[call]; row < model.endRow(call) && found.size < MOST && looked < MOST_VALUES; row++) {
    if (!own(model, row)) continue;
    looked++;
    for (const equal of figures.equals("target", row)) {
      const neighbour = model.rowCall[equal];
      // What encloses a call hands on the same tensor, and so does what it encloses: neither is beside it.
      if (!other(equal) || model.isAncestor(neighbour, call) || model.isAncestor(call, neighbour)) continue;
      if (!found.has(neighbour)) found.set(neighbour, { call: neighbour, row: equal, by: row });
    }
  }
  return [...found.values()].sort((a, b) => Math.abs(a.call - call) - Math.abs(b.call - call)).slice(0, MOST);
}
