/** Every value in a table of which only what is seen is in the document. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { copyText, Label } from "./controls.tsx";
import { type Figures } from "./figures.ts";
import { filterNames } from "./filter.ts";
import { ALONE_WORDS, type Model, WORDS } from "./model.ts";
import { ALL, type Facets, loadFigures, type PageContext, type Sort, useFigures, useLoaded, usePage } from "./page.ts";
import { ratioText } from "./plot.tsx";
import { dtypeOf, HEADERS, loadReasons, narrowed, type Reasons, sorted, tabbed } from "./rows.ts";
import { grouped, plural, printable, short, shortened } from "./text.ts";

const ROW_HEIGHT = 24;
/** Browsers cap the height of an element: beyond this the table scrolls in proportion. */
const TALLEST = 8_000_000;
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
        <h2 id="table-title">Values</h2>
        <input id="filter" type="search" placeholder="filter names: words, or /expression/   ( / )" aria-label="filter names: words, or an expression between slashes"
          value={typed} onInput={(event) => setTyped(event.currentTarget.value)} spellcheck={false} />
        <FacetMenus />
        <span class="muted" role="status">{narrowed ? `${grouped(rows.length)} of ` : ""}{plural(model.rows, "value")}</span>
        {narrowed && <button type="button" onClick={() => set({ q: "", facets: ALL })}>show all</button>}
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
  const [done, setDone] = useState("");
  const copy = async () => {
    const figures = await loadFigures(model);
    const reasons = await loadReasons(model);
    const lines = [HEADERS.join("\t")];
    for (const row of rows.subarray(0, COPIED)) lines.push(tabbed(model, figures, reasons, row));
    setDone((await copyText(lines.join("\n"))) ? `${plural(lines.length - 1, "row")} copied` : "not copied");
    setTimeout(() => setDone(""), 2000);
  };
  return <button type="button" onClick={copy} title="the rows as they are filtered and sorted, separated by tabs"><span role="status">{done || "copy table"}</span></button>;
}

function FacetMenus() {
  const { model, state, set } = usePage();
  const figures = useFigures(model);
  const facet = (patch: Partial<Facets>) => set({ facets: { ...state.facets, ...patch } });
  const present = useMemo(() => {
    const outcomes = new Set<number>(model.outcome);
    const phases = new Set(model.names.map((_, call) => model.phase(call)));
    return { outcomes: [...outcomes].sort((a, b) => b - a), phases: [...phases] };
  }, [model]);
  const dtypes = useMemo(() => {
    const types = figures?.types("target");
    return types ? [...new Set(types.texts.map(dtypeOf))].filter(Boolean).sort() : [];
  }, [figures]);
  return (
    <>
      <Menu label="result" value={String(state.facets.outcome)} set={(value) => facet({ outcome: Number(value) })}
        options={[["-1", "all results"], ...present.outcomes.map((each) => [String(each), (model.alone ? ALONE_WORDS : WORDS)[each]] as const)]} />
      <Menu label="phase" value={state.facets.phase} set={(phase) => facet({ phase })}
        options={[["", "all phases"], ...present.phases.map((each) => [each, each] as const)]} />
      <Menu label="kind" value={state.facets.kind} set={(kind) => facet({ kind })}
        options={KINDS} />
      <Menu label="dtype" value={state.facets.type} set={(type) => facet({ type })}
        options={[["", "all dtypes"], ...dtypes.map((each) => [each, printable(each)] as const)]} />
    </>
  );
}

const KINDS = [
  ["", "all kinds"], ["module", "modules"], ["api", "functions"], ["input", "inputs"], ["output", "outputs"],
  ["parameter", "parameters"], ["nonfinite", "NaN or infinite"],
] as const;

function Menu({ label, value, set, options }: {
  label: string; value: string; set: (value: string) => void; options: readonly (readonly [string, string])[];
}) {
  return (
    <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)} class={value && value !== "-1" ? "chosen" : ""}>
      {options.map(([each, text]) => <option value={each} key={each}>{text}</option>)}
    </select>
  );
}

