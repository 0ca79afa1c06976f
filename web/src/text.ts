/** Text as it is shown: what is not printable escaped as in the terminal, numbers short and all of one length. */

import { t } from "./texts.ts";

const UNPRINTABLE = /[\p{C}\p{Z}]/u, EACH = /[\p{C}\p{Z}]/gu;
const NAMED = new Map([["\n", "\\n"], ["\r", "\\r"], ["\t", "\\t"]]);

/** Escape what is not printable, as ``printable`` in Python does; the plain space stays. */
export function printable(text: string): string {
  return UNPRINTABLE.test(text) ? text.replace(EACH, escaped) : text;
}

function escaped(character: string): string {
  if (character === " ") return character;
  const code = character.codePointAt(0)!;
  if (code < 256) return NAMED.get(character) ?? `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 65536 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

/** At most so many characters of a printable text; of a longer one its beginning and its end. */
export function shortened(text: string, most = 300): string {
  const shown = printable(text.length > 4 * most ? `${text.slice(0, 2 * most)}${text.slice(-2 * most)}` : text);
  if (shown.length <= most) return shown;
  const half = Math.floor(most / 2);
  return `${shown.slice(0, half)}…${shown.slice(-half)}`;
}

/** Three significant digits: an error ratio, a deviation; ``none`` where there is no number. */
export function short(value: number | null | undefined, none = "–"): string {
  if (value === null || value === undefined) return none;
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  if (size >= 1000) return grouped(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

/** A whole number in groups of three, as 19 992. */
export function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** The shortest decimal that is the same 32-bit float; ``none`` where there is no number. */
export function figure(value: number | null | undefined, none = ""): string {
  if (value === null || value === undefined) return none;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const exponential = Math.abs(value) >= 1e7 || Math.abs(value) < 1e-4;
  for (let digits = 1; digits <= 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) !== value) continue;
    if (exponential) return value.toExponential(digits - 1).replace("e+", "e");
    return text.includes("e") ? String(Number(text)) : text;
  }
  return String(value);
}

/** Two figures of equal length, filled up at their right, so that digits of equal weight stand above each other. */
export function level(one: string, other: string): [string, string] {
  const [a, b] = [decimals(one), decimals(other)];
  return a < 0 || b < 0 ? [one, other] : [one + FIGURE_SPACE.repeat(Math.max(0, b - a)), other + FIGURE_SPACE.repeat(Math.max(0, a - b))];
}

const FIGURE_SPACE = "\u2007";

/** Characters after the digits before the point; -1 of what has an exponent or is no number. */
function decimals(text: string): number {
  const found = /^-?\d+((?:\.\d+)?)$/.exec(text);
  return found ? found[1].length : -1;
}

/** How many characters of two figures agree from the left; all of them where they are equal. */
export function agreeing(one: string, other: string): number {
  if (one === other) return one.length;
  const magnitude = (text: string) => text.search(/[.e]|$/);
  if (magnitude(one) !== magnitude(other) || one.split("e")[1] !== other.split("e")[1]) return 0;
  let count = 0;
  while (count < one.length && one[count] === other[count]) count++;
  return count;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return t(`{count} ${count === 1 ? one : many}`, { count: grouped(count) });
}

/** ``torch.float32`` and ``Float32`` are the same. */
export function dtypeMeaning(type: string): string {
  return (type.split(" ", 1)[0].split(".").pop() ?? "").toLowerCase();
}
