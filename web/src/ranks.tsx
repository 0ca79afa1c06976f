/** Many ranks and steps: a cell for each pair of dumps, and the error of nodes over the steps. */

import { useCallback, useState } from "preact/hooks";
import { Canvas, type Draw } from "./canvas.tsx";
import { type Columns, type Index } from "./data.ts";
import { useLoaded } from "./page.ts";
import type { Colour } from "./theme.ts";
import { plural, printable, short, shortened } from "./text.ts";

export interface PairTold {
  step: number | null;
  rank: string;
  verdict: string;
  origin: string;
  reason: string;
  handed_by: string;
  page: string;
}

interface TrendTold {
  rank: string;
  steps: number[];
  names: string;
  matrix: string;
}

export interface RanksIndex extends Index {
  pairs: PairTold[];
  growing: { rank: string; node: string; first: number | string; last: number | string }[];
  trends: TrendTold[];
}

const GLYPH = new Map([["divergent", "✖"], ["consistent", "✓"], ["incomplete", "≠"], ["failed", "!"]]);
const COLOUR = new Map([["divergent", "origin"], ["consistent", "explained"], ["incomplete", "inherited"], ["failed", "differs"]]);
/** Names of pages that may become links: files beside this one, as Python names them. */
const PAGE = /^[\w][\w.+-]*\.html$/;
const LINES = 40;
/** Colours of error ratios, each up to a bound. */
const BANDS: readonly (readonly [number, Colour])[] = [[0, "faint"], [0.1, "passes"], [1, "heat0"], [10, "heat1"], [Infinity, "heat2"]];

export function Ranks({ index, columns }: { index: RanksIndex; columns: Columns }) {
  const steps = [...new Set(index.pairs.map((pair) => pair.step))];
  const ranks = [...new Set(index.pairs.map((pair) => pair.rank))];
  const cells = new Map(index.pairs.map((pair) => [`${pair.step}/${pair.rank}`, pair]));
  const firstBad = firstOf(index.pairs);
  const [chosen, setChosen] = useState<PairTold | undefined>(firstBad ?? index.pairs[0]);
  return (
    <>
      <section class="panel" aria-labelledby="ranks-title">
        <div class="bar"><h2 id="ranks-title">Steps × ranks</h2><span class="muted">{plural(index.pairs.length, "pair")} of dumps</span></div>
        <div class="matrix" tabIndex={0} role="region" aria-label="steps and ranks">
          <table>
            <thead><tr><th scope="col">step</th>{ranks.map((rank) => <th scope="col" key={rank}>{shortened(rank, 40)}</th>)}</tr></thead>
            <tbody>{steps.map((step) => (
              <tr key={step}><th scope="row">{step ?? "–"}</th>{ranks.map((rank) => {
                const pair = cells.get(`${step}/${rank}`);
                return <td key={rank}>{pair && <button type="button" aria-pressed={pair === chosen} class={COLOUR.get(pair.verdict) ?? ""} onClick={() => setChosen(pair)}
                  aria-label={`step ${step}, ${printable(rank)}: ${printable(pair.verdict)}${pair === firstBad ? ", the first" : ""}`}>
                  {pair === firstBad ? "①" : ""}{GLYPH.get(pair.verdict) ?? "?"}{pair.handed_by ? "←" : ""}</button>}</td>;
              })}</tr>
            ))}</tbody>
          </table>
        </div>
        {chosen && <div class="why" aria-live="polite">
          <p>
            <b class={COLOUR.get(chosen.verdict) ?? ""}>{GLYPH.get(chosen.verdict)} {printable(chosen.verdict)}</b>{" "}
            step {chosen.step ?? "–"}, {shortened(chosen.rank, 60)} {chosen.origin && <>at <bdi>{shortened(chosen.origin)}</bdi></>}
          </p>
          {chosen.reason && <p>{shortened(chosen.reason, 600)}</p>}
          {chosen.handed_by && <p>← handed to it by {shortened(chosen.handed_by, 200)}</p>}
          {PAGE.test(chosen.page) && <p><a href={`./${chosen.page}`}>its own report</a></p>}
        </div>}
        <p class="muted">① the first that differs · ← handed by another rank · ✓ consistent · ≠ incomplete · ! not compared</p>
      </section>
      {index.growing.length > 0 && <section class="panel" aria-labelledby="growing-title">
        <div class="bar"><h2 id="growing-title">Grows over the steps</h2></div>
        <table class="adders">
          <thead><tr>
            <th scope="col">node</th><th scope="col">rank</th>
            <th scope="col" class="number">first</th><th scope="col" class="number">last</th>
          </tr></thead>
          <tbody>{index.growing.slice(0, LINES).map((each, place) => (
            <tr key={place}>
              <td><bdi>{shortened(each.node)}</bdi></td><td>{shortened(each.rank, 60)}</td>
              <td class="number">{short(Number(each.first))}</td><td class="number">{short(Number(each.last))}</td>
            </tr>
          ))}</tbody>
        </table>
      </section>}
      {index.trends.map((trend) => <Trend key={trend.rank} trend={trend} columns={columns} />)}
    </>
  );
}

