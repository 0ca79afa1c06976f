/** What stands on paper in place of panels that scroll: the first origins with their figures, and the worst values. */

import { useMemo } from "preact/hooks";
import { largest } from "./data.ts";
import { SIDES, STATISTICS } from "./figures.ts";
import { GLYPHS, type Model, Outcome, WORDS } from "./model.ts";
import { useFigures, usePage } from "./page.ts";
import { figure, grouped, shortened } from "./text.ts";
import { t } from "./texts.ts";

/** How far beyond its tolerance a value is, those of origins first; NaN where it is not. */
function farness(model: Model, row: number): number {
  if (model.outcome[row] === Outcome.ORIGIN) return 1e30;
  return model.ratio[row] > 1 ? Math.min(1e29, model.ratio[row]) : NaN;
}

const ROWS = 40, ORIGINS = 3, VALUES = 12;

export function Paper() {
  const { model } = usePage();
  const figures = useFigures(model);
  const rows = useMemo(() => largest(model.rows, ROWS, (row) => farness(model, row)), [model]);
  const value = (row: number, side: (typeof SIDES)[number]) => (
    <tr key={`${row}${side}`}>
      <td>{side === "target" ? shortened(model.slotOf(row), 60) : ""}</td><td>{side === "target" ? model.ratioText(row) : ""}</td><td>{t(side)}</td>
      {STATISTICS.map((name) => <td key={name}>{figure(figures?.value(`${side}_${name}`, row), "–")}</td>)}
    </tr>
  );
  return (
    <section class="paper" aria-hidden="true">
      {[...model.originOfCall].slice(0, ORIGINS).map(([call, origin]) => (
        <div key={call}>
          <h2>✖ {shortened(model.names[call])}</h2><p>{shortened(origin.reason, 600)}</p>
          <table>
            <thead><tr><th>{t("value")}</th><th>{t("ratio")}</th><th>{t("side")}</th>{STATISTICS.map((name) => <th key={name}>{name}</th>)}</tr></thead>
            <tbody>{model.rowsOf(call).slice(0, VALUES).flatMap((row) => SIDES.slice(0, model.alone ? 1 : 2).map((side) => value(row, side)))}</tbody>
          </table>
        </div>
      ))}
      {!model.alone && rows.length > 0 && <>
        <h2>{t("The {count} values furthest beyond their tolerance, of {all}", { count: rows.length, all: grouped(model.rows) })}</h2>
        <table>
          <thead><tr><th>{t("result")}</th><th>{t("error ratio")}</th><th>{t("name")}</th></tr></thead>
          <tbody>{rows.map((row) => (
            <tr key={row}><td>{GLYPHS[model.outcome[row]]} {WORDS[model.outcome[row]]}</td><td>{model.ratioText(row)}</td><td>{shortened(model.rowName(row))}</td></tr>
          ))}</tbody>
        </table>
      </>}
    </section>
  );
}
