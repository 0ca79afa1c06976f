/** The comparison as the panels see it: calls and their rows, error ratios, and what became of each. */

import { bits, type Columns, type Index, NO_NUMBER, type Origin } from "./data.ts";
import { short } from "./text.ts";
import { t } from "./texts.ts";

/** What became of a value, the more severe the larger: so the largest of a pixel column or a call is shown. */
export const Outcome = { AGREES: 0, NOT_COMPARED: 1, EXPLAINED: 2, UNMATCHED: 3, INHERITED: 4, DIFFERS: 5, ORIGIN: 6 } as const;
export const GLYPHS = ["✓", "–", "~", "∅", "↳", "≠", "✖"];
export const WORDS = [t("agrees"), t("not compared"), t("explained"), t("unmatched"), t("inherited"), t("differs"), t("origin")];
/** What they mean in a dump alone. */
const ALONE_WORDS = [t("finite"), t("finite"), t("finite"), t("finite"), t("not finite"), t("not finite"), t("first not finite")];
/** Names of colours of the style sheet, by outcome. */
export const COLOURS = ["agrees", "agrees", "explained", "unmatched", "inherited", "differs", "origin"] as const;

/** Results of the table of ``own``; of other tables the flags tell. */
const RESULTS = new Map<string, number>([["agrees", Outcome.AGREES], ["not compared", Outcome.NOT_COMPARED],
  ["not judged", Outcome.NOT_COMPARED], ["random", Outcome.EXPLAINED], ["unmatched", Outcome.UNMATCHED],
  ["inherited", Outcome.INHERITED], ["differs", Outcome.DIFFERS], ["origin", Outcome.ORIGIN]]);

export const CallFlag = { TARGET: 1, GOLDEN: 2, MODULE: 4, BACKWARD: 8, GRADIENT: 16, VALUE: 32, UPDATE: 64 } as const;
export const RowFlag = { TARGET: 1, GOLDEN: 2, DIFFERS: 4, EXPLAINED: 8, RECORD: 16, TARGET_NONFINITE: 32,
  GOLDEN_NONFINITE: 64, TENSOR: 128 } as const;
const NONFINITE = RowFlag.TARGET_NONFINITE | RowFlag.GOLDEN_NONFINITE;

export type Phase = "forward" | "backward" | "gradient" | "update" | "value";

/** The columns that every panel needs, decoded before the page is shown. */
async function loadParts(columns: Columns) {
  return settled({
    names: columns.json<string>("call_names"),
    goldens: columns.json<string | 0 | null>("call_goldens"),
    callFlags: columns.numbers("call_flags"),
    parent: columns.numbers("call_parent"),
    firstRow: columns.numbers("call_rows"),
    taken: columns.numbers<Float32Array>("call_taken"),
    given: columns.numbers<Float32Array>("call_given"),
    how: columns.numbers("call_how"),
    hows: columns.dictionary("call_how"),
    slot: columns.numbers("row_slot"),
    goldenSlot: columns.numbers("row_golden_slot"),
    slots: columns.dictionary("row_slot"),
    flags: columns.numbers("row_flags"),
    deviation: columns.numbers<Float32Array>("row_deviation"),
    toleranceCode: columns.numbers("row_tolerance"),
    tolerances: columns.dictionary<number | null>("row_tolerance"),
    explained: columns.numbers("row_explained"),
    inherited: columns.numbers("row_inherited"),
    result: columns.numbers("row_result"),
    results: columns.dictionary("row_result"),
  });
}

/** What promises give, by their names. */
async function settled<T extends object>(promises: T): Promise<{ [name in keyof T]: Awaited<T[name]> }> {
  const values = await Promise.all(Object.values(promises));
  return Object.fromEntries(Object.keys(promises).map((name, place) => [name, values[place]])) as { [name in keyof T]: Awaited<T[name]> };
}

type Parts = Awaited<ReturnType<typeof loadParts>>;

export interface Model extends Readonly<Parts> {}

