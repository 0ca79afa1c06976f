/** Everything known of the selected call: its values on both sides, why, its neighbours, its stacks. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { CopyButton, Label } from "./controls.tsx";
import { aligned } from "./diff.ts";
import { Elements } from "./elements.tsx";
import { type Figures, STATISTICS } from "./figures.ts";
import { CallFlag, COLOURS, GLYPHS, type Model, Outcome, RowFlag } from "./model.ts";
import { consumers, type Neighbour, producers } from "./neighbours.ts";
import { loadFigures, type Tab, TABS, useFigures, useLoaded, usePage } from "./page.ts";
import { ratioText } from "./plot.tsx";
import { loadReasons } from "./table.tsx";
import { agreeing, figure, level, plural, printable, short, shortened } from "./text.ts";

/** Most values of a call that are shown at once; the table has all. */
const MOST = 60;

export function NodePanel() {
  const { model, state, set, select } = usePage();
  const { call } = state;
  if (call < 0) return <section class="panel node" aria-labelledby="node-title"><div class="bar"><h2 id="node-title">Node</h2></div><p class="empty">Select a value in the plot, the model or the table.</p></section>;
  const go = (step: number) => call + step >= 0 && call + step < model.calls && select(call + step);
  const golden = model.golden(call);
  const contents: Record<Tab, () => JSX.Element> = { figures: () => <FiguresTab />, elements: () => <Elements />, neighbours: () => <NeighboursTab />, stack: () => <StackTab />, raw: () => <RawTab /> };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const next = TABS[(TABS.indexOf(state.tab) + step + TABS.length) % TABS.length];
    set({ tab: next });
    event.preventDefault();
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <section class="panel node" aria-labelledby="node-title">
      <div class="bar">
        <h2 id="node-title">Node</h2>
        <span class="muted">{model.phase(call)} · call {call + 1} of {model.calls}</span>
        <span class="spring" />
        <span class="group">
          <button type="button" aria-label="previous call" onClick={() => go(-1)} disabled={call === 0}>◀</button>
          <button type="button" aria-label="next call" onClick={() => go(1)} disabled={call === model.calls - 1}>▶</button>
        </span>
      </div>
      <div class="names">
        <p><bdi class="full">{shortened(model.names[call], 600)}</bdi></p>
        <p class="muted">{model.alone ? null : !(model.callFlags[call] & CallFlag.TARGET) ? "∅ the golden alone has it" : golden ? <>golden <bdi>{shortened(golden, 600)}</bdi> <span class="chip">paired by {model.hows[model.how[call]] || "name"}</span></> : "∅ no counterpart in the golden"}</p>
        <Flow call={call} />
        <Why call={call} />
      </div>
      <div class="tabs" role="tablist" aria-label="about the node" onKeyDown={onKeyDown}>
        {TABS.map((tab) => (
          <button type="button" role="tab" id={`tab-${tab}`} key={tab} aria-selected={tab === state.tab} aria-controls="tabpanel"
            tabIndex={tab === state.tab ? 0 : -1} onClick={() => set({ tab })}>{tab}</button>
        ))}
      </div>
      <div class="tabpanel" role="tabpanel" id="tabpanel" aria-labelledby={`tab-${state.tab}`} tabIndex={0}>{contents[state.tab]()}</div>
    </section>
  );
}

/** What comes in and what goes out, in error ratios. */
function Flow({ call }: { call: number }) {
  const { model } = usePage();
  if (!model.given[call] && !model.taken[call]) return null;
  const width = (value: number) => (element: HTMLElement | null) => {
    if (element) element.style.width = `${Math.max(2, Math.min(100, (Math.log10(1 + Math.min(value, 1e6)) / 6) * 100))}%`;
  };
  const bar = (name: string, value: number) => (
    <span class="flow"><span class="muted">{name}</span><span class="track"><span ref={width(value)} class={value > 1 ? "loud" : ""} /></span><b>{short(value)}</b></span>
  );
  return <div class="flows">{bar("in", model.taken[call])}{bar("out", model.given[call])}<span class="muted">adds ×{short(model.added(call))}</span></div>;
}

