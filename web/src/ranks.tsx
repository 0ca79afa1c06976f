/** Many ranks and steps: a cell for each of them, and how nodes fare over the steps. */

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { Canvas, type Draw } from "./canvas.tsx";
import { Dialog, Segmented, ThemeButton, Tools } from "./controls.tsx";
import { bits, type Columns, type Index, largest, NO_NUMBER } from "./data.ts";
import { path } from "./drawing.ts";
import { useLoaded } from "./page.ts";
import type { Colour } from "./theme.ts";
import { plural, printable, short, shortened } from "./text.ts";
import { t } from "./texts.ts";

/** A pair of dumps that were compared, or a dump that was looked at. */
interface Told { step: number | null; rank: string; verdict: string; origin: string; reason: string; handed_by: string; page: string; differing: number }

/** Figures of the nodes of a rank over its steps, a column for each ``measure``; ``growing``: names of nodes. */
interface TrendTold { rank: string; steps: number[]; names: string; measures: { title: string; column: string }[]; growing: string[] }

export interface RanksIndex extends Index { of: "comparisons" | "dumps"; pairs: Told[]; trends: TrendTold[] }

/** Glyph and colour of a verdict. */
const VERDICTS = new Map([["divergent", ["✖", "origin"]], ["consistent", ["✓", "explained"]], ["incomplete", ["≠", "inherited"]],
  ["explained", ["~", "explained"]], ["failed", ["!", "differs"]], ["not finite", ["✖", "origin"]], ["finite", ["✓", "explained"]]]);
/** A verdict; of a pair that is consistent, whether values differ in it all the same, as in the steps after an error. */
const verdictOf = (pair: Told) => (pair.verdict === "consistent" && pair.differing ? "explained" : pair.verdict);
/** Names of pages that may become links: files beside this one, as Python names them. */
const PAGE = /^[\w][\w.+-]*\.html$/;
const LINES = 12;
/** What is told of error ratios, and of figures of dumps: colours, each up to a bound. */
const KINDS: Record<RanksIndex["of"], { bands: readonly (readonly [number, Colour])[]; first: string; legend: string; most: string; field: string }> = {
  comparisons: {
    bands: [[0, "faint"], [0.1, "passes"], [1, "heat0"], [10, "heat1"], [Infinity, "heat2"]], most: t("largest"),
    first: t("the first that differs by itself, not through another rank (←)"), field: t("its error ratio: 1 is what dtype and framework explain"),
    legend: t("Colour: error ratio. Grey up to 0.1, blue up to 1, amber up to 10, red more, ■ infinite or NaN."),
  },
  dumps: {
    bands: [[0, "faint"], [2, "passes"], [10, "heat0"], [100, "heat1"], [Infinity, "heat2"]], most: t("changes most"),
    first: t("the first with NaN or infinity of its own, not through another rank (←)"), field: t("times larger or smaller than in its first step"),
    legend: t("Colour: change since the first step. Grey up to 2 times, blue up to 10, amber up to 100, red more, ■ NaN or infinite."),
  },
};

export function Ranks({ index, columns }: { index: RanksIndex; columns: Columns }) {
  const [help, setHelp] = useState(false);
  useEffect(() => void (onkeydown = (event) => { if (event.key === "?" && !(event.target as HTMLElement).matches("input")) setHelp(true); }), []);
  return (
    <>
      <Tools><ThemeButton /><button type="button" onClick={() => setHelp(true)} aria-label={t("help")} title={t("help")}>?</button></Tools>
      <Matrix pairs={index.pairs} of={index.of} />
      {index.trends.map((trend) => <Trend key={trend.rank} trend={trend} columns={columns} of={index.of} />)}
      {help && <Dialog title={t("How to read this page")} close={() => setHelp(false)}>
        <dl><div><dt>①</dt><dd>{t("{what}: look there first; its own page tells the rest", { what: KINDS[index.of].first })}</dd></div></dl>
        {index.trends.length > 0 && <p>{t("Below, each line is a node and each field a step: {field}.", { field: KINDS[index.of].field })}</p>}
      </Dialog>}
    </>
  );
}

/** The glyphs of pairs, each with what it says. */
const legend = (pairs: Told[]) => [...VERDICTS].filter(([verdict]) => pairs.some((pair) => verdictOf(pair) === verdict))
  .map(([verdict, [glyph]]) => `; ${glyph} ${verdict === "explained" ? t("consistent, though values differ: no error begins there") : t(verdict)}`);