export class Model {
  readonly rowCall: Uint32Array;
  /** Error ratio of each row: 0 where nothing differs, NaN where nothing was compared. */
  readonly ratio: Float32Array;
  readonly outcome: Uint8Array;
  readonly callWorst: Float32Array; readonly callOutcome: Uint8Array;
  readonly originOfCall = new Map<number, Origin>();
  readonly rows: number; readonly calls: number;
  /** Whether this is one dump alone, with nothing to compare it to. */
  readonly alone: boolean;
  /** What outcomes are called: of a dump alone there is less to say. */
  readonly words: readonly string[];
  private byName: Map<string, number> | null = null;

  constructor(readonly index: Index, readonly columns: Columns, parts: Parts) {
    Object.assign(this, parts);
    [this.rows, this.calls, this.alone] = [parts.flags.length, parts.names.length, index.kind === "dump"];
    this.words = this.alone ? ALONE_WORDS : WORDS;
    this.rowCall = new Uint32Array(this.rows);
    for (let call = 0; call < this.calls; call++) this.rowCall.fill(call, this.firstRow[call], this.endRow(call));
    this.ratio = this.ratios();
    for (const origin of index.origins) {
      if (origin.call !== null && !this.originOfCall.has(origin.call)) this.originOfCall.set(origin.call, origin);
    }
    this.outcome = this.outcomes(parts.result, parts.results.map((text) => RESULTS.get(text) ?? -1));
    this.callWorst = new Float32Array(this.calls);
    this.callOutcome = new Uint8Array(this.calls);
    for (let row = 0; row < this.rows; row++) {
      const call = this.rowCall[row];
      if (this.ratio[row] > this.callWorst[call]) this.callWorst[call] = this.ratio[row];
      if (this.outcome[row] > this.callOutcome[call]) this.callOutcome[call] = this.outcome[row];
    }
    for (const call of this.originOfCall.keys()) this.callOutcome[call] = Outcome.ORIGIN;
  }

  endRow(call: number): number {
    return call + 1 < this.calls ? this.firstRow[call + 1] : this.rows;
  }

  /** The rows of a call. */
  rowsOf(call: number): number[] {
    return Array.from({ length: this.endRow(call) - this.firstRow[call] }, (_, place) => this.firstRow[call] + place);
  }

  tolerance(row: number): number | null {
    return this.tolerances[this.toleranceCode[row]] ?? null;
  }

  /** How far apart a row's two sides are; null where nothing was compared. */
  deviationOf(row: number): number | null {
    return bits(this.deviation)[row] === NO_NUMBER ? null : this.deviation[row];
  }

  /** Error ratio of a row as it is shown. */
  ratioText(row: number): string {
    return short(this.deviationOf(row) === null ? null : this.ratio[row]);
  }

  rowName(row: number): string {
    return `${this.names[this.rowCall[row]]}.${this.slotOf(row)}`;
  }

  /** What follows the entry in the name of a value: the target's, or the golden's where that alone has it. */
  slotOf(row: number): string {
    return this.slots[this.slot[row]] || this.slots[this.goldenSlot[row]];
  }

  /** The golden's name of a call; "" where it has none. */
  golden(call: number): string {
    const name = this.goldens[call];
    return name === 0 || !(this.callFlags[call] & CallFlag.TARGET) ? this.names[call] : (name ?? "");
  }

  /** Whether a call of a comparison is on one side only. */
  isAlone(call: number): boolean {
    return !this.alone && (this.callFlags[call] & 3) !== 3;
  }

  /** The calls of origins in execution order. */
  get origins(): number[] {
    return [...this.originOfCall.keys()].sort((a, b) => a - b);
  }

  /** The next origin after a call, or the one before it, around the end; -1 where there is none. */
  originFrom(call: number, step: 1 | -1): number {
    const ordered = step > 0 ? this.origins : this.origins.reverse();
    return ordered.find((each) => (each - call) * step > 0) ?? ordered[0] ?? -1;
  }

  nonFinite(row: number): boolean {
    return (this.flags[row] & NONFINITE) !== 0;
  }

  /** Error ratio of what a call gives out over that of what it takes in: what it adds of its own. */
  added(call: number): number {
    return this.taken[call] === Infinity ? 1 : this.given[call] / Math.max(this.taken[call], 1);
  }