function useRows(): { rows: Uint32Array; problem: string } {
  const { model, state } = usePage();
  const figures = useFigures(model);
  const filter = useMemo(() => filterNames(model, state.q), [model, state.q]);
  const kept = useMemo(() => narrowed(model, filter.passes, state.facets, figures),
    [model, filter, state.facets, state.facets.type ? figures : null]);
  const rows = useMemo(() => sorted(model, kept, state.sort), [model, kept, state.sort]);
  return { rows, problem: filter.problem };
}

const COLUMNS: readonly (readonly [string, Sort | null, string])[] = [
  ["Result", "order", "result"], ["Error ratio", "ratio", "number"], ["Deviation", "deviation", "number"],
  ["Tolerance", null, "number"], ["Name", "name", "name"], ["Type", null, "type"], ["Max", null, "number figures"], ["Norm", null, "number figures"],
  ["Reason", null, "reason"],
];

function Grid({ rows, select }: { rows: Uint32Array; select: (row: number) => void }) {
  const { model, state, set } = usePage();
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(480);
  const [active, setActive] = useState(0);
  const figures = useFigures(model);
  const reasons = useLoaded(() => loadReasons(model), model);
  const full = rows.length * ROW_HEIGHT;
  const tall = Math.min(full, TALLEST);
  const room = Math.max(1, height - ROW_HEIGHT);
  const stretch = tall > room && full > tall ? (full - room) / (tall - room) : 1;
  const first = Math.max(0, Math.min(rows.length - 1, Math.floor((top * stretch) / ROW_HEIGHT)));
  const last = Math.min(rows.length, first + Math.ceil(room / ROW_HEIGHT) + 2);

  useLayoutEffect(() => {
    const element = scroller.current!;
    const measure = () => setHeight(element.clientHeight);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    spacer.current!.style.height = `${tall}px`;
    const shift = stretch === 1 ? first * ROW_HEIGHT : top - (((top * stretch) / ROW_HEIGHT) % 1) * ROW_HEIGHT;
    body.current!.style.transform = `translateY(${shift}px)`;
  });
  const reveal = (place: number) => {
    const element = scroller.current!;
    const at = (place * ROW_HEIGHT) / stretch;
    if (at < element.scrollTop || at > element.scrollTop + room - ROW_HEIGHT / stretch) {
      element.scrollTop = Math.max(0, at - (stretch === 1 ? room / 3 : 0));
    }
  };
  // The table follows the selection; a new filter without it, and a new order, begin at the first row.
  const sortBefore = useRef(state.sort);
  useEffect(() => {
    const place = state.row >= 0 ? placeOf(rows, state.row, state.sort) : -1;
    setActive(Math.max(0, place));
    if (place >= 0 && state.sort === sortBefore.current) reveal(place);
    else scroller.current!.scrollTop = 0;
    sortBefore.current = state.sort;
  }, [state.row, rows]);
  const move = (place: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, place));
    setActive(next);
    reveal(next);
  };
  const page = Math.max(1, Math.floor(room / ROW_HEIGHT) - 1);
  const steps = new Map([["ArrowDown", 1], ["ArrowUp", -1], ["PageDown", page], ["PageUp", -page], ["Home", -rows.length], ["End", rows.length]]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return; // a title's
    const step = steps.get(event.key);
    if (step !== undefined) move(active + step);
    else if ((event.key === "Enter" || event.key === " ") && rows.length) select(rows[active]);
    else if (event.key === "c" && (event.ctrlKey || event.metaKey) && figures && reasons && !String(getSelection())) {
      void copyText(tabbed(model, figures, reasons, rows[active]));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown: JSX.Element[] = [];
  for (let place = first; place < last; place++) {
    shown.push(<Row key={place - first} place={place} row={rows[place]} page={{ model, state }} figures={figures} reasons={reasons}
      active={place === active} onClick={() => { setActive(place); select(rows[place]); }} />);
  }
  return (
    <div class={model.alone ? "grid single" : "grid"} ref={scroller} onScroll={(event) => setTop(event.currentTarget.scrollTop)} role="grid" tabIndex={0} id="grid"
      aria-labelledby="table-title" aria-rowcount={rows.length + 1} aria-colcount={COLUMNS.length}
      aria-activedescendant={active >= first && active < last ? `row${active}` : undefined} onKeyDown={onKeyDown}>
      <div class="row head" role="row" aria-rowindex={1}>
        {COLUMNS.map((column) => <Title key={column[0]} column={column} sort={state.sort} set={(sort) => set({ sort })} />)}
      </div>
      <div ref={spacer} class="spacer" role="presentation"><div ref={body} class="body" role="rowgroup">{shown}</div></div>
      {!rows.length && <p class="empty">No value passes the filter.</p>}
    </div>
  );
}

/** A title of a column; a button where the table sorts by it. */
function Title({ column: [title, by, style], sort, set }: { column: (typeof COLUMNS)[number]; sort: Sort; set: (sort: Sort) => void }) {
  const order = by === sort ? (by === "name" || by === "order" ? "ascending" : "descending") : undefined;
  const arrow = !order || by === "order" ? "" : order === "ascending" ? " ↑" : " ↓";
  const help = by === "order" ? "in execution order" : `sort by ${title.toLowerCase()}`;
  return (
    <span role="columnheader" class={style} aria-sort={order}>
      {by ? <button type="button" onClick={() => set(by === sort ? "order" : by)} title={help}>{title}{arrow}</button> : title}
    </span>
  );
}

function placeOf(rows: Uint32Array, row: number, sort: Sort): number {
  if (sort !== "order") return rows.indexOf(row);
  let low = 0, high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (rows[middle] === row) return middle;
    if (rows[middle] < row) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

interface RowProps {
  place: number;
  row: number;
  page: Pick<PageContext, "model" | "state">;
  figures: Figures | null;
  reasons: Reasons | null;
  active: boolean;
  onClick: () => void;
}

function Row({ place, row, page: { model, state }, figures, reasons, active, onClick }: RowProps) {
  const outcome = model.outcome[row];
  const tolerance = model.tolerance(row);
  const reason = reasons ? (reasons.texts[reasons.codes[row]] ?? "") : "";
  const number = (name: string) => {
    const value = figures?.value(`target_${name}`, row);
    return value === null || value === undefined ? "" : short(value);
  };
  const from = model.inherited[row] > 0 ? `from ${model.names[model.inherited[row] - 1] ?? ""}` : "";
  return (
    <div role="row" id={`row${place}`} aria-rowindex={place + 2} aria-selected={row === state.row}
      class={`row${active ? " active" : ""}${model.rowCall[row] === state.call ? " near" : ""}`} onClick={onClick}>
      <span role="gridcell" class="result"><Label outcome={outcome} alone={model.alone} /></span>
      <span role="gridcell" class="number">{ratioText(model, row)}</span>
      <span role="gridcell" class="number">{model.hasDeviation(row) ? short(model.deviation[row]) : "–"}</span>
      <span role="gridcell" class="number muted">{tolerance === null ? "–" : short(tolerance)}</span>
      <span role="gridcell" class="name"><NameOf model={model} row={row} /></span>
      <span role="gridcell" class="type muted">{shortened(figures?.type("target", row) || figures?.type("golden", row) || "", 60)}</span>
      <span role="gridcell" class="number figures">{number("max")}</span>
      <span role="gridcell" class="number figures">{number("norm")}</span>
      <span role="gridcell" class="reason muted">{shortened(reason || from)}</span>
    </div>
  );
}

/** A name whose slot stands out, and whose beginning gives way first where there is no room. */
function NameOf({ model, row }: { model: Model; row: number }) {
  const name = shortened(model.names[model.rowCall[row]]);
  return <bdi title={shortened(model.rowName(row), 2000)}>{name}<b>.{shortened(model.slotOf(row), 60)}</b></bdi>;
}
