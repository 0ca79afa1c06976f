/** Rows by columns of pixels: from the least to the largest of each, so that no maximum is lost however many rows there are. */

import { type Model, Outcome, type Phase } from "./model.ts";

/** Two bands a column: what agrees or is explained, and what differs. */
export const QUIET = 0;
export const LOUD = 1;

export interface Bins {
  /** Decimal logarithms, by column; low > high where a band is empty. */
  low: [Float32Array, Float32Array];
  high: [Float32Array, Float32Array];
  /** The most severe outcome of a column. */
  outcome: Uint8Array;
  /** The row with the largest value of the most severe outcome; -1 where the column is empty. */
  worst: Int32Array;
  /** 1 where something is not finite, or infinitely far apart. */
  beyond: Uint8Array;
  /** 1 where something is without a twin. */
  alone: Uint8Array;
  /** Of all finite values that are not 0. */
  least: number; most: number;
}

export function bin(model: Model, values: Float32Array, from: number, to: number, width: number): Bins {
  const make = () => [new Float32Array(width).fill(Infinity), new Float32Array(width).fill(Infinity)] as [Float32Array, Float32Array];
  const low = make(), high = make();
  for (const band of high) band.fill(-Infinity);
  const outcome = new Uint8Array(width), beyond = new Uint8Array(width), alone = new Uint8Array(width);
  const worst = new Int32Array(width).fill(-1), worstValue = new Float32Array(width).fill(-1);
  const scale = width / (to - from);
  let least = Infinity, most = 0;
  for (let row = from; row < to; row++) {
    const column = Math.min(width - 1, ((row - from) * scale) | 0);
    const kind = model.outcome[row];
    let value = values[row];
    if (model.nonFinite(row) || value === Infinity) {
      beyond[column] = 1;
      value = Infinity;
    } else if (kind === Outcome.UNMATCHED) alone[column] = 1;
    else if (value > 0) {
      if (value < least) least = value;
      if (value > most) most = value;
      const band = kind >= Outcome.INHERITED ? LOUD : QUIET;
      if (value < low[band][column]) low[band][column] = value;
      if (value > high[band][column]) high[band][column] = value;
    }
    const size = Number.isNaN(value) ? 0 : value;
    if (worst[column] < 0 || kind > outcome[column] || (kind === outcome[column] && size > worstValue[column])) {
      worst[column] = row;
      worstValue[column] = size;
    }
    if (kind > outcome[column]) outcome[column] = kind;
  }
  for (const band of [...low, ...high]) for (let i = 0; i < width; i++) band[i] = Math.log10(band[i]);
  return { low, high, outcome, worst, beyond, alone, least, most };
}

/** So many rows around a place, as far as there are rows. */
export function around(place: number, size: number, rows: number): [number, number] {
  const start = Math.max(0, Math.min(rows - size, Math.round(place - size / 2)));
  return [start, start + size];
}

/** The part of the rows that a zoom by a factor shows, around the selected row; null for all. */
export function zoomed(model: Model, row: number, x: [number, number] | null, factor: number): [number, number] | null {
  const [from, to] = x ?? [0, model.rows];
  const size = Math.max(8, Math.round((to - from) * factor));
  return size >= model.rows ? null : around(row >= from && row < to ? row : (from + to) / 2, size, model.rows);
}

/** The rows of a part of a step. */
export interface Stretch { phase: Phase; from: number; to: number }

/** The parts of a step in execution order; short ones inside of others are left out. */
export function stretches(model: Model): Stretch[] {
  const found: Stretch[] = [];
  for (let call = 0; call < model.calls; call++) {
    const own = model.phase(call);
    const phase = own === "gradient" ? "backward" : own;
    const last = found[found.length - 1];
    if (last && (last.phase === phase || phase === "value")) last.to = model.endRow(call);
    else found.push({ phase, from: model.firstRow[call], to: model.endRow(call) });
  }
  const merged: Stretch[] = [];
  for (const each of found) {
    const last = merged[merged.length - 1];
    if (last && (last.phase === each.phase || each.to - each.from < model.rows / 100)) last.to = each.to;
    else merged.push({ ...each });
  }
  return merged;
}
