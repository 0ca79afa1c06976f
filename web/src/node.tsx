/** Everything known of the selected call: its values on both sides, why, its neighbours, its stacks. */

import type { ComponentType } from "preact";
import { useMemo } from "preact/hooks";
import { NeighboursTab, RawTab, StackTab } from "./around.tsx";
import { CopyButton, Goto, Label } from "./controls.tsx";
import { Elements } from "./elements.tsx";
import type { Figures } from "./figures.ts";
import { CallFlag, Outcome, RowFlag } from "./model.ts";
import { type Tab, TABS, useFigures, useLoaded, usePage } from "./page.ts";
import { askedOf, loadReasons } from "./rows.ts";
import { dtypeMeaning, plural, printable, short, shortened } from "./text.ts";
import { FiguresTab } from "./values.tsx";
import { t } from "./texts.ts";

const TAB_TITLES: Record<Tab, string> = {
  figures: t("figures"), elements: t("elements"), neighbours: t("neighbours"), stack: t("stack"), raw: t("raw"),
};
const CONTENTS: Record<Tab, ComponentType<{ figures: Figures }>> = {
  figures: FiguresTab, elements: Elements, neighbours: NeighboursTab, stack: StackTab, raw: RawTab,
};

export function NodePanel() {
  const { model, state, set, select } = usePage();
  const figures = useFigures(model);
  const { call } = state;
  if (call < 0) return <section class="panel node"><h2>{t("Node")}</h2><p class="empty">{t("Select a value in the plot, the model or the table.")}</p></section>;
  const go = (step: number) => call + step >= 0 && call + step < model.calls && select(call + step);
  const Contents = CONTENTS[state.tab];
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
        <h2 id="node-title">{t("Node")}</h2>
        <span class="muted">{t(model.phase(call))} · {t("call {number} of {count}", { number: call + 1, count: model.calls })}</span>
        <span class="spring" />
        <span class="group">
          <button type="button" aria-label={t("previous call")} onClick={() => go(-1)} disabled={call === 0}>◀</button>
          <button type="button" aria-label={t("next call")} onClick={() => go(1)} disabled={call === model.calls - 1}>▶</button>
        </span>
      </div>
      <div class="names">
        <p><bdi class="full">{shortened(model.names[call], 600)}</bdi></p>
        {!model.alone && <Counterpart call={call} />}
        <Flow call={call} />
        <Why call={call} />
        <Proved call={call} />
      </div>
      <div class="tabs" role="tablist" aria-label={t("about the node")} onKeyDown={onKeyDown}>
        {TABS.map((tab) => (
          <button type="button" role="tab" id={`tab-${tab}`} key={tab} aria-selected={tab === state.tab} aria-controls="tabpanel"
            tabIndex={tab === state.tab ? 0 : -1} onClick={() => set({ tab })}>{TAB_TITLES[tab]}</button>
        ))}
      </div>
      <div class="tabpanel" role="tabpanel" id="tabpanel" aria-labelledby={`tab-${state.tab}`} tabIndex={0}>{figures ? <Contents figures={figures} /> : <p class="muted">{t("decoding…")}</p>}</div>
    </section>
  );
}

function Counterpart({ call }: { call: number }) {
  const { model } = usePage();
  const golden = model.golden(call);
  if (!(model.callFlags[call] & CallFlag.TARGET)) return <p class="muted">{t("∅ the golden alone has it")}</p>;
  if (!golden) return <p class="muted">{t("∅ no counterpart in the golden")}</p>;
  const how = printable(model.hows[model.how[call]] || "name");
  return <p class="muted">{t("golden")}{" "}<bdi>{shortened(golden, 600)}</bdi> <span class="chip">{t("paired by {how}", { how: t(how) })}</span></p>;
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
  return <div class="flows" title={t("error ratios: up to 1 is what rounding explains; in: the largest of inputs, parameters and calls inside")}>{bar(t("error in"), model.taken[call])}{bar(t("out"), model.given[call])}<span class="muted">{t("adds ×{added}", { added: short(model.added(call)) })}</span></div>;
}

