/** The values of the selected call: the figures of both sides, one above the other. */

import { type Figures, SIDES, STATISTICS } from "./figures.ts";
import { COLOURS, GLYPHS } from "./model.ts";
import { usePage } from "./page.ts";
import { agreeing, dtypeMeaning, figure, level, plural, printable, short, shortened } from "./text.ts";
import { t } from "./texts.ts";

/** Most values of a call that are shown at once; the table has all. */
const MOST = 60;

export function FiguresTab({ figures }: { figures: Figures }) {
  const { model, state, select } = usePage();
  const { call } = state;
  const all = model.rowsOf(call);
  const start = Math.max(0, Math.min(all.indexOf(state.row) - 10, all.length - MOST));
  const rows = all.slice(start, start + MOST);
  return (
    <>
      <div class="values">
        <table class="figures">
          <thead><tr><th scope="col">{t("value")}</th><th><span class="hidden">{t("side")}</span></th>{STATISTICS.map((name) => <th key={name} class="number">{name}</th>)}</tr></thead>
          {rows.map((row) => <Value key={row} figures={figures} row={row} selected={row === state.row} choose={() => select(call, row)} />)}
        </table>
      </div>
      {all.length > rows.length && <p class="muted">{t("{part} of {whole}: the table has the others", { part: rows.length, whole: plural(all.length, "value") })}</p>}
      {state.row >= 0 && <Metrics figures={figures} row={state.row} />}
      {rows.some((row) => figures.place(row) < 0) && model.index.truncated && (
        <p class="note">{t("The page holds figures of {values}. Compare again with", { values: plural(model.index.truncated.rows, "value") })}{" "}<code>{printable(model.index.truncated.command)}</code>{" "}{t("for all.")}</p>
      )}
    </>
  );
}

/** A value: the target's figures above the golden's, so that equal digits stand above each other. */
function Value({ figures, row, selected, choose }: { figures: Figures; row: number; selected: boolean; choose: () => void }) {
  const { model } = usePage();
  const single = model.alone;
  const outcome = model.outcome[row];
  const [ours, theirs] = [figures.type("target", row), figures.type("golden", row)];
  const texts = [figures.text("target", row), figures.text("golden", row)];
  const flags = model.flags[row];
  const told = t("deviation {deviation}, tolerance {tolerance}", { deviation: short(model.deviationOf(row), t("none")), tolerance: short(model.tolerance(row), t("none")) });
  const alike = dtypeMeaning(ours) === dtypeMeaning(theirs) && ours.split(" [")[1] === theirs.split(" [")[1];
  const type = [ours, alike ? "" : theirs].filter(Boolean).join(" | ");
  const side = (name: "target" | "golden", index: number) => {
    if (!(flags & (index + 1))) return <td colSpan={4} class="muted">{t("∅ not there")}</td>;
    if (texts[index] && figures.value(`${name}_norm`, row) === null) return <td colSpan={4} class="text"><bdi>{shortened(texts[index], 200)}</bdi></td>;
    return STATISTICS.map((each) => {
      const pair = SIDES.map((which) => figure(figures.value(`${which}_${each}`, row)));
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
          <span class={`ratio ${COLOURS[outcome]}`} title={told}>{single ? "" : model.ratioText(row)} {GLYPHS[outcome]}</span>
        </th>
      </tr>
      {SIDES.slice(0, single ? 1 : 2).map((name, index) => <tr key={name}><td /><td class="which muted">{t(name)}</td>{side(name, index)}</tr>)}
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
  const all = [[t("deviation"), model.deviationOf(row)], [t("tolerance"), model.tolerance(row)],
    ...figures.metrics.map((metric) => [metric.title, figures.value(metric.column, row)] as const)] as const;
  const known = all.filter(([, value]) => value !== null);
  if (!known.length) return null;
  return <dl class="metrics">{known.map(([title, value]) => <div key={title}><dt>{printable(title)}</dt><dd>{short(value)}</dd></div>)}</dl>;
}
