/** The filter over names: words that all must occur, or a guarded /regular expression/. */

import { t } from "./texts.ts";
import type { Model } from "./model.ts";

/** Longest expression, and longest part of a name that it is tried on. */
const LONGEST = 200, LONGEST_NAME = 300;
/** Milliseconds after which an expression is given up. */
const TIME = 500;
const UNBOUNDED = 3;

/** ``passes``: for each row 1 where it passes, null where all do; ``problem``: what is wrong with the text, for the user. */
interface Filter { passes: Uint8Array | null; problem: string }

/** Compile an expression between slashes; a text where it is refused. */
export function guardedExpression(text: string): RegExp | string {
  const end = text.lastIndexOf("/");
  const source = text.slice(1, end > 0 ? end : undefined);
  if (source.length > LONGEST) return t("a regular expression has at most {longest} characters", { longest: LONGEST });
  const plain = source.replace(/\\./g, "_").replace(/\[(?:[^\]])*\]/g, "_");
  if (/\\[1-9k]/.test(source)) return t("no back references, please: they can take forever");
  // Repetition in repetition, and choices in repetition, can take exponential time.
  if (/\)(?:[*+]|\{)/.test(plain)) return t("a group that repeats is refused, as it can take forever");
  if ((plain.match(/[*+]|\{\d+,\d*\}/g) ?? []).length > UNBOUNDED) return t("at most {count} repetitions", { count: UNBOUNDED });
  try {
    return new RegExp(source, "i");
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Which rows have a name that a text asks for. Entries are looked at, and slots; not rows, of which there are many. */
export function filterNames(model: Model, text: string): Filter {
  const wanted = text.trim();
  if (!wanted) return { passes: null, problem: "" };
  if (wanted.startsWith("/") && wanted.length > 1) return filterByExpression(model, wanted);
  const passes = new Uint8Array(model.rows).fill(1);
  const names = lowerNames(model);
  const slots = model.slots.map((slot) => slot.toLowerCase());
  for (const word of wanted.toLowerCase().split(/\s+/).slice(0, 20)) narrowByWord(model, passes, names, slots, word);
  return { passes, problem: "" };
}

function narrowByWord(model: Model, passes: Uint8Array, names: string[], slots: string[], word: string): void {
  const slotHas = slots.map((slot) => slot.includes(word));
  const anySlot = slotHas.some(Boolean);
  const dots = [...word].flatMap((letter, place) => (letter === "." ? [place] : []));
  for (let call = 0; call < model.calls; call++) {
    const name = names[call];
    if (name.includes(word)) continue;
    // The word may go across the end of the entry: ``forward.0.output``.
    const tails = dots.filter((dot) => name.endsWith(word.slice(0, dot))).map((dot) => word.slice(dot + 1));
    const from = model.firstRow[call], to = model.endRow(call);
    if (!anySlot && !tails.length) passes.fill(0, from, to);
    else {
      for (let row = from; row < to; row++) {
        const slot = model.slot[row];
        if (!slotHas[slot] && !tails.some((tail) => slots[slot].startsWith(tail))) passes[row] = 0;
      }
    }
  }
}

function filterByExpression(model: Model, text: string): Filter {
  const expression = guardedExpression(text);
  if (typeof expression === "string") return { passes: null, problem: expression };
  const passes = new Uint8Array(model.rows);
  const until = performance.now() + TIME;
  for (let call = 0; call < model.calls; call++) {
    const entry = bothNames(model, call).slice(0, LONGEST_NAME);
    if (expression.test(entry)) passes.fill(1, model.firstRow[call], model.endRow(call));
    else {
      for (let row = model.firstRow[call]; row < model.endRow(call); row++) {
        if (expression.test(model.rowName(row).slice(0, LONGEST_NAME))) passes[row] = 1;
      }
    }
    if ((call & 15) === 0 && performance.now() > until) {
      return { passes, problem: t("the expression takes too long: only the first names were looked at") };
    }
  }
  return { passes, problem: "" };
}

const lowered = new WeakMap<Model, string[]>();

/** Names of both sides in lower case, the target's last: so a word may end at its slot. */
function lowerNames(model: Model): string[] {
  if (!lowered.has(model)) lowered.set(model, model.names.map((_, call) => bothNames(model, call).toLowerCase()));
  return lowered.get(model)!;
}

function bothNames(model: Model, call: number): string {
  const golden = model.goldens[call];
  return typeof golden === "string" ? `${golden} ${model.names[call]}` : model.names[call];
}
