/** Error along execution order: what is seen second, after the verdict. */

import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { around, bin, type Bins, stretches } from "./bins.ts";
import { Canvas, type Draw, useWidth } from "./canvas.tsx";
import { Label, Segmented } from "./controls.tsx";
import { brief, drawMarks, drawPlot, HEIGHT, MARGIN, viewOf } from "./drawing.ts";
import { COLOURS, type Model, Outcome } from "./model.ts";
import { loadFigures, useLoaded, usePage } from "./page.ts";
import { grouped, plural, short, shortened } from "./text.ts";
import { t } from "./texts.ts";

export function ExecutionPlot() {
  const { model, state, set, select, zoom } = usePage();
  const [box, width] = useWidth<HTMLDivElement>();
  const [from, to] = state.x ?? [0, Math.max(1, model.rows)];
  const inner = Math.max(1, Math.round(width - MARGIN.left - MARGIN.right));
  const figures = useLoaded(() => (model.alone ? loadFigures(model) : Promise.resolve(null)), model);
  const measure = model.alone ? "deviation" : state.measure;
  const values = useMemo(() => (model.alone ? (figures?.magnitudes(model.rows) ?? model.ratio) : measure === "ratio" ? model.ratio : model.deviation),
    [model, figures, measure]);
  const bins = useMemo(() => bin(model, values, from, to, inner), [model, values, from, to, inner]);
  const parts = useMemo(() => stretches(model), [model]);
  const view = useMemo(() => viewOf(bins, from, to, inner, measure), [bins, from, to, inner, measure]);
  const [hover, setHover] = useState(-1);
  const hovered = hover >= 0 ? bins.worst[hover] : -1;
  const [brush, setBrush] = useState<[number, number] | null>(null);
  const dragged = useRef(-1);
  const draw = useCallback<Draw>((context, _width, _height, colours) => {
    drawPlot(context, colours, model, bins, view, parts, measure);
    drawMarks(context, colours, model, values, view, state.row, hovered);
    if (brush) {
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.2;
      context.fillRect(MARGIN.left + Math.min(...brush), MARGIN.top, Math.abs(brush[1] - brush[0]), HEIGHT - MARGIN.top - MARGIN.bottom);
      context.globalAlpha = 1;
    }
  }, [model, bins, view, parts, state.row, values, hovered, brush]);

  const columnAt = (event: PointerEvent) => {
    const left = (event.currentTarget as HTMLElement).getBoundingClientRect().left;
    return Math.max(0, Math.min(inner - 1, Math.round(event.clientX - left - MARGIN.left)));
  };
  const release = (event: PointerEvent) => {
    const start = dragged.current, column = columnAt(event);
    dragged.current = -1;
    setBrush(null);
    if (start < 0) return;
    if (Math.abs(column - start) > 5) {
      const rows = [start, column].sort((a, b) => a - b).map((each) => from + Math.round((each / inner) * (to - from)));
      if (rows[1] - rows[0] > 1) set({ x: [rows[0], rows[1]] });
    } else {
      const found = nearest(bins, column);
      if (found >= 0) select(model.rowCall[bins.worst[found]], bins.worst[found]);
    }
  };
  return (
    <section class="panel plot" aria-labelledby="plot-title">
      <div class="bar">
        <h2 id="plot-title">{model.alone ? t("Largest magnitude along execution") : t("Error along execution")}</h2>
        <span class="muted">{state.x ? t("{part} of {whole}", { part: plural(to - from, "value"), whole: grouped(model.rows) }) : plural(to - from, "value")}</span>
        <span class="spring" />
        <Legend />
        {!model.alone && <Segmented label={t("Scale")} value={state.measure} set={(measure) => set({ measure })}
          options={[["ratio", t("error ratio")], ["deviation", t("deviation")]]} />}
        <span class="group">
          <button type="button" onClick={() => zoom(0.5)} aria-label={t("zoom in")}>+</button>
          <button type="button" onClick={() => zoom(2)} disabled={!state.x} aria-label={t("zoom out")}>−</button>
          <button type="button" onClick={() => set({ x: null })} disabled={!state.x}>{t("all")}</button>
        </span>
      </div>
      <div class="canvas" ref={box}>
        <Canvas draw={draw} height={HEIGHT} label={plotLabel(model, from, to)} id="plot"
          onPointerDown={(event) => {
            if (event.button) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            dragged.current = columnAt(event);
          }}
          onPointerMove={(event) => {
            const column = columnAt(event);
            if (dragged.current >= 0 && Math.abs(column - dragged.current) > 5) setBrush([dragged.current, column]);
            setHover(nearest(bins, column));
          }}
          onPointerUp={release} onPointerCancel={() => { dragged.current = -1; setBrush(null); }}
          onPointerLeave={() => setHover(-1)} onDblClick={() => set({ x: null })} />
        {hovered >= 0 && !brush && <Tip row={hovered} x={MARGIN.left + hover} width={width} />}
      </div>
      {state.x && <Minimap values={values} inner={inner} />}
    </section>
  );
}

