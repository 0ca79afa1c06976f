/** The page: its state, its panels, its address. */

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatAddress, writeAddress } from "./address.ts";
import { copyText, Segmented } from "./controls.tsx";
import { Goto } from "./goto.tsx";
import { Icicle } from "./icicle.tsx";
import { Keys } from "./keys.tsx";
import { CallFlag, GLYPHS, type Model, Outcome, WORDS } from "./model.ts";
import { NodePanel } from "./node.tsx";
import { addressOf, ALL, type ColourBy, type PageContext, PageProvider, type State, stateFrom, usePage } from "./page.ts";
import { ExecutionPlot, ratioText } from "./plot.tsx";
import { Paper } from "./paper.tsx";
import { Table } from "./table.tsx";
import { grouped, plural, shortened } from "./text.ts";
import { isDark, setTheme } from "./theme.ts";
import { type Direction } from "./tree.ts";
import { Trees } from "./trees.tsx";

function initial(model: Model): State {
  const state: State = {
    call: -1, row: -1, x: null, q: "", tab: "figures", colour: "added", view: "icicle", measure: "ratio", facets: ALL,
    sort: "order", note: "", help: false, shortcuts: true, ...stateFrom(location.hash, model),
  };
  if (model.alone) state.colour = "finite";
  if (state.call >= 0) return state;
  const first = model.originOfCall.keys().next().value ?? largest(model);
  return first < 0 ? state : { ...state, call: first, row: model.tellingRow(first) };
}

/** The call with the largest error ratio: what a page without an origin begins with. */
function largest(model: Model): number {
  let best = -1;
  for (let call = 0; call < model.calls; call++) if (best < 0 || model.callWorst[call] > model.callWorst[best]) best = call;
  return best;
}