/** Why the selection is what it is: an origin, inherited, explained. */
function Why({ call }: { call: number }) {
  const { model, state } = usePage();
  const reasons = useLoaded(() => loadReasons(model), model);
  const asked = useLoaded(() => askedOf(model, state.row), state.row);
  const told = asked && <details class="muted asked"><summary>{t("explanations tried:")} {shortened(asked.split("; ")[0], 100)}</summary>{shortened(asked.split("; ").slice(1).join("; "), 1500)}</details>;
  const origin = model.originOfCall.get(call);
  if (origin) {
    return (
      <div class={`why origin-box${origin === model.index.origins[0] ? " told-above" : ""}`}>
        <p><Label outcome={Outcome.ORIGIN} /> <span class="chip">{t(printable(origin.kind))}</span> <span class="said">{shortened(origin.reason, 600)}</span></p>
        {origin.details.length > 0 && <ul class="said">{origin.details.slice(0, 8).map((each, place) => <li key={place}>{shortened(each, 600)}</li>)}</ul>}
        {origin.site && <p class="muted said">{t("called at")}{" "}<bdi>{shortened(origin.site, 300)}</bdi></p>}
        {origin.command && <p class="command"><CopyButton text={() => origin.command} title={shortened(origin.command, 300)}>{t("copy --node …")}</CopyButton>{" "}{t("to compare in detail")}</p>}
        {told}
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
      <p><Label outcome={model.outcome[row]} /> {shortened(model.slotOf(row), 80)}
        {from > 0 && <> {t("from")} <Goto call={from - 1} /></>}
        {explained && <> {t("by")} {printable(explained)}</>}{reason && reason !== explained && <>: {shortened(reason, 600)}</>}</p>
      {told}
    </div>
  );
}

/** What was proved of the call; of one that differs and was not, the command that proves it. */
function Proved({ call }: { call: number }) {
  const { model } = usePage();
  const { prove, proofs } = model.index, name = model.names[call], command = `${prove} --node ${name}`;
  const proof = proofs?.find(({ calls }) => calls.includes(name));
  if (proof) {
    return (
      <details class="why proof">
        <summary><span class="chip">{t(printable(proof.answer))}</span> {shortened(proof.sentence, 600)}</summary>
        <ul>{proof.details.slice(0, 20).map((each, place) => <li key={place}>{shortened(each, 600)}</li>)}</ul>
      </details>
    );
  }
  // A name that a shell would take for something else is left to the user.
  if (!prove || model.callOutcome[call] < Outcome.INHERITED || !(model.callFlags[call] & CallFlag.TARGET) || !/^[\w.-]+$/.test(name)) return null;
  return <p><CopyButton text={() => command} title={command}>{t("copy the command that says which side is wrong")}</CopyButton></p>;
}

/** Whether all that came before an origin agrees: inputs, parameters, dtypes. */
function Before({ call }: { call: number }) {
  const { model } = usePage();
  const figures = useFigures(model);
  const counts = useMemo(() => {
    const counts = new Map<string, { all: number; bad: number[] }>();
    const count = (kind: string, good: boolean, row: number) => {
      const known = counts.get(kind) ?? { all: 0, bad: [] };
      counts.set(kind, known);
      known.all++;
      if (!good) known.bad.push(row);
    };
    for (let row = 0; row < model.firstRow[call]; row++) {
      if ((model.flags[row] & 3) !== 3) continue;
      const slot = model.slotOf(row);
      count(["parameter", "input"].find((kind) => slot.startsWith(kind)) ?? "output", !(model.flags[row] & RowFlag.DIFFERS), row);
      if (!figures || !(model.flags[row] & RowFlag.TENSOR) || figures.place(row) < 0) continue;
      count("dtype", dtypeMeaning(figures.type("target", row)) === dtypeMeaning(figures.type("golden", row)), row);
    }
    return [...counts].sort(([, one], [, other]) => one.bad.length - other.bad.length);
  }, [model, figures, call]);
  if (!counts.length) return <p class="muted">{t("Nothing was compared before it.")}</p>;
  return (
    <p class="before muted">{t("before it:")}{" "}
      {counts.map(([kind, { all, bad }]) => (!bad.length ? <span key={kind}>✓ {t("{count} agree", { count: plural(all, kind) })} </span>
        : <span key={kind} class="differs">≠ {t("{bad} of {count} differ:", { bad: bad.length, count: plural(all, kind) })} <Goto call={model.rowCall[bad[0]]} row={bad[0]} /> </span>))}
    </p>
  );
}