  phase(call: number): Phase {
    const flags = this.callFlags[call];
    if (flags & CallFlag.UPDATE) return "update";
    if (flags & CallFlag.GRADIENT) return "gradient";
    if (flags & CallFlag.VALUE) return "value";
    return flags & CallFlag.BACKWARD ? "backward" : "forward";
  }

  /** The row of a call that says most: the origin's, else the most severe, of these the largest ratio. */
  tellingRow(call: number): number {
    const origin = this.originOfCall.get(call);
    if (origin?.row != null) return origin.row;
    let best = -1;
    for (let row = this.firstRow[call]; row < this.endRow(call); row++) {
      if (best < 0 || this.outcome[row] > this.outcome[best] ||
        (this.outcome[row] === this.outcome[best] && this.ratio[row] > this.ratio[best])) best = row;
    }
    return best;
  }

  /** Find a value or an entry by its name; the row is -1 where the name is an entry's, null where there is none. */
  find(name: string): { call: number; row: number } | null {
    this.byName ??= this.nameTable();
    const call = this.byName.get(name);
    if (call !== undefined) return { call, row: -1 };
    for (let dot = name.lastIndexOf("."); dot > 0; dot = name.lastIndexOf(".", dot - 1)) {
      const entry = this.byName.get(name.slice(0, dot));
      if (entry === undefined) continue;
      const slot = name.slice(dot + 1);
      for (let row = this.firstRow[entry]; row < this.endRow(entry); row++) {
        if (this.slotOf(row) === slot) return { call: entry, row };
      }
    }
    return null;
  }

  isAncestor(ancestor: number, call: number): boolean {
    for (let at = this.parent[call], steps = 0; at && steps < 1000; at = this.parent[at - 1], steps++) {
      if (at - 1 === ancestor) return true;
    }
    return false;
  }

  private nameTable(): Map<string, number> {
    const table = new Map<string, number>();
    for (let call = this.calls - 1; call >= 0; call--) {
      const golden = this.goldens[call];
      if (typeof golden === "string") table.set(golden, call);
    }
    for (let call = this.calls - 1; call >= 0; call--) table.set(this.names[call], call);
    return table;
  }

  private ratios(): Float32Array {
    const { deviation, flags, toleranceCode } = this;
    const tolerances = this.tolerances.map((each) => each ?? NaN);
    const deviationBits = bits(deviation);
    const ratio = new Float32Array(deviation.length);
    for (let row = 0; row < ratio.length; row++) {
      if (deviationBits[row] === NO_NUMBER) ratio[row] = NaN;
      else if (!(flags[row] & RowFlag.RECORD) && deviation[row] !== 0) {
        const value = deviation[row] / tolerances[toleranceCode[row]];
        ratio[row] = Number.isNaN(value) ? Infinity : value;
      }
    }
    return ratio;
  }

  private outcomes(result: ArrayLike<number>, known: number[]): Uint8Array {
    const { flags, inherited, ratio } = this;
    const outcome = new Uint8Array(flags.length);
    for (let row = 0; row < outcome.length; row++) {
      const flag = flags[row];
      const told = known[result[row]] ?? -1;
      if (this.alone) outcome[row] = this.nonFinite(row) ? Outcome.INHERITED : Outcome.AGREES;
      else if ((flag & 3) !== 3) outcome[row] = Outcome.UNMATCHED;
      else if (told > Outcome.AGREES) outcome[row] = told;
      else if (flag & RowFlag.EXPLAINED) outcome[row] = Outcome.EXPLAINED;
      else if (told === Outcome.AGREES) outcome[row] = told;
      else if (flag & RowFlag.DIFFERS) outcome[row] = inherited[row] ? Outcome.INHERITED : Outcome.DIFFERS;
      else if (Number.isNaN(ratio[row])) outcome[row] = Outcome.NOT_COMPARED;
    }
    for (const origin of this.index.origins) if (origin.row != null) outcome[origin.row] = Outcome.ORIGIN;
    return outcome;
  }
}

export async function loadModel(index: Index, columns: Columns): Promise<Model> {
  return new Model(index, columns, await loadParts(columns));
}