export function App({ model }: { model: Model }) {
  const [state, setState] = useState(() => initial(model));
  const page = useMemo<PageContext>(() => ({
    model, state,
    set: (patch) => setState((before) => ({ ...before, ...patch })),
    select: (call, row) => setState((before) => {
      const chosen = row ?? model.tellingRow(call);
      const inside = !before.x || chosen < 0 || (chosen >= before.x[0] && chosen < before.x[1]);
      return { ...before, call, row: chosen, note: "", x: inside ? before.x : shifted(before.x!, chosen, model.rows) };
    }),
  }), [model, state]);
  const written = useRef(location.hash);
  useEffect(() => {
    const onHash = () => {
      if (location.hash === written.current) return;
      written.current = location.hash;
      setState((before) => ({ ...before, ...stateFrom(location.hash, model) }));
    };
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, [model]);
  // Not at once: browsers stop pages that change their address many times a second.
  const address = formatAddress(addressOf(state, model));
  const settled = useRef(false);
  useEffect(() => {
    if (!settled.current) {
      settled.current = true;
      return undefined;
    }
    const later = setTimeout(() => {
      written.current = address;
      writeAddress(address);
    }, 200);
    return () => clearTimeout(later);
  }, [address]);
  return (
    <PageProvider value={page}>
      <Tools address={address} />
      {state.note && <p class="note" role="alert">{state.note} <button type="button" onClick={() => page.set({ note: "" })}>dismiss</button></p>}
      <ExecutionPlot />
      <div class="columns"><ModelPanel /><NodePanel /></div>
      <Table />
      <Paper />
      <Keys />
      <p class="hidden" aria-live="polite">{selectionText(model, state)}</p>
    </PageProvider>
  );
}

/** The part shown, moved so that a row is in its middle. */
function shifted([from, to]: [number, number], row: number, rows: number): [number, number] {
  const size = to - from;
  const start = Math.max(0, Math.min(rows - size, Math.round(row - size / 2)));
  return [start, start + size];
}

function selectionText(model: Model, { row, call }: State): string {
  if (call < 0) return "";
  if (row < 0) return shortened(model.names[call]);
  return `${WORDS[model.outcome[row]]}: ${shortened(model.rowName(row))}, error ratio ${ratioText(model, row)}`;
}

/** Buttons in the header, which is not ours to render: they have an element of their own there. */
function Tools({ address }: { address: string }) {
  const page = usePage();
  const holder = useRef<HTMLElement | null>(null);
  useEffect(() => {
    const element = document.createElement("div");
    element.className = "tools";
    document.getElementById("verdict")?.append(element);
    holder.current = element;
    return () => element.remove();
  }, []);
  useEffect(() => {
    if (holder.current) render(<Buttons page={page} link={location.href.split("#")[0] + address} />, holder.current);
  });
  return null;
}

function Buttons({ page: { model, state, set, select }, link }: { page: PageContext; link: string }) {
  const [done, setDone] = useState("");
  const [dark, setDark] = useState(isDark());
  const origins = [...model.originOfCall.keys()];
  const at = origins.indexOf(state.call);
  const copy = async () => {
    setDone((await copyText(link)) ? "copied" : "not copied");
    setTimeout(() => setDone(""), 1500);
  };
  const toggle = () => {
    setTheme(dark ? "light" : "dark");
    setDark(!dark);
  };
  return (
    <>
      {origins.length > 0 && <button type="button" class="primary" onClick={() => select(origins[(at + 1) % origins.length])}>
        {origins.length === 1 ? "show origin" : `origin ${at >= 0 ? `${at + 1} of ` : ""}${origins.length} ▸`}</button>}
      <button type="button" onClick={copy}><span role="status">{done || "copy link"}</span></button>
      <button type="button" onClick={toggle} aria-label={dark ? "light colours" : "dark colours"} title={dark ? "light" : "dark"}>◐</button>
      <button type="button" onClick={() => set({ help: true })} aria-label="keys" title="keys">?</button>
    </>
  );
}

const COLOUR_TITLES: readonly (readonly [ColourBy, string])[] = [
  ["added", "added error"], ["worst", "largest error"], ["outcome", "result"], ["finite", "NaN, infinity"],
];

function ModelPanel() {
  const { model, state, set } = usePage();
  const backward = state.call >= 0 && model.phase(state.call) === "backward";
  const [chosen, setChosen] = useState<Direction>(backward ? "backward" : "forward");
  useEffect(() => {
    if (state.call >= 0 && (model.phase(state.call) === "backward" || model.phase(state.call) === "forward")) setChosen(backward ? "backward" : "forward");
  }, [state.call]);
  const both = useMemo(() => model.callFlags.some((flags) => flags & CallFlag.BACKWARD && !(flags & CallFlag.GRADIENT)), [model]);
  return (
    <section class="panel model" aria-labelledby="model-title">
      <div class="bar">
        <h2 id="model-title">Model</h2>
        <Segmented label="View" value={state.view} set={(view) => set({ view })} options={[["icicle", "icicle"], ["trees", "side by side"]]} />
        {both && <Segmented label="Direction" value={chosen} set={setChosen} options={[["forward", "forward"], ["backward", "backward"]]} />}
        <span class="spring" />
        {state.view === "icicle" && (
          <label class="check">colour{" "}
            <select value={state.colour} onChange={(event) => set({ colour: event.currentTarget.value as ColourBy })}>
              {COLOUR_TITLES.filter(([each]) => !model.alone || each === "finite").map(([each, title]) => <option value={each} key={each}>{title}</option>)}
            </select>
          </label>
        )}
      </div>
      {state.view === "icicle" ? <Icicle direction={chosen} /> : <Trees direction={chosen} />}
      <Unmatched />
    </section>
  );
}

/** Calls without a counterpart, on both sides. */
function Unmatched() {
  const { model, set } = usePage();
  const alone = useMemo(() => {
    const sides: [number[], number[]] = [[], []];
    for (let call = 0; call < model.calls; call++) {
      const flags = model.callFlags[call] & 3;
      if (flags !== 3 && flags) sides[flags - 1].push(call);
    }
    return sides;
  }, [model]);
  if (model.alone || (!alone[0].length && !alone[1].length)) return null;
  return (
    <div class="unmatched-strip">
      <span class="outcome unmatched"><span class="glyph" aria-hidden="true">{GLYPHS[Outcome.UNMATCHED]}</span> no counterpart</span>
      {(["target", "golden"] as const).map((side, place) => alone[place].length > 0 && (
        <details key={side}><summary>{plural(alone[place].length, "call")} of the {side}</summary>
          <ul>{alone[place].slice(0, 50).map((call) => <li key={call}><Goto call={call} /></li>)}</ul>
          {alone[place].length > 50 && <p class="muted">and {grouped(alone[place].length - 50)} more, in the table</p>}
        </details>
      ))}
      <button type="button" onClick={() => set({ facets: { ...ALL, outcome: Outcome.UNMATCHED }, q: "" })}>in the table</button>
    </div>
  );
}