function Matrix({ pairs, of }: { pairs: Told[]; of: RanksIndex["of"] }) {
  const steps = [...new Set(pairs.map((pair) => pair.step))];
  const ranks = [...new Set(pairs.map((pair) => pair.rank))];
  const cells = new Map(pairs.map((pair) => [`${pair.step}/${pair.rank}`, pair]));
  const first = firstOf(pairs);
  const [chosen, setChosen] = useState<Told | undefined>(first ?? pairs[0]);
  const [glyph, colour] = [0, 1].map((place) => (pair: Told) => VERDICTS.get(verdictOf(pair))?.[place] ?? "");
  return (
    <section class="panel" aria-labelledby="ranks-title">
      <div class="bar"><h2 id="ranks-title">{t("Steps × ranks")}</h2><span class="muted">{plural(pairs.length, of === "dumps" ? "dump" : "comparison")}</span></div>
      <div class="matrix" tabIndex={0} role="region" aria-label={t("steps and ranks")}>
        <table>
          <thead><tr><th scope="col">{t("step")}</th>{ranks.map((rank) => <th scope="col" key={rank}>{shortened(rank, 40)}</th>)}</tr></thead>
          <tbody>{steps.map((step) => (
            <tr key={step}><th scope="row">{step ?? "–"}</th>{ranks.map((rank) => {
              const pair = cells.get(`${step}/${rank}`);
              return <td key={rank}>{pair && <button type="button" aria-pressed={pair === chosen} class={colour(pair)} onClick={() => setChosen(pair)}
                aria-label={`${t("step")} ${step}, ${printable(rank)}: ${t(printable(pair.verdict))}${pair.differing ? t(", values differ") : ""}${pair === first ? t(", the first") : ""}`}>
                {pair === first ? "①" : ""}{glyph(pair)}{pair.handed_by ? "←" : ""}</button>}</td>;
            })}</tr>
          ))}</tbody>
        </table>
      </div>
      {chosen && <div class="why" aria-live="polite">
        <p>
          <b class={colour(chosen)}>{glyph(chosen)} {t(printable(chosen.verdict))}</b>{" "}
          {t("step")} {chosen.step ?? "–"}, {shortened(chosen.rank, 60)} {chosen.origin && <>{t("at")} <bdi>{shortened(chosen.origin)}</bdi></>}
        </p>
        {chosen.reason && <p>{shortened(chosen.reason, 600)}</p>}
        {chosen.handed_by && <p>← {t("received through {call}", { call: shortened(chosen.handed_by, 200) })}</p>}
        {PAGE.test(chosen.page) && <p><a href={`./${chosen.page}`}>{t("its own page")}</a></p>}
      </div>}
      <p class="muted">① {KINDS[of].first}{legend(pairs)}</p>
    </section>
  );
}

/** Where it begins: of the first step that differs, the rank that nobody handed the error to. */
function firstOf(pairs: Told[]): Told | undefined {
  const differing = pairs.filter((pair) => VERDICTS.get(pair.verdict)?.[1] === "origin");
  return differing.find((pair) => pair.step === differing[0].step && !pair.handed_by) ?? differing[0];
}

