/** Every value in a table of which only what is seen is in the document. */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLines } from "./canvas.tsx";
import { CopyButton, copyText, Label } from "./controls.tsx";
import { placeIn } from "./data.ts";
import { type Figures } from "./figures.ts";
import { filterNames } from "./filter.ts";
import { type Model } from "./model.ts";
import { ALL, loadFigures, type Sort, useFigures, useLoaded, usePage } from "./page.ts";
import { dtypeOf, HEADERS, loadReasons, narrowed, type Reasons, sorted, tabbed } from "./rows.ts";
import { grouped, plural, printable, short, shortened } from "./text.ts";
import { t } from "./texts.ts";

const COPIED = 100_000;

export function Table() {
  const { model, state, set, select } = usePage();
  const { rows, problem } = useRows();
  const [typed, setTyped] = useState(state.q);
  useEffect(() => setTyped(state.q), [state.q]);
  useEffect(() => {
    if (typed === state.q) return undefined;
    const later = setTimeout(() => set({ q: typed }), 120);
    return () => clearTimeout(later);
  }, [typed]);
  const narrowed = rows.length !== model.rows;
  return (
    <section class="panel table" aria-labelledby="table-title">
      <div class="bar">
        <h2 id="table-title">{t("Values")}</h2>
        <input id="filter" type="search" placeholder={t("filter names: words, or /expression/   ( / )")} aria-label={t("filter names: words, or an expression between slashes")}
          value={typed} onInput={(event) => setTyped(event.currentTarget.value)} spellcheck={false} />
        <FacetMenus />
        <span class="muted" role="status">{narrowed ? t("{part} of {whole}", { part: grouped(rows.length), whole: plural(model.rows, "value") }) : plural(model.rows, "value")}</span>
        {narrowed && <button type="button" onClick={() => set({ q: "", facets: ALL })}>{t("show all")}</button>}
        <span class="spring" />
        <CopyTable rows={rows} />
      </div>
      {problem && <p class="note" role="status">{problem}</p>}
      <Grid rows={rows} select={(row) => select(model.rowCall[row], row)} />
    </section>
  );
}

function CopyTable({ rows }: { rows: Uint32Array }) {
  const { model } = usePage();
  const copied = rows.subarray(0, COPIED);
  const text = async () => {
    const [figures, reasons] = await Promise.all([loadFigures(model), loadReasons(model)]);
    return [HEADERS.join("\t"), ...Array.from(copied, (row) => tabbed(model, figures, reasons, row))].join("\n");
  };
  return <CopyButton text={text} done={t("{rows} copied", { rows: plural(copied.length, "row") })} title={t("the rows as they are filtered and sorted, separated by tabs")}>{t("copy table")}</CopyButton>;
}

function FacetMenus() {
  const { model, state, set } = usePage();
  const figures = useFigures(model);
  const menus = useMemo(() => {
    const outcomes = [...new Set<number>(model.outcome)].sort((a, b) => b - a);
    const phases = new Set(model.names.map((_, call) => model.phase(call)));
    const dtypes = [...new Set(figures?.types("target")?.texts.map(dtypeOf))].filter(Boolean).sort();
    return [["outcome", t("all results"), outcomes.map((each) => [String(each), model.words[each]])], ["phase", t("all phases"), [...phases].map((each) => [each, t(each)])],
      ["kind", t("all kinds"), KINDS], ["type", t("all dtypes"), dtypes.map((each) => [each, each === "null" ? t("no value") : printable(each)])]] as const;
  }, [model, figures]);
  return <>{menus.map(([facet, all, options]) => (
    <select aria-label={LABELS[facet]} key={facet} value={state.facets[facet]} class={state.facets[facet] && "chosen"}
      onChange={(event) => set({ facets: { ...state.facets, [facet]: event.currentTarget.value } })}>
      <option value="">{all}</option>{options.map(([value, text]) => <option value={value} key={value}>{text}</option>)}
    </select>
  ))}</>;
}

const KINDS = [["module", t("modules")], ["api", t("functions")], ["input", t("inputs")], ["output", t("outputs")], ["parameter", t("parameters")],
  ["nonfinite", t("NaN or infinite")]];
const LABELS = { outcome: t("result"), phase: t("phase"), kind: t("kind"), type: t("dtype") };

function useRows(): { rows: Uint32Array; problem: string } {
  const { model, state } = usePage();
  const figures = useFigures(model);
  const filter = useMemo(() => filterNames(model, state.q), [model, state.q]);
  const kept = useMemo(() => narrowed(model, filter.passes, state.facets, figures),
    [model, filter, state.facets, state.facets.type ? figures : null]);
  const rows = useMemo(() => sorted(model, kept, state.sort), [model, kept, state.sort]);
  return { rows, problem: filter.problem };
}

interface Shown { model: Model; figures: Figures | null; reasons: Reasons | null }