/** Why the selection is what it is: an origin, inherited, explained. */
function Why({ call }: { call: number }) {
  const { model, state, select } = usePage();
  const reasons = useLoaded(() => loadReasons(model), model);
  const origin = model.originOfCall.get(call);
  if (origin) {
    return (
      <div class="why origin-box">
        <p><Label outcome={Outcome.ORIGIN} alone={model.alone} /> <span class="chip">{printable(origin.kind)}</span> {shortened(origin.reason, 600)}</p>
        {origin.details.length > 0 && <ul>{origin.details.slice(0, 8).map((each, place) => <li key={place}>{shortened(each, 600)}</li>)}</ul>}
        {origin.site && <p class="muted">called at <bdi>{shortened(origin.site, 300)}</bdi></p>}
        {origin.advice && <p><b>Next:</b> {shortened(origin.advice, 600)}</p>}
        {origin.command && <p class="command"><code>{shortened(origin.command, 300)}</code> <CopyButton text={() => origin.command}>copy</CopyButton></p>}
        {!model.alone && <Before call={call} />}
      </div>
    );
  }
  const row = state.row;
  if (row < 0) return null;
  const from = model.inherited[row];
  const explained = model.explained[row] ? model.index.tolerated[model.explained[row]] : "";
  const reason = reasons?.texts[reasons.codes[row]] ?? "";
  return (
    <div class="why">
      <p><Label outcome={model.outcome[row]} alone={model.alone} /> {shortened(model.slotOf(row), 80)}
        {from > 0 && <> from <button type="button" class="link" onClick={() => select(from - 1)}><bdi>{shortened(model.names[from - 1] ?? "", 160)}</bdi></button></>}
        {explained && <> by {printable(explained)}</>}{reason && reason !== explained && <>: {shortened(reason, 600)}</>}</p>
    </div>
  );
}

/** Whether all that came before an origin agrees: inputs, parameters, dtypes. */
function Before({ call }: { call: number }) {
  const { model } = usePage();
  const figures = useFigures(model);
  const counted = useMemo(() => {
    const kinds = new Map([["parameter", [0, 0]], ["input", [0, 0]], ["output", [0, 0]]]);
    let dtypes = 0, typed = 0;
    const last = model.firstRow[call];
    for (let row = 0; row < last; row++) {
      if ((model.flags[row] & 3) !== 3) continue;
      const slot = model.slotOf(row);
      const kind = kinds.get(slot.startsWith("parameter") ? "parameter" : slot.startsWith("input") ? "input" : "output")!;
      kind[0]++;
      if (!(model.flags[row] & RowFlag.DIFFERS)) kind[1]++;
      if (figures && model.flags[row] & RowFlag.TENSOR && figures.place(row) >= 0) {
        typed++;
        if (dtypeMeaning(figures.type("target", row)) === dtypeMeaning(figures.type("golden", row))) dtypes++;
      }
    }
    return { kinds: [...kinds].filter(([, [all]]) => all), dtypes, typed };
  }, [model, figures, call]);
  if (!counted.kinds.length) return <p class="muted">Nothing was compared before it.</p>;
  const mark = (all: number, good: number) => (all === good ? "✓" : "≠");
  return (
    <p class="before muted">before it: {counted.kinds.map(([kind, [all, good]]) => (
      <span key={kind} class={all === good ? "" : "differs"}>{mark(all, good)} {all === good ? plural(all, kind) : `${all - good} of ${plural(all, kind)}`} {all === good ? "agree" : "differ"} </span>
    ))}{counted.typed > 0 && <span class={counted.dtypes === counted.typed ? "" : "differs"}>{mark(counted.typed, counted.dtypes)} dtypes {counted.dtypes === counted.typed ? "equal" : `differ in ${counted.typed - counted.dtypes}`}</span>}</p>
  );
}

/** ``torch.float32`` and ``Float32`` are the same. */
export function dtypeMeaning(type: string): string {
  return (type.split(" ", 1)[0].split(".").pop() ?? "").toLowerCase();
}

function FiguresTab() {
  const { model, state, select } = usePage();
  const figures = useFigures(model);
  const { call } = state;
  const from = model.firstRow[call], to = model.endRow(call);
  const rows: number[] = [];
  const start = to - from > MOST && state.row >= from ? Math.max(from, Math.min(state.row - 10, to - MOST)) : from;
  for (let row = start; row < to && rows.length < MOST; row++) rows.push(row);
  if (!figures) return <p class="muted">decoding…</p>;
  const single = model.alone;
  return (
    <>
      <div class="values">
        <table class="figures">
          <thead><tr><th scope="col">value</th><th><span class="hidden">side</span></th>{STATISTICS.map((name) => <th key={name} class="number">{name}</th>)}</tr></thead>
          {rows.map((row) => <Value key={row} model={model} figures={figures} row={row} selected={row === state.row} single={single} choose={() => select(call, row)} />)}
        </table>
      </div>
      {to - from > rows.length && <p class="muted">{rows.length} of {plural(to - from, "value")}: the table has the others</p>}
      {state.row >= 0 && <Metrics figures={figures} row={state.row} />}
      {rows.some((row) => figures.place(row) < 0) && model.index.truncated && (
        <p class="note">The page holds figures of {plural(model.index.truncated.rows, "value")}. Compare again with <code>{printable(model.index.truncated.command)}</code> for all.</p>
      )}
    </>
  );
}

