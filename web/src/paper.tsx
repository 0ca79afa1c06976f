/** What stands on paper in place of panels that scroll: the first origins with their figures, and the worst values. */

import { useMemo } from "preact/hooks";
import { STATISTICS } from "./figures.ts";
import { GLYPHS, type Model, WORDS } from "./model.ts";
import { useFigures, usePage } from "./page.ts";
import { ratioText } from "./plot.tsx";
import { figure, grouped, shortened } from "./text.ts";

const ROWS = 40;
const ORIGINS = 3;

export function Paper() {
  const { model } = usePage();
  const figures = useFigures(model);
  const rows = useMemo(() => worst(model), [model]);
  const number = (column: string, row: number) => {
    const value = figures?.value(column, row);
    return value === null || value === undefined ? "–" : figure(value);
  };
  return (
    <section class="paper" aria-hidden="true">
      {[...model.originOfCall].slice(0, ORIGINS).map(([call, origin]) => (
        <div key={call}><h2>✖ {shortened(model.names[call])}</h2><p>{shortened(origin.reason, 600)}</p>
          <table><thead><tr><th>value</th><th>ratio</th><th>side</th>{STATISTICS.map((name) => <th key={name}>{name}</th>)}</tr></thead>
            <tbody>{Array.from({ length: Math.min(12, model.endRow(call) - model.firstRow[call]) }, (_, place) => model.firstRow[call] + place).flatMap((row) =>
              (["target", "golden"] as const).slice(0, model.alone ? 1 : 2).map((side) => <tr key={`${row}${side}`}><td>{side === "target" ? shortened(model.slotOf(row), 60) : ""}</td>
                <td>{side === "target" ? ratioText(model, row) : ""}</td><td>{side}</td>{STATISTICS.map((name) => <td key={name}>{number(`${side}_${name}`, row)}</td>)}</tr>))}</tbody></table></div>
      ))}
      {!model.alone && <><h2>The {rows.length} values furthest beyond their tolerance, of {grouped(model.rows)}</h2>
      <table><thead><tr><th>result</th><th>error ratio</th><th>name</th></tr></thead>
        <tbody>{rows.map((row) => (
          <tr key={row}>
            <td>{GLYPHS[model.outcome[row]]} {WORDS[model.outcome[row]]}</td>
            <td>{ratioText(model, row)}</td>
            <td>{shortened(model.rowName(row))}</td>
          </tr>
        ))}</tbody></table></>}
    </section>
  );
}

/** The rows with the most severe outcome, of these the largest error ratios, without sorting all. */
function worst(model: Model): number[] {
  const score = (row: number) => (model.outcome[row] === 6 ? 1e30 : 0) + Math.min(1e29, model.ratio[row] || 0);
  const best: number[] = [];
  for (let row = 0; row < model.rows; row++) {
    if (best.length === ROWS && score(row) <= score(best[ROWS - 1])) continue;
    let place = best.length;
    while (place > 0 && score(best[place - 1]) < score(row)) place--;
    best.splice(place, 0, row);
    if (best.length > ROWS) best.pop();
  }
  return best;
}