/** The pair where it begins: of the first step that differs, the rank that nobody handed the error to. */
export function firstOf(pairs: PairTold[]): PairTold | undefined {
  const first = pairs.find((pair) => pair.verdict === "divergent");
  return pairs.find((pair) => pair.verdict === "divergent" && pair.step === first?.step && !pair.handed_by) ?? first;
}

/** Error ratio of the nodes of a rank (down) over the steps (to the right); the largest of each line of pixels. */
function Trend({ trend, columns }: { trend: TrendTold; columns: Columns }) {
  const loaded = useLoaded(() => Promise.all([columns.json<string>(trend.names), columns.bytes(trend.matrix)]), trend);
  const [at, setAt] = useState("");
  const [names, matrix] = loaded ?? [[], new Uint8Array()];
  const count = trend.steps.length;
  const height = Math.max(24, Math.min(360, names.length * 14));
  const draw = useCallback<Draw>((context, width, tall, colours) => {
    for (let line = 0; line < tall; line++) {
      const from = Math.floor((line / tall) * names.length), to = Math.max(from + 1, Math.floor(((line + 1) / tall) * names.length));
      for (let step = 0; step < count; step++) {
        let most = 0;
        for (let node = from; node < Math.min(to, names.length); node++) most = Math.max(most, matrix[node * count + step]);
        const ratio = ratioOf(most);
        context.fillStyle = colours[most === 255 ? "ink" : BANDS.find(([upTo]) => ratio <= upTo)![1]];
        context.fillRect(Math.floor((step / count) * width), line, Math.ceil(width / count), 1);
      }
    }
  }, [names, matrix, count]);
  const onPointerMove = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const node = Math.min(names.length - 1, Math.floor(((event.clientY - box.top) / box.height) * names.length));
    const step = Math.max(0, Math.min(count - 1, Math.floor(((event.clientX - box.left) / box.width) * count)));
    setAt(names[node] === undefined ? "" : `step ${trend.steps[step]}: ${shortened(names[node], 160)}, error ratio ${short(ratioOf(matrix[node * count + step]))}`);
  };
  const most = (node: number) => matrix.subarray(node * count, (node + 1) * count).reduce((a, b) => Math.max(a, b), 0);
  const worst = names.map((name, node) => [most(node), name] as const).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const largest = worst.map(([code, name]) => `${shortened(name, 100)} ${short(ratioOf(code))}`).join(", ");
  return (
    <section class="panel" aria-label={`error of ${shortened(trend.rank, 60)} over the steps`}>
      <div class="bar"><h2>{shortened(trend.rank, 60)}: nodes ↓ over steps {trend.steps[0]} to {trend.steps[count - 1]} →</h2></div>
      <Canvas draw={draw} height={height} onPointerMove={onPointerMove} onPointerLeave={() => setAt("")}
        label={`error ratio of ${plural(names.length, "node")} over ${plural(count, "step")}; the largest: ${largest}`} />
      <p class="muted told">{at || <>Colour: error ratio. Blue up to 1, amber up to 10, red more, <b class="ink">■</b> infinite.</>}</p>
    </section>
  );
}

/** The error ratio that a byte of a trend stands for. */
export function ratioOf(code: number): number {
  return code === 0 ? 0 : code === 255 ? Infinity : 10 ** (((code - 1) * 12) / 253 - 4);
}
