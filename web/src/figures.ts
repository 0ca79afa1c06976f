/** Figures of values: decoded when a panel first needs them. */

import { bits, type Columns, type Index, NO_NUMBER, placeIn } from "./data.ts";

export const STATISTICS = ["max", "min", "mean", "norm"] as const;
export const SIDES = ["target", "golden"] as const;
export type SideName = (typeof SIDES)[number];

export class Figures {
  private constructor(
    private readonly columns: Map<string, Float32Array>,
    private readonly codes: Map<string, ArrayLike<number>>,
    private readonly texts: Map<string, string[]>,
    private readonly places: ArrayLike<number> | null,
    readonly metrics: { name: string; title: string; column: string }[],
  ) {}

  static async load(index: Index, columns: Columns): Promise<Figures> {
    const metrics = index.metrics ?? [];
    const floats = SIDES.flatMap((side) => STATISTICS.map((name) => `${side}_${name}`));
    const numbers = new Map<string, Float32Array>(), codes = new Map<string, ArrayLike<number>>(), texts = new Map<string, string[]>();
    await Promise.all([
      ...[...floats, ...metrics.map((metric) => metric.column)].filter((name) => columns.has(name))
        .map(async (name) => void numbers.set(name, await columns.numbers<Float32Array>(name))),
      ...SIDES.flatMap((side) => [`${side}_type`, `${side}_text`]).filter((name) => columns.has(name)).map(async (name) => {
        codes.set(name, await columns.numbers(name));
        texts.set(name, await columns.dictionary(name));
      }),
    ]);
    const places = columns.has("figure_rows") ? await columns.numbers("figure_rows") : null;
    return new Figures(numbers, codes, texts, places, metrics);
  }

  /** Where the figures of a row stand; -1 where the page has none of it. */
  place(row: number): number {
    return this.places ? placeIn(this.places, row) : row;
  }

  /** The row whose figures stand at a place. */
  rowAt(place: number): number {
    return this.places ? this.places[place] : place;
  }

  /** One figure; null where there is none. */
  value(column: string, row: number): number | null {
    const place = this.place(row);
    const values = this.columns.get(column);
    return !values || place < 0 || bits(values)[place] === NO_NUMBER ? null : values[place];
  }

  /** The largest magnitude of each row's target; NaN where it has no figures. */
  magnitudes(rows: number): Float32Array {
    const max = this.columns.get("target_max"), min = this.columns.get("target_min");
    const found = new Float32Array(rows).fill(NaN);
    for (let place = 0; max && min && place < max.length; place++) found[this.rowAt(place)] = Math.max(Math.abs(max[place]), Math.abs(min[place]));
    return found;
  }

  type(side: SideName, row: number): string {
    return this.coded(`${side}_type`, row);
  }

  text(side: SideName, row: number): string {
    return this.coded(`${side}_text`, row);
  }

  /** Types of a side as codes, and their texts: for filters over all rows. */
  types(side: SideName): { codes: ArrayLike<number>; texts: string[] } | null {
    const codes = this.codes.get(`${side}_type`);
    return codes ? { codes, texts: this.texts.get(`${side}_type`)! } : null;
  }

  /** All rows whose four figures are those of ``row``, itself left out; none where it has no figures. */
  equals(side: SideName, row: number): number[] {
    const place = this.place(row);
    const found: number[] = [];
    if (place < 0 || !this.columns.has(`${side}_norm`)) return found;
    const [max, min, mean, norm] = STATISTICS.map((name) => bits(this.columns.get(`${side}_${name}`)!));
    // A tensor of zeros or of nothing is like any other: it names no neighbour.
    if (norm[place] === NO_NUMBER || norm[place] === 0) return found;
    for (let i = 0; i < norm.length; i++) {
      if (norm[i] === norm[place] && max[i] === max[place] && min[i] === min[place] && mean[i] === mean[place] && i !== place) found.push(this.rowAt(i));
    }
    return found;
  }

  private coded(column: string, row: number): string {
    const place = this.place(row);
    return place < 0 ? "" : (this.texts.get(column)?.[this.codes.get(column)![place]] ?? "");
  }
}