interface ValueProps {
  model: Model;
  figures: Figures;
  row: number;
  selected: boolean;
  single: boolean;
  choose: () => void;
}

/** A value: the target's figures above the golden's, so that equal digits stand above each other. */
function Value({ model, figures, row, selected, single, choose }: ValueProps) {
  const outcome = model.outcome[row];
  const [ours, theirs] = [figures.type("target", row), figures.type("golden", row)];
  const texts = [figures.text("target", row), figures.text("golden", row)];
  const flags = model.flags[row];
  const tolerance = model.tolerance(row);
  const alike = dtypeMeaning(ours) === dtypeMeaning(theirs) && ours.split(" [")[1] === theirs.split(" [")[1];
  const type = alike || !theirs ? ours : !ours ? theirs : `${ours} | ${theirs}`;
  const side = (name: "target" | "golden", index: number) => {
    if (!(flags & (index + 1))) return <td colSpan={4} class="muted">∅ not there</td>;
    if (texts[index] && figures.value(`${name}_norm`, row) === null) return <td colSpan={4} class="text"><bdi>{shortened(texts[index], 200)}</bdi></td>;
    return STATISTICS.map((each) => {
      const pair = (["target", "golden"] as const).map((which) => {
        const value = figures.value(`${which}_${each}`, row);
        return value === null ? "" : figure(value);
      });
      if (!single) [pair[0], pair[1]] = level(pair[0], pair[1]);
      return <td class="number" key={each}><Digits text={pair[index]} other={single ? "" : pair[1 - index]} /></td>;
    });
  };
  return (
    <tbody class={selected ? "selected" : ""} onClick={choose}>
      <tr class="title">
        <th scope="rowgroup" colSpan={6}>
          <button type="button" class="link" aria-pressed={selected} onClick={choose}><bdi>{shortened(model.slotOf(row), 80)}</bdi></button>
          <span class="muted type">{shortened(type, 90)}</span>
          <span class={`ratio ${COLOURS[outcome]}`} title={`deviation ${model.hasDeviation(row) ? short(model.deviation[row]) : "none"}, tolerance ${tolerance === null ? "none" : short(tolerance)}`}>{single ? "" : ratioText(model, row)} {GLYPHS[outcome]}</span>
        </th>
      </tr>
      <tr><td /><td class="which muted">target</td>{side("target", 0)}</tr>
      {!single && <tr><td /><td class="which muted">golden</td>{side("golden", 1)}</tr>}
    </tbody>
  );
}

/** A figure beside its counterpart: what is equal is dim, and the first digit that differs is marked. */
function Digits({ text, other }: { text: string; other: string }) {
  if (!text) return <span class="muted">–</span>;
  if (!other) return <>{text}</>;
  const equal = agreeing(text, other);
  return <><span class="same">{text.slice(0, equal)}</span>{equal < text.length && <><mark>{text[equal]}</mark>{text.slice(equal + 1)}</>}</>;
}

function Metrics({ figures, row }: { figures: Figures; row: number }) {
  const { model } = usePage();
  const known = figures.metrics.flatMap((metric) => {
    const value = figures.value(metric.column, row);
    return value === null ? [] : [[metric.title, value] as const];
  });
  if (!known.length && !model.hasDeviation(row)) return null;
  const tolerance = model.tolerance(row);
  const all = [...(model.hasDeviation(row) ? [["deviation", model.deviation[row]] as const] : []), ...(tolerance === null ? [] : [["tolerance", tolerance] as const]), ...known];
  return <dl class="metrics">{all.map(([title, value]) => <div key={title}><dt>{printable(title)}</dt><dd>{short(value)}</dd></div>)}</dl>;
}

function NeighboursTab() {
  const { model, state } = usePage();
  const figures = useFigures(model);
  const found = useMemo(() => figures && { before: producers(model, figures, state.call), after: consumers(model, figures, state.call) }, [figures, model, state.call]);
  const above = model.parent[state.call] - 1;
  if (!found) return <p class="muted">decoding…</p>;
  return (
    <div class="neighbours">
      <Side title="comes from  ( [ )" list={found.before} empty="No earlier call gave out a tensor of the same figures." />
      <div class="here"><h3>here</h3><p><bdi>{shortened(model.names[state.call], 160)}</bdi></p><p class="muted">in {short(model.taken[state.call])} → out {short(model.given[state.call])}</p>
        {above >= 0 && <p class="muted">inside of <Goto call={above} /></p>}</div>
      <Side title="goes to  ( ] )" list={found.after} empty="No later call took in a tensor of the same figures." />
      <p class="muted wide">Tensors known again by equal figures of the target: dumps hold no edges.</p>
    </div>
  );
}

