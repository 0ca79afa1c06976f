/** The values of the selected call: the figures of both sides, one above the other. */

import { type Figures, STATISTICS } from "./figures.ts";
import { COLOURS, GLYPHS, type Model } from "./model.ts";
import { useFigures, usePage } from "./page.ts";
import { ratioText } from "./plot.tsx";
import { agreeing, dtypeMeaning, figure, level, plural, printable, short, shortened } from "./text.ts";

/** Most values of a call that are shown at once; the table has all. */
const MOST = 60;

export function FiguresTab() {
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
  const told = `deviation ${model.hasDeviation(row) ? short(model.deviation[row]) : "none"}, tolerance ${tolerance === null ? "none" : short(tolerance)}`;
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
          <span class={`ratio ${COLOURS[outcome]}`} title={told}>{single ? "" : ratioText(model, row)} {GLYPHS[outcome]}</span>
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
