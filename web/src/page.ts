/** What the panels share: the model, the state of the page, and how it changes. */

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { parseAddress, type Address } from "./address.ts";
import { Figures } from "./figures.ts";
import type { Model } from "./model.ts";
import { t } from "./texts.ts";

export const TABS = ["figures", "elements", "neighbours", "stack", "raw"] as const;
export type Tab = (typeof TABS)[number];
export const COLOUR_BY = ["added", "worst", "outcome", "finite"] as const;
export type ColourBy = (typeof COLOUR_BY)[number];
export const VIEWS = ["icicle", "trees"] as const;
export type View = (typeof VIEWS)[number];
export type Measure = "ratio" | "deviation";
export type Sort = "order" | "ratio" | "deviation" | "name";

/** What rows are narrowed to, by menu; "" is all. */
export type Facets = Record<"outcome" | "phase" | "kind" | "type", string>;

export interface State {
  call: number; row: number;
  /** The rows that the plot shows; null for all. */
  x: [number, number] | null;
  /** The filter of the table. */
  q: string;
  tab: Tab; colour: ColourBy; view: View; measure: Measure; facets: Facets; sort: Sort;
  note: string; help: boolean; shortcuts: boolean;
}

export const ALL: Facets = { outcome: "", phase: "", kind: "", type: "" };

export interface PageContext {
  model: Model;
  state: State;
  set: (patch: Partial<State>) => void;
  /** Select a call and one of its rows: the one that says most where none is given. */
  select: (call: number, row?: number) => void;
  /** Show another share of what is shown, around the selection. */
  zoom: (factor: number) => void;
}

const Context = createContext<PageContext | null>(null);
export const PageProvider = Context.Provider;

export function usePage(): PageContext {
  return useContext(Context)!;
}

/** The state that an address asks for: a node that is not there is told, and ignored. */
export function stateFrom(hash: string, model: Model): Partial<State> {
  const { address, note } = parseAddress(hash);
  const patch: Partial<State> = { note, q: address.q, x: null };
  if (address.x && address.x[0] < model.rows) patch.x = [address.x[0], Math.min(address.x[1], model.rows)];
  patch.tab = TABS.find((each) => each === address.tab) ?? TABS[0];
  patch.colour = COLOUR_BY.find((each) => each === address.colour) ?? COLOUR_BY[0];
  patch.view = VIEWS.find((each) => each === address.view) ?? VIEWS[0];
  if (address.node) {
    const found = model.find(address.node);
    if (found) Object.assign(patch, { call: found.call, row: found.row >= 0 ? found.row : model.tellingRow(found.call) });
    else patch.note = t("The address names a node that is not in this report.");
  }
  return patch;
}

export function addressOf(state: State, model: Model): Address {
  const usual = [TABS[0], COLOUR_BY[0], VIEWS[0]] as readonly string[];
  const [tab, colour, view] = [state.tab, state.colour, state.view].map((each) => (usual.includes(each) ? "" : each));
  return { node: state.row >= 0 ? model.rowName(state.row) : (model.names[state.call] ?? ""), x: state.x, q: state.q, tab, colour, view };
}

/** What a promise gives, once it does; null before, and where it fails. */
export function useLoaded<T>(load: () => Promise<T>, key: unknown): T | null {
  const [value, setValue] = useState<T | null>(null);
  useEffect(() => {
    let current = true;
    load().then((loaded) => current && setValue(() => loaded), () => undefined);
    return () => void (current = false);
  }, [key]);
  return value;
}

const loading = new WeakMap<Model, Promise<Figures>>();

/** The figures of a page, decoded when they are first asked for. */
export function loadFigures(model: Model): Promise<Figures> {
  if (!loading.has(model)) loading.set(model, Figures.load(model.index, model.columns));
  return loading.get(model)!;
}

export function useFigures(model: Model): Figures | null {
  return useLoaded(() => loadFigures(model), model);
}
