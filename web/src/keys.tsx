/** Keys of the page. Those that are a single letter count only while no field has the focus, and can be switched off. */

import { useEffect, useRef } from "preact/hooks";
import { copyText, Dialog } from "./controls.tsx";
import { Figures } from "./figures.ts";
import { type Model } from "./model.ts";
import { loadFigures, type PageContext, TABS, usePage } from "./page.ts";
import { consumers, producers } from "./neighbours.ts";
import { t } from "./texts.ts";

const KEYS: readonly { keys: string[]; shown: string; does: string; run: (page: PageContext) => void | Promise<void> }[] = [
  { keys: ["?"], shown: "?", does: t("show or hide this help"), run: ({ state, set }) => set({ help: !state.help }) },
  { keys: ["/"], shown: "/", does: t("go to the filter"), run: () => document.getElementById("filter")?.focus() },
  { keys: ["o"], shown: "o", does: t("next origin"), run: (page) => goTo(page, page.model.originFrom(page.state.call, 1)) },
  { keys: ["O"], shown: "O", does: t("previous origin"), run: (page) => goTo(page, page.model.originFrom(page.state.call, -1)) },
  { keys: ["n"], shown: "n", does: t("next value that is NaN or infinite"), run: nextNonFinite },
  { keys: ["ArrowLeft"], shown: "←", does: t("previous call"), run: (page) => goTo(page, page.state.call - 1) },
  { keys: ["ArrowRight"], shown: "→", does: t("next call"), run: (page) => goTo(page, page.state.call + 1) },
  { keys: ["["], shown: "[", does: t("what made the inputs of the call"), run: (page) => neighbour(page, producers) },
  { keys: ["]"], shown: "]", does: t("what takes in its outputs"), run: (page) => neighbour(page, consumers) },
  { keys: ["+", "="], shown: "+", does: t("zoom in at the selection"), run: ({ zoom }) => zoom(0.5) },
  { keys: ["-"], shown: "−", does: t("zoom out"), run: ({ zoom }) => zoom(2) },
  { keys: ["0"], shown: "0", does: t("show the whole execution"), run: ({ set }) => set({ x: null }) },
  { keys: ["t"], shown: "t", does: t("go to the table (↑ ↓ and Enter select)"), run: () => document.getElementById("grid")?.focus() },
  { keys: ["m"], shown: "m", does: t("icicle or trees"), run: ({ state, set }) => set({ view: state.view === "icicle" ? "trees" : "icicle" }) },
  { keys: ["v"], shown: "v", does: t("next view of the node: figures, elements, neighbours, stack"), run: ({ state, set }) => {
    set({ tab: TABS[(TABS.indexOf(state.tab) + 1) % TABS.length] });
    setTimeout(() => document.querySelector(".tabs")?.scrollIntoView({ block: "nearest" }), 50); // it may lie below the window
  } },
  { keys: ["c"], shown: "c", does: t("copy a link to what is shown"), run: () => void copyText(location.href) },
  { keys: ["Escape"], shown: "Esc", does: t("close, or take back the filter and the zoom"), run: escape },
];

const WORDS_TOLD = [
  [t("deviation"), t("how far the two are apart, relative to their size")], [t("tolerance"), t("the deviation that rounding explains, by dtype, size and framework")],
  [t("error ratio"), t("deviation ÷ tolerance: up to 1 is normal for the dtype")], [t("added error"), t("ratio given out ÷ ratio taken in, if over 1: the call's own doing")],
  [`✖ ${t("origin")}`, t("its inputs agree, its result does not: look here first")], [`↳ ${t("inherited")}`, t("comes from the error that reached it")],
  [`≠ ${t("differs")}`, t("beyond its tolerance, no origin found")], [`~ ${t("explained")}`, t("beyond its tolerance, for the reason told with it")],
] as const;

const SINGLE = /^[a-zA-Z0-9?/+=[\]-]$/;

export function Keys() {
  const page = usePage();
  const latest = useRef(page);
  latest.current = page;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const target = event.target as HTMLElement;
      if (target.matches?.("input:not([type=checkbox]), textarea, select")) {
        // Out of the field first; what was typed stays.
        if (event.key === "Escape") target.blur(), event.preventDefault();
        return;
      }
      if (SINGLE.test(event.key) && !latest.current.state.shortcuts && event.key !== "?") return;
      if (event.key.startsWith("Arrow") && target.matches?.('[role="tab"], [role="tree"], [role="grid"]')) return;
      const key = KEYS.find((each) => each.keys.includes(event.key));
      if (!key) return;
      event.preventDefault();
      void key.run(latest.current);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  return page.state.help ? <Help page={page} /> : null;
}

function Help({ page: { state, set } }: { page: PageContext }) {
  return (
    <Dialog title={t("Words and keys")} close={() => set({ help: false })}>
      <dl class="words">{WORDS_TOLD.map(([word, told]) => <div key={word}><dt>{word}</dt><dd>{told}</dd></div>)}</dl>
      <dl>{KEYS.map((key) => <div key={key.shown}><dt><kbd>{key.shown}</kbd></dt><dd>{key.does}</dd></div>)}</dl>
      <p>{t("In the plot: drag to zoom, click to select, double-click for all.")}</p>
      <label><input type="checkbox" checked={state.shortcuts} onChange={(event) => set({ shortcuts: event.currentTarget.checked })} />{" "}{t("keys of a single letter")}</label>
    </Dialog>
  );
}

function goTo(page: PageContext, call: number): void {
  if (call >= 0 && call < page.model.calls) page.select(call);
}

function nextNonFinite({ model, state, select, set }: PageContext): void {
  for (let step = 1; step <= model.rows; step++) {
    const row = (Math.max(-1, state.row) + step) % model.rows;
    if (model.nonFinite(row)) return select(model.rowCall[row], row);
  }
  set({ note: t("Nothing here is NaN or infinite.") });
}

async function neighbour(page: PageContext, find: (model: Model, figures: Figures, call: number) => { call: number; row: number }[]): Promise<void> {
  if (page.state.call < 0) return;
  const found = find(page.model, await loadFigures(page.model), page.state.call);
  if (found.length) page.select(found[0].call, found[0].row);
  else page.set({ note: t("No call there has a tensor of the same statistics.") });
}

function escape({ state, set }: PageContext): void {
  if (state.help) set({ help: false });
  else if (state.note) set({ note: "" });
  else if (state.q) set({ q: "" });
  else set({ x: null });
}
