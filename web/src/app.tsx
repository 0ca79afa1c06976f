/** The page: its state, its panels, its address. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatAddress, writeAddress } from "./address.ts";
import { around, zoomed } from "./bins.ts";
import { CopyButton, Glyph, Goto, Segmented, ThemeButton, Tools } from "./controls.tsx";
import { largest } from "./data.ts";
import { SIDES } from "./figures.ts";
import { Icicle, LEGENDS } from "./icicle.tsx";
import { Keys } from "./keys.tsx";
import { CallFlag, type Model, Outcome, WORDS } from "./model.ts";
import { NodePanel } from "./node.tsx";
import { addressOf, ALL, COLOUR_BY, type ColourBy, type PageContext, PageProvider, type State, stateFrom, usePage } from "./page.ts";
import { ExecutionPlot } from "./plot.tsx";
import { Paper } from "./paper.tsx";
import { Table } from "./table.tsx";
import { grouped, plural, shortened } from "./text.ts";
import { type Direction } from "./tree.ts";
import { Trees } from "./trees.tsx";
import { t } from "./texts.ts";

function initial(model: Model): State {
  const state: State = {
    call: -1, row: -1, x: null, q: "", tab: "figures", colour: "added", view: "icicle", measure: "ratio", facets: ALL,
    sort: "order", note: "", help: false, shortcuts: true, ...stateFrom(location.hash, model),
  };
  if (model.alone) state.colour = "finite";
  if (state.call >= 0) return state;
  // Without an origin a page begins at the largest error ratio.
  const first = model.originOfCall.keys().next().value ?? largest(model.calls, 1, (call) => model.callWorst[call])[0] ?? -1;
  return first < 0 ? state : { ...state, call: first, row: model.tellingRow(first) };
}

export function App({ model }: { model: Model }) {
  const [state, setState] = useState(() => initial(model));
  const page = useMemo<PageContext>(() => ({
    model, state,
    set: (patch) => setState((before) => ({ ...before, ...patch })),
    select: (call, row) => setState((before) => {
      const chosen = row ?? model.tellingRow(call);
      const inside = !before.x || chosen < 0 || (chosen >= before.x[0] && chosen < before.x[1]);
      return { ...before, call, row: chosen, note: "", x: inside ? before.x : around(chosen, before.x![1] - before.x![0], model.rows) };
    }),
    zoom: (factor) => setState((before) => ({ ...before, x: zoomed(model, before.row, before.x, factor) })),
  }), [model, state]);
  const written = useRef(location.hash);
  useEffect(() => {
    const onHash = () => location.hash !== written.current && setState((before) => ({ ...before, ...stateFrom(written.current = location.hash, model) }));
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, [model]);
  // Not at once: browsers stop pages that change their address many times a second.
  const address = formatAddress(addressOf(state, model));
  const shown = useRef(address);
  useEffect(() => {
    if (shown.current === address) return undefined;
    shown.current = address;
    const later = setTimeout(() => writeAddress(written.current = address), 200);
    return () => clearTimeout(later);
  }, [address]);
  return (
    <PageProvider value={page}>
      <Tools><Buttons page={page} link={location.href.split("#")[0] + address} /></Tools>
      {state.note && <p class="note" role="alert">{state.note} <button type="button" onClick={() => page.set({ note: "" })}>{t("dismiss")}</button></p>}
      <ExecutionPlot />
      <div class="columns"><ModelPanel /><NodePanel /></div>
      <Table />
      <Paper />
      <Keys />
      <p class="hidden" aria-live="polite">{selectionText(model, state)}</p>
    </PageProvider>
  );
}

function selectionText(model: Model, { row, call }: State): string {
  if (call < 0) return "";
  if (row < 0) return shortened(model.names[call]);
  return `${WORDS[model.outcome[row]]}: ${shortened(model.rowName(row))}, ${t("error ratio")} ${model.ratioText(row)}`;
}

function Buttons({ page: { model, state, set, select }, link }: { page: PageContext; link: string }) {
  const { origins } = model, at = origins.indexOf(state.call);
  return (
    <>
      {origins.length > 0 && <button type="button" class="primary" onClick={() => select(model.originFrom(state.call, 1))}>
        {origins.length === 1 ? t("show origin")
          : at >= 0 ? t("origin {at} of {count} ▸", { at: at + 1, count: origins.length }) : t("origin {count} ▸", { count: origins.length })}</button>}
      <CopyButton text={() => link}>{t("copy link")}</CopyButton>
      <ThemeButton />
      <button type="button" onClick={() => set({ help: true })} aria-label={t("keys")} title={t("keys")}>?</button>
    </>
  );
}

function ModelPanel() {
  const { model, state, set } = usePage();
  const phase = state.call >= 0 ? model.phase(state.call) : "value";
  const [chosen, setChosen] = useState<Direction>("forward");
  useEffect(() => void ((phase === "backward" || phase === "forward") && setChosen(phase)), [state.call]);
  const both = useMemo(() => model.callFlags.some((flags) => flags & CallFlag.BACKWARD && !(flags & CallFlag.GRADIENT)), [model]);
  return (
    <section class="panel model" aria-labelledby="model-title">
      <div class="bar">
        <h2 id="model-title">{t("Model")}</h2>
        <Segmented label={t("View")} value={state.view} set={(view) => set({ view })} options={[["icicle", t("icicle")], ["trees", t("side by side")]]} />
        {both && <Segmented label={t("Direction")} value={chosen} set={setChosen} options={[["forward", t("forward")], ["backward", t("backward")]]} />}
        <span class="spring" />
        {state.view === "icicle" && (
          <label class="check">{t("colour")}{" "}
            <select value={state.colour} onChange={(event) => set({ colour: event.currentTarget.value as ColourBy })}>
              {COLOUR_BY.filter((each) => !model.alone || each === "finite").map((each) => <option value={each} key={each}>{LEGENDS[each][0]}</option>)}
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
  const calls = useMemo(() => model.names.map((_, call) => call).filter((call) => model.isAlone(call)), [model]);
  const alone = SIDES.map((_, side) => calls.filter((call) => model.callFlags[call] & (side + 1)));
  if (!calls.length) return null;
  return (
    <div class="unmatched-strip">
      <span class="outcome unmatched"><Glyph outcome={Outcome.UNMATCHED} />{" "}{t("no counterpart")}</span>
      {SIDES.map((side, place) => alone[place].length > 0 && (
        <details key={side}><summary>{t("{calls} of the {side}", { calls: plural(alone[place].length, "call"), side: t(side) })}</summary>
          <ul>{alone[place].slice(0, 50).map((call) => <li key={call}><Goto call={call} /></li>)}</ul>
          {alone[place].length > 50 && <p class="muted">{t("and {count} more, in the table", { count: grouped(alone[place].length - 50) })}</p>}
        </details>
      ))}
      <button type="button" onClick={() => set({ facets: { ...ALL, outcome: String(Outcome.UNMATCHED) }, q: "" })}>{t("in the table")}</button>
    </div>
  );
}