function Legend() {
  const { model } = usePage();
  const shown = useMemo(() => {
    const counts = new Map<number, number>();
    for (const outcome of model.outcome) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    return [...counts].filter(([each]) => each !== Outcome.NOT_COMPARED && each !== Outcome.UNMATCHED).sort(([a], [b]) => a - b);
  }, [model]);
  const broken = useMemo(() => (model.flags as Uint8Array).reduce((count, _, row) => count + Number(model.nonFinite(row)), 0), [model]);
  return <span class="legend">{shown.map(([outcome, count]) => <Label outcome={outcome} count={count} key={outcome} />)}
    {broken > 0 && !model.alone && <span class="muted">NaN, ∞ {grouped(broken)} {t("(key n)")}</span>}</span>;
}

function Tip({ row, x, width }: { row: number; x: number; width: number }) {
  const { model } = usePage();
  const place = (element: HTMLElement | null) => {
    if (element) element.style.left = `${Math.max(0, Math.min(x - 20, width - element.offsetWidth))}px`;
  };
  return (
    <div class="tip" ref={place}>
      <Label outcome={model.outcome[row]} /> {!model.alone && <b>{model.ratioText(row)}</b>}
      <bdi>{shortened(model.rowName(row), 120)}</bdi>
    </div>
  );
}

/** All rows in small, and what of them is shown above. */
function Minimap({ values, inner }: { values: Float32Array; inner: number }) {
  const { model, state, set } = usePage();
  const all = useMemo(() => bin(model, values, 0, model.rows, inner), [model, values, inner]);
  const [from, to] = state.x!;
  const draw = useCallback<Draw>((context, _width, height, colours) => {
    for (let column = 0; column < inner; column++) {
      if (all.worst[column] < 0) continue;
      context.fillStyle = colours[COLOURS[all.outcome[column]]];
      const loud = all.outcome[column] >= Outcome.INHERITED ? 0.9 : 0.35;
      context.fillRect(MARGIN.left + column, height * (1 - loud), 1, height * loud);
    }
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    const left = MARGIN.left + (from / model.rows) * inner;
    context.strokeRect(left, 1, Math.max(4, ((to - from) / model.rows) * inner), height - 2);
  }, [all, from, to, inner, model]);
  const move = (event: PointerEvent) => {
    if (event.type === "pointermove" && !(event.buttons & 1)) return;
    const left = (event.currentTarget as HTMLElement).getBoundingClientRect().left;
    const middle = ((event.clientX - left - MARGIN.left) / inner) * model.rows;
    set({ x: around(middle, to - from, model.rows) });
  };
  return <Canvas draw={draw} height={22} label={t("the whole execution; the part above is framed")} onPointerDown={move} onPointerMove={move} />;
}

function plotLabel(model: Model, from: number, to: number): string {
  const origins = [...model.originOfCall.keys()].slice(0, 3).map((call) => brief(model.names[call])).join(", ");
  let beyond = 0, worst = -1;
  for (let row = from; row < to; row++) {
    if (model.ratio[row] > 1) beyond++;
    if (worst < 0 || model.ratio[row] > model.ratio[worst]) worst = row;
  }
  const largest = worst >= 0 ? t("; the largest error ratio is {ratio}", { ratio: short(model.ratio[worst] || 0) }) : "";
  const values = plural(to - from, "value");
  if (model.alone) {
    const told = t("Largest magnitude of {values} along execution.", { values });
    return `${told} ${origins ? t("The first that is not finite: {origins}.", { origins }) : t("All are finite.")}`;
  }
  const told = t("Error ratio of {values} along execution: {beyond} beyond their tolerance{largest}.", { values, beyond: grouped(beyond), largest });
  return `${told} ${origins ? t("Error begins at {origins}.", { origins }) : t("No origin of error.")}`;
}

function nearest(bins: Bins, column: number): number {
  for (let distance = 0; distance < 12; distance++) {
    for (const each of [column - distance, column + distance]) if (bins.worst[each] >= 0) return each;
  }
  return -1;
}