/** Title, what it sorts by, style, and what stands in a row. */
const COLUMNS: readonly (readonly [string, Sort | null, string, (shown: Shown, row: number) => ComponentChildren])[] = [
  [t("Result"), "order", "result", ({ model }, row) => <Label outcome={model.outcome[row]} />],
  [t("Error ratio"), "ratio", "number", ({ model }, row) => model.ratioText(row)],
  [t("Deviation"), "deviation", "number", ({ model }, row) => short(model.deviationOf(row))],
  [t("Tolerance"), null, "number muted", ({ model }, row) => short(model.tolerance(row))],
  [t("Name"), "name", "name", ({ model }, row) => <NameOf model={model} row={row} />],
  [t("Type"), null, "type muted", ({ figures }, row) => shortened(figures?.type("target", row) || figures?.type("golden", row) || "", 60)],
  [t("Max"), null, "number figures", ({ figures }, row) => short(figures?.value("target_max", row), "")],
  [t("Norm"), null, "number figures", ({ figures }, row) => short(figures?.value("target_norm", row), "")],
  [t("Reason"), null, "reason muted", ({ model, reasons }, row) => shortened(reasons?.texts[reasons.codes[row]] ||
    (model.inherited[row] > 0 ? `${t("from")} ${model.names[model.inherited[row] - 1] ?? ""}` : ""))],
];

function Grid({ rows, select }: { rows: Uint32Array; select: (row: number) => void }) {
  const { model, state, set } = usePage();
  const { scroller, spacer, body, first, last, shown, reveal, moved, onScroll } = useLines(rows.length, 1);
  const [active, setActive] = useState(0);
  const figures = useFigures(model);
  const reasons = useLoaded(() => loadReasons(model), model);
  // The table follows the selection; a new filter without it, and a new order, begin at the first row.
  const sortBefore = useRef(state.sort);
  useEffect(() => {
    const place = state.row < 0 ? -1 : state.sort === "order" ? placeIn(rows, state.row) : rows.indexOf(state.row);
    setActive(Math.max(0, place));
    if (place >= 0 && state.sort === sortBefore.current) reveal(place);
    else scroller.current!.scrollTop = 0;
    sortBefore.current = state.sort;
  }, [state.row, rows]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return; // a title's
    const next = moved(event.key, active);
    if (next !== null) {
      setActive(next);
      reveal(next);
    } else if ((event.key === "Enter" || event.key === " ") && rows.length) select(rows[active]);
    else if (event.key === "c" && (event.ctrlKey || event.metaKey) && figures && reasons && !String(getSelection())) {
      void copyText(tabbed(model, figures, reasons, rows[active]));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const line = (place: number) => {
    const row = rows[place];
    const near = `${place === active ? " active" : ""}${model.rowCall[row] === state.call ? " near" : ""}`;
    return (
      <div role="row" id={`row${place}`} key={place - first} aria-rowindex={place + 2} aria-selected={row === state.row} class={`row${near}`}
        onClick={() => { setActive(place); select(row); }}>
        {COLUMNS.map(([title, , style, cell]) => <span role="gridcell" class={style} key={title}>{cell({ model, figures, reasons }, row)}</span>)}
      </div>
    );
  };
  return (
    <div class={model.alone ? "grid single" : "grid"} ref={scroller} onScroll={onScroll} role="grid" tabIndex={0} id="grid"
      aria-labelledby="table-title" aria-rowcount={rows.length + 1} aria-colcount={COLUMNS.length}
      aria-activedescendant={active >= first && active < last ? `row${active}` : undefined} onKeyDown={onKeyDown}>
      <div class="row head" role="row" aria-rowindex={1}>
        {COLUMNS.map((column) => <Title key={column[0]} column={column} sort={state.sort} set={(sort) => set({ sort })} />)}
      </div>
      <div ref={spacer} class="spacer" role="presentation"><div ref={body} class="body" role="rowgroup">{shown.map(line)}</div></div>
      {!rows.length && <p class="empty">{model.rows ? t("No value passes the filter.") : t("There are no values.")}</p>}
    </div>
  );
}

/** A title of a column; a button where the table sorts by it. */
function Title({ column: [title, by, style], sort, set }: { column: (typeof COLUMNS)[number]; sort: Sort; set: (sort: Sort) => void }) {
  const order = by === sort ? (by === "name" || by === "order" ? "ascending" : "descending") : undefined;
  const arrow = !order || by === "order" ? "" : order === "ascending" ? " ↑" : " ↓";
  const help = by === "order" ? t("in execution order") : t("sort by {title}", { title: title.toLowerCase() });
  return (
    <span role="columnheader" class={style} aria-sort={order}>
      {by ? <button type="button" onClick={() => set(by === sort ? "order" : by)} title={help}>{title}{arrow}</button> : title}
    </span>
  );
}

/** A name whose slot stands out. Where there is no room its beginning gives way, and on narrow pages class and direction. */
function NameOf({ model, row }: { model: Model; row: number }) {
  const name = shortened(model.names[model.rowCall[row]]), end = /(?:\.\w+)?\.(?:forward|backward|parameters_grad)\.\d+$/.exec(name)?.[0] ?? "";
  const brief = end.includes("backward") ? " ◂" : "";
  return <bdi title={shortened(model.rowName(row), 2000)}>{name.slice(0, name.length - end.length)}<span class="middle" data-brief={brief}>{end}</span><b>.{shortened(model.slotOf(row), 60)}</b></bdi>;
}
