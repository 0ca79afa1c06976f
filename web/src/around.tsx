/** What is around the selected call: its neighbours, the lines that made it, all that the page holds of it. */

import { useMemo } from "preact/hooks";
import { CopyButton, Glyph, Goto } from "./controls.tsx";
import { aligned } from "./diff.ts";
import { type Figures, STATISTICS } from "./figures.ts";
import { type Model } from "./model.ts";
import { consumers, type Neighbour, producers } from "./neighbours.ts";
import { useLoaded, usePage } from "./page.ts";
import { figure, short, shortened } from "./text.ts";
import { t } from "./texts.ts";

export function NeighboursTab({ figures }: { figures: Figures }) {
  const { model, state } = usePage();
  const found = useMemo(() => ({ before: producers(model, figures, state.call), after: consumers(model, figures, state.call) }),
    [figures, model, state.call]);
  const above = model.parent[state.call] - 1;
  return (
    <div class="neighbours">
      <Side title={t("comes from  ( [ )")} list={found.before} empty={t("No earlier call gave out a tensor of the same statistics.")} />
      <div class="here">
        <h3>{t("here")}</h3>
        <p><bdi>{shortened(model.names[state.call], 160)}</bdi></p>
        <p class="muted">{t("in {taken} → out {given}", { taken: short(model.taken[state.call]), given: short(model.given[state.call]) })}</p>
        {above >= 0 && <p class="muted">{t("inside of")} <Goto call={above} /></p>}
      </div>
      <Side title={t("goes to  ( ] )")} list={found.after} empty={t("No later call took in a tensor of the same statistics.")} />
      <p class="muted wide">{t("Neighbours are inferred from tensors of equal statistics: a dump does not record what feeds what.")}</p>
    </div>
  );
}

function Side({ title, list, empty }: { title: string; list: Neighbour[]; empty: string }) {
  const { model } = usePage();
  return (
    <div><h3>{title}</h3>
      {!list.length && <p class="muted">{empty}</p>}
      <ul>{list.map((each) => (
        <li key={each.call}><Glyph outcome={model.outcome[each.row]} /> <Goto call={each.call} row={each.row} />
          <span class="muted"> {shortened(model.slotOf(each.row), 40)} = {shortened(model.slotOf(each.by), 40)}, {model.ratioText(each.row)}</span></li>
      ))}</ul></div>
  );
}

/** Frames of a call on both sides, innermost first. */
async function loadStacks(model: Model, call: number): Promise<[string[], string[]]> {
  const side = async (column: string) => {
    if (!model.columns.has(column)) return [];
    const frames = model.columns.has("frames") ? await model.columns.json<string>("frames") : [];
    const stack = (await model.columns.dictionary<(number | string)[]>(column))[(await model.columns.numbers(column))[call]] ?? [];
    return stack.map((frame) => (typeof frame === "number" ? (frames[frame] ?? "") : frame));
  };
  return [await side("call_stack"), await side("call_golden_stack")];
}

export function StackTab() {
  const { model, state } = usePage();
  const stacks = useLoaded(() => loadStacks(model, state.call), state.call);
  if (!stacks) return <p class="muted">{t("decoding…")}</p>;
  if (!stacks[0].length && !stacks[1].length) return <p class="empty">{t("The dumps hold no stack of this call.")}</p>;
  const frame = (text: string | null) => text !== null && frameParts(text).map((each, place) => <div key={place} class={place ? "code" : ""}>{shortened(each, 300)}</div>);
  return (
    <table class="stacks"><caption class="hidden">{t("stack of the call on both sides, innermost first")}</caption>
      <thead><tr><th scope="col"><span class="hidden">{t("differs")}</span></th><th scope="col">{t("target")}</th><th scope="col">{t("golden")}</th></tr></thead>
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

export function RawTab({ figures }: { figures: Figures }) {
  const { model, state: { call, row } } = usePage();
  if (row < 0) return <p class="empty">{t("Select a value.")}</p>;
  const side = (name: "target" | "golden") => ({
    type: figures.type(name, row), text: figures.text(name, row),
    ...Object.fromEntries(STATISTICS.map((each) => [each, plain(figures.value(`${name}_${each}`, row))])),
  });
  const raw = {
    call, entry: model.names[call], golden: model.golden(call) || null, paired_by: model.hows[model.how[call]],
    call_flags: model.callFlags[call], taken: plain(model.taken[call]), given: plain(model.given[call]),
    row, slot: model.slotOf(row), flags: model.flags[row], deviation: plain(model.deviationOf(row)),
    tolerance: model.tolerance(row), error_ratio: plain(model.ratio[row]),
    inherited_from: model.names[model.inherited[row] - 1] ?? null, target_figures: side("target"), golden_figures: side("golden"),
  };
  const text = JSON.stringify(raw, null, 1);
  return <div class="raw"><CopyButton text={() => text}>{t("copy")}</CopyButton><pre>{text.split("\n").map((line) => shortened(line, 400)).join("\n")}</pre></div>;
}

/** A number as JSON can hold it. */
function plain(value: number | null | undefined): number | string | null {
  return value === null || value === undefined ? null : Number.isFinite(value) ? Number(figure(value)) : figure(value);
}