function Side({ title, list, empty }: { title: string; list: Neighbour[]; empty: string }) {
  const { model } = usePage();
  return (
    <div><h3>{title}</h3>
      {!list.length && <p class="muted">{empty}</p>}
      <ul>{list.map((each) => (
        <li key={each.call}><span class={`glyph ${COLOURS[model.outcome[each.row]]}`} aria-hidden="true">{GLYPHS[model.outcome[each.row]]}</span> <Goto call={each.call} row={each.row} />
          <span class="muted"> {shortened(model.slotOf(each.row), 40)} = {shortened(model.slotOf(each.by), 40)}, {ratioText(model, each.row)}</span></li>
      ))}</ul></div>
  );
}

function Goto({ call, row }: { call: number; row?: number }) {
  const { model, select } = usePage();
  return <button type="button" class="link" onClick={() => select(call, row)}><bdi>{shortened(model.names[call] ?? "", 160)}</bdi></button>;
}

/** Frames of a call on both sides, innermost first. */
async function loadStacks(model: Model, call: number): Promise<[string[], string[]]> {
  const side = async (column: string) => {
    if (!model.columns.has(column)) return [];
    const frames = model.columns.has("frames") ? await model.columns.json<string>("frames") : [];
    const stack = (await model.columns.dictionary<(number | string)[]>(column))[(await model.columns.integers(column))[call]] ?? [];
    return stack.map((frame) => (typeof frame === "number" ? (frames[frame] ?? "") : frame));
  };
  return [await side("call_stack"), await side("call_golden_stack")];
}

function StackTab() {
  const { model, state } = usePage();
  const stacks = useLoaded(() => loadStacks(model, state.call), state.call);
  if (!stacks) return <p class="muted">decoding…</p>;
  if (!stacks[0].length && !stacks[1].length) return <p class="empty">The dumps hold no stack of this call.</p>;
  const frame = (text: string | null) => text !== null && frameParts(text).map((each, place) => <div key={place} class={place ? "code" : ""}>{shortened(each, 300)}</div>);
  return (
    <table class="stacks"><caption class="hidden">stack of the call on both sides, innermost first</caption>
      <thead><tr><th scope="col"><span class="hidden">differs</span></th><th scope="col">target</th><th scope="col">golden</th></tr></thead>
      <tbody>{aligned(stacks[0], stacks[1]).map(([ours, theirs], place) => (
        <tr key={place} class={ours === theirs ? "equal" : "unequal"}><td>{ours === theirs ? "" : "≠"}</td><td>{frame(ours)}</td><td>{frame(theirs)}</td></tr>
      ))}</tbody></table>
  );
}

/** ``File net.py, line 31, in forward, x = f(x)`` as where, and what stands there. */
function frameParts(frame: string): string[] {
  const parts = /^File (.*), line (\d+), in ([^,]*),?\s*([^]*)$/.exec(frame);
  return parts ? [`${parts[1]}:${parts[2]} in ${parts[3]}`, ...(parts[4] ? [parts[4]] : [])] : [frame];
}

function RawTab() {
  const { model, state: { call, row } } = usePage();
  const figures = useLoaded(() => loadFigures(model), model);
  if (row < 0) return <p class="empty">Select a value.</p>;
  const statistics = (side: "target" | "golden") => Object.fromEntries(STATISTICS.map((name) => [name, plain(figures?.value(`${side}_${name}`, row))]));
  const raw = {
    call, entry: model.names[call], golden: model.golden(call) || null, paired_by: model.hows[model.how[call]], call_flags: model.callFlags[call],
    taken: plain(model.taken[call]), given: plain(model.given[call]), row, slot: model.slotOf(row), flags: model.flags[row],
    deviation: model.hasDeviation(row) ? plain(model.deviation[row]) : null, tolerance: model.tolerance(row), error_ratio: plain(model.ratio[row]),
    inherited_from: model.names[model.inherited[row] - 1] ?? null, target: { type: figures?.type("target", row), text: figures?.text("target", row), ...statistics("target") },
    golden_figures: { type: figures?.type("golden", row), text: figures?.text("golden", row), ...statistics("golden") },
  };
  const text = JSON.stringify(raw, null, 1);
  return <div class="raw"><CopyButton text={() => text}>copy</CopyButton><pre>{text.split("\n").map((line) => shortened(line, 400)).join("\n")}</pre></div>;
}

/** A number as JSON can hold it. */
function plain(value: number | null | undefined): number | string | null {
  return value === null || value === undefined ? null : Number.isFinite(value) ? Number(figure(value)) : figure(value);
}