/** Nodes of a rank (down) over the steps (to the right), the largest of each line of pixels; below, the most telling as lines. */
function Trend({ trend, columns, of }: { trend: TrendTold; columns: Columns; of: RanksIndex["of"] }) {
  const [measure, setMeasure] = useState(trend.measures[0].title);
  const [at, setAt] = useState("");
  const [wanted, setWanted] = useState("");
  const column = trend.measures.find((each) => each.title === measure)!.column;
  const loaded = useLoaded(() => Promise.all([columns.json<string>(trend.names), columns.numbers<Uint8Array | Float32Array>(column)]), column);
  const count = trend.steps.length, { bands, legend, most } = KINDS[of], rank = shortened(trend.rank, 60);
  const { names, values, sizes } = useMemo(() => {
    const [names, numbers] = loaded ?? [[], new Uint8Array()];
    const values = numbers instanceof Float32Array ? numbersOf(numbers) : Array.from(numbers, ratioOf);
    return { names, values, sizes: of === "dumps" ? changes(values, count) : (values as number[]) };
  }, [loaded]);
  const draw = useCallback<Draw>((context, width, tall, colours) => {
    for (let line = 0; line < tall; line++) {
      const from = Math.floor((line / tall) * names.length), to = Math.max(from + 1, Math.floor(((line + 1) / tall) * names.length));
      for (let step = 0; step < count; step++) {
        let size = 0;
        for (let node = from; node < Math.min(to, names.length); node++) size = Math.max(size, sizes[node * count + step]);
        context.fillStyle = colours[size === Infinity ? "ink" : bands.find(([upTo]) => size <= upTo)![1]];
        context.fillRect(Math.floor((step / count) * width), line, Math.ceil(width / count), 1);
      }
    }
  }, [names, sizes, count]);
  const onPointerMove = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const node = Math.min(names.length - 1, Math.floor(((event.clientY - box.top) / box.height) * names.length));
    const step = Math.max(0, Math.min(count - 1, Math.floor(((event.clientX - box.left) / box.width) * count)));
    setAt(names[node] === undefined ? "" : `${t("step")} ${trend.steps[step]}: ${shortened(names[node], 160)}, ${t(measure)} ${short(values[node * count + step])}`);
  };
  const row = (node: number) => values.slice(node * count, (node + 1) * count);
  const telling = useMemo(() => {
    const growing = new Set(trend.growing), passes = names.map((name) => name.toLowerCase().includes(wanted.toLowerCase()));
    return largest(names.length, LINES, (node) => (passes[node] ? Math.max(...sizes.slice(node * count, (node + 1) * count)) + (growing.has(names[node]) ? 1e30 : 0) : NaN))
      .map((node) => ({ node, grows: growing.has(names[node]) }));
  }, [names, sizes, wanted]);
  const told = telling.slice(0, 3).map(({ node }) => `${shortened(names[node], 100)} ${row(node).map((each) => short(each)).join(", ")}`).join("; ");
  return (
    <section class="panel" aria-label={t("{rank} over the steps", { rank })}>
      <div class="bar">
        <h2>{t("{rank}: {measure} of nodes ↓ over steps {first} to {last} →", { rank, measure: t(measure), first: trend.steps[0], last: trend.steps[count - 1] })}</h2><span class="spring" />
        {trend.measures.length > 1 && <Segmented label={t("Figure")} value={measure} set={setMeasure} options={trend.measures.map(({ title }) => [title, t(title)] as const)} />}
        <input type="search" placeholder={t("filter names")} aria-label={t("filter names of {rank}", { rank })} value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      </div>
      <Canvas draw={draw} height={Math.max(24, Math.min(360, names.length * 14))} onPointerMove={onPointerMove} onPointerLeave={() => setAt("")}
        label={t("{measure} of {nodes} over {steps}; {most}: {told}", { measure: t(measure), nodes: plural(names.length, "node"), steps: plural(count, "step"), most, told })} />
      <p class="muted told">{at || legend}</p>
      <table class="adders">
        <thead><tr><th scope="col">{most}</th><th scope="col">{t("over the steps")}</th><th scope="col" class="number">{t("first")}</th><th scope="col" class="number">{t("last")}</th></tr></thead>
        <tbody>{telling.map(({ node, grows }) => (
          <tr key={node}>
            <td><bdi>{shortened(names[node], 160)}</bdi>{grows && <b class="origin badge">{t("↗ grows")}</b>}</td><td class="line"><Line values={row(node)} /></td>
            <td class="number">{short(row(node)[0])}</td><td class="number">{short(row(node)[count - 1])}</td>
          </tr>
        ))}</tbody>
      </table>
    </section>
  );
}

/** Values over the steps on a logarithmic scale: a line, which breaks where there is none, and marks of what is not finite. */
function Line({ values }: { values: (number | null)[] }) {
  const draw = useCallback<Draw>((context, width, height, colours) => {
    const sizes = values.map((value) => (value !== null && Number.isFinite(value) ? Math.log10(Math.max(Math.abs(value), 1e-30)) : NaN));
    const finite = sizes.filter((size) => !Number.isNaN(size)), low = Math.min(...finite), range = Math.max(...finite) - low || 1;
    const x = (step: number) => 4 + (step / Math.max(1, values.length - 1)) * (width - 8), y = (size: number) => height - 4 - ((size - low) / range) * (height - 8);
    sizes.forEach((size, step) => {
      context.fillStyle = context.strokeStyle = Number.isNaN(size) ? colours.origin : colours.agrees;
      if (values[step] !== null) context.fillRect(x(step) - 1.5, Number.isNaN(size) ? 0 : y(size) - 1.5, 3, Number.isNaN(size) ? height : 3);
      if (step && !Number.isNaN(size + sizes[step - 1])) path(context, [x(step - 1), y(sizes[step - 1])], [x(step), y(size)]).stroke();
    });
  }, [values.join()]);
  return <Canvas draw={draw} height={22} label={`${t("over the steps")}: ${values.map((value) => short(value)).join(", ")}`} />;
}

/** How many times each value is larger or smaller than the first of its node; 0 where there is none, infinite where it is not finite. */
function changes(values: (number | null)[], count: number): number[] {
  let first = 1;
  return values.map((value, place) => {
    if (place % count === 0) first = Math.abs(values.slice(place, place + count).find((each) => each && Number.isFinite(each)) ?? 1);
    return value === null || value === 0 ? 0 : Number.isFinite(value) ? Math.max(Math.abs(value) / first, first / Math.abs(value)) : Infinity;
  });
}

/** The numbers of a column; null where there is none. */
function numbersOf(numbers: Float32Array): (number | null)[] {
  const raw = bits(numbers);
  return Array.from(numbers, (number, place) => (raw[place] === NO_NUMBER ? null : number));
}

/** The error ratio that a byte of a trend stands for. */
function ratioOf(code: number): number {
  return code === 0 ? 0 : code === 255 ? Infinity : 10 ** (((code - 1) * 12) / 253 - 4);
}
