/** Error along execution order: what is seen second, after the verdict. */

import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { bin, type Bins, LOUD, QUIET, stretches, type Stretch } from "./bins.ts";
import { Canvas, type Draw, useWidth } from "./canvas.tsx";
import { Label, Segmented } from "./controls.tsx";
import { COLOURS, type Model, Outcome, WORDS } from "./model.ts";
import { loadFigures, type Measure, useLoaded, usePage } from "./page.ts";
import { grouped, plural, short, shortened } from "./text.ts";
import type { Palette } from "./theme.ts";

const HEIGHT = 232;
const MARGIN = { left: 52, right: 10, top: 40, bottom: 30 };

interface View {
  from: number;
  to: number;
  low: number;
  high: number;
  width: number;
}

export function ExecutionPlot() {
  const { model, state, set, select } = usePage();
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
  const [brush, setBrush] = useState<[number, number] | null>(null);
  const dragged = useRef(-1);
  const draw = useCallback<Draw>((context, _width, _height, colours) => {
    drawPlot(context, colours, model, bins, view, parts, measure);
    drawMarks(context, colours, model, values, view, state.row, hover >= 0 ? bins.worst[hover] : -1);
    if (brush) {
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.2;
      context.fillRect(MARGIN.left + Math.min(...brush), MARGIN.top, Math.abs(brush[1] - brush[0]), HEIGHT - MARGIN.top - MARGIN.bottom);
      context.globalAlpha = 1;
    }
  }, [model, bins, view, parts, state.row, values, hover, brush]);

  const columnAt = (event: PointerEvent) => {
    const left = (event.currentTarget as HTMLElement).getBoundingClientRect().left;
    return Math.max(0, Math.min(inner - 1, Math.round(event.clientX - left - MARGIN.left)));
  };
  const rowAt = (column: number) => nearest(bins, column);
  const release = (event: PointerEvent) => {
    const start = dragged.current, column = columnAt(event);
    dragged.current = -1;
    setBrush(null);
    if (start < 0) return;
    if (Math.abs(column - start) > 5) {
      const rows = [start, column].sort((a, b) => a - b).map((each) => from + Math.round((each / inner) * (to - from)));
      if (rows[1] - rows[0] > 1) set({ x: [rows[0], rows[1]] });
    } else {
      const found = rowAt(column);
      if (found >= 0) select(model.rowCall[bins.worst[found]], bins.worst[found]);
    }
  };
  const hovered = hover >= 0 ? bins.worst[hover] : -1;
  return (
    <section class="panel plot" aria-labelledby="plot-title">
      <div class="bar">
        <h2 id="plot-title">{model.alone ? "Largest magnitude along execution" : "Error along execution"}</h2>
        <span class="muted">{plural(to - from, "value")}{state.x ? ` of ${grouped(model.rows)}` : ""}</span>
        <span class="spring" />
        <Legend />
        {!model.alone && <Segmented label="Scale" value={state.measure} set={(measure) => set({ measure })}
          options={[["ratio", "error ratio"], ["deviation", "deviation"]]} />}
        <span class="group">
          <button type="button" onClick={() => set({ x: zoomed(model, state.row, state.x, 0.5) })} aria-label="zoom in">+</button>
          <button type="button" onClick={() => set({ x: zoomed(model, state.row, state.x, 2) })} disabled={!state.x} aria-label="zoom out">−</button>
          <button type="button" onClick={() => set({ x: null })} disabled={!state.x}>all</button>
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
            setHover(rowAt(column));
          }}
          onPointerUp={release} onPointerCancel={() => { dragged.current = -1; setBrush(null); }}
          onPointerLeave={() => setHover(-1)} onDblClick={() => set({ x: null })} />
        {hovered >= 0 && !brush && <Tip model={model} row={hovered} x={MARGIN.left + hover} width={width} />}
      </div>
      {state.x && <Minimap bins={model} values={values} parts={parts} />}
    </section>
  );
}

function Legend() {
  const { model } = usePage();
  const shown = useMemo(() => {
    const counts = new Array<number>(WORDS.length).fill(0);
    for (const outcome of model.outcome) counts[outcome]++;
    return [Outcome.AGREES, Outcome.EXPLAINED, Outcome.INHERITED, Outcome.DIFFERS, Outcome.ORIGIN]
      .filter((each) => counts[each]).map((each) => [each, counts[each]] as const);
  }, [model]);
  return (
    <span class="legend">
      {shown.map(([outcome, count]) => <Label outcome={outcome} count={count} alone={model.alone} key={outcome} />)}
    </span>
  );
}

function Tip({ model, row, x, width }: { model: Model; row: number; x: number; width: number }) {
  const place = (element: HTMLElement | null) => {
    if (!element) return;
    element.style.left = `${Math.max(0, Math.min(x - 20, width - element.offsetWidth))}px`;
  };
  return (
    <div class="tip" ref={place}>
      <Label outcome={model.outcome[row]} alone={model.alone} /> {!model.alone && <b>{ratioText(model, row)}</b>}
      <bdi>{shortened(model.rowName(row), 120)}</bdi>
    </div>
  );
}

function Minimap({ bins: model, values, parts }: { bins: Model; values: Float32Array; parts: Stretch[] }) {
  const { state, set } = usePage();
  const [box, width] = useWidth<HTMLDivElement>();
  const inner = Math.max(1, Math.round(width - MARGIN.left - MARGIN.right));
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
  }, [all, from, to, inner, model, parts]);
  const move = (event: PointerEvent) => {
    if (event.type === "pointermove" && !(event.buttons & 1)) return;
    const left = (event.currentTarget as HTMLElement).getBoundingClientRect().left;
    const middle = ((event.clientX - left - MARGIN.left) / inner) * model.rows;
    const start = Math.max(0, Math.min(model.rows - (to - from), Math.round(middle - (to - from) / 2)));
    set({ x: [start, start + to - from] });
  };
  return (
    <div class="canvas" ref={box}>
      <Canvas draw={draw} height={22} label="the whole execution; the part above is framed" onPointerDown={move} onPointerMove={move} />
    </div>
  );
}

/** The part of the rows that a zoom by a factor shows, around the selected row; null for all. */
export function zoomed(model: Model, row: number, x: [number, number] | null, factor: number): [number, number] | null {
  const [from, to] = x ?? [0, model.rows];
  const size = Math.max(8, Math.round((to - from) * factor));
  if (size >= model.rows) return null;
  const middle = row >= from && row < to ? row : (from + to) / 2;
  const start = Math.max(0, Math.min(model.rows - size, Math.round(middle - size / 2)));
  return [start, start + size];
}

export function ratioText(model: Model, row: number): string {
  return model.hasDeviation(row) ? short(model.ratio[row]) : "–";
}

function viewOf(bins: Bins, from: number, to: number, width: number, measure: Measure): View {
  const most = Math.max(bins.most, measure === "ratio" ? 3 : 0) || 1;
  const high = Math.log10(most) + 0.15;
  const least = Number.isFinite(bins.least) ? Math.log10(bins.least) - 0.1 : high - 3;
  return { from, to, width, high, low: Math.max(least, high - (measure === "ratio" ? 7 : 10), -30) };
}

function nearest(bins: Bins, column: number): number {
  for (let distance = 0; distance < 12; distance++) {
    for (const each of [column - distance, column + distance]) if (bins.worst[each] >= 0) return each;
  }
  return -1;
}

const bottom = HEIGHT - MARGIN.bottom;
const yOf = (view: View, logarithm: number) =>
  bottom - ((Math.max(view.low, logarithm) - view.low) / (view.high - view.low)) * (bottom - MARGIN.top);
const xOf = (view: View, row: number) => MARGIN.left + ((row + 0.5 - view.from) / (view.to - view.from)) * view.width;

function drawPlot(
  context: CanvasRenderingContext2D, colours: Palette, model: Model, bins: Bins, view: View, parts: Stretch[], measure: Measure,
): void {
  drawAxis(context, colours, view, measure);
  drawParts(context, colours, model, view, parts);
  const wide = view.width / (view.to - view.from);
  for (let column = 0; column < view.width; column++) {
    if (bins.worst[column] < 0) continue;
    const x = MARGIN.left + column;
    const size = wide > 3 ? Math.min(7, wide) : 1;
    for (const band of [QUIET, LOUD]) {
      const low = bins.low[band][column], high = bins.high[band][column];
      if (low > high) continue;
      const outcome = band === LOUD ? bins.outcome[column] : quietest(bins.outcome[column]);
      context.fillStyle = colours[COLOURS[outcome]];
      const top = yOf(view, high);
      context.fillRect(x - (wide > 3 ? size / 2 - wide / 2 : 0), top - 1.5, size, Math.max(3, yOf(view, low) - top + 3));
    }
    if (bins.beyond[column]) diamond(context, colours[COLOURS[Math.max(bins.outcome[column], Outcome.UNMATCHED)]], x, MARGIN.top - 12, 4);
    if (bins.alone[column]) {
      context.fillStyle = colours.unmatched;
      context.fillRect(x, bottom + 2, Math.max(2, size), 5);
    }
  }
}

/** Beside what differs, what agrees keeps its own colour. */
function quietest(outcome: number): number {
  return outcome === Outcome.EXPLAINED ? Outcome.EXPLAINED : Outcome.AGREES;
}

function drawAxis(context: CanvasRenderingContext2D, colours: Palette, view: View, measure: Measure): void {
  context.textAlign = "right";
  context.textBaseline = "middle";
  const step = Math.ceil((view.high - view.low) / 6);
  for (let power = Math.ceil(view.low); power <= view.high; power++) {
    if (power % step) continue;
    const y = Math.round(yOf(view, power)) + 0.5;
    context.strokeStyle = colours.faint;
    line(context, MARGIN.left, y, MARGIN.left + view.width, y);
    context.fillStyle = colours.muted;
    if (power !== 0 || measure === "deviation") context.fillText(powerText(power), MARGIN.left - 7, y);
  }
  context.fillStyle = colours.muted;
  context.fillText("∞, NaN", MARGIN.left - 7, MARGIN.top - 12);
  if (measure === "ratio" && view.low < 0) {
    const y = Math.round(yOf(view, 0)) + 0.5;
    context.strokeStyle = colours.ink;
    context.setLineDash([6, 4]);
    line(context, MARGIN.left, y, MARGIN.left + view.width, y);
    context.setLineDash([]);
    context.fillStyle = colours.ink;
    context.fillText("1", MARGIN.left - 7, y);
    context.textBaseline = "bottom";
    context.fillText("tolerance", MARGIN.left + view.width, y - 2);
  }
}

function powerText(power: number): string {
  if (power >= -2 && power <= 3) return String(Number((10 ** power).toPrecision(1)));
  const raised = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  return `10${power < 0 ? "⁻" : ""}${[...String(Math.abs(power))].map((digit) => raised[Number(digit)]).join("")}`;
}

function drawParts(context: CanvasRenderingContext2D, colours: Palette, model: Model, view: View, parts: Stretch[]): void {
  if (parts.length > 12) return;
  context.textBaseline = "alphabetic";
  for (const part of parts) {
    const left = Math.max(MARGIN.left, xOf(view, part.from - 0.5));
    const right = Math.min(MARGIN.left + view.width, xOf(view, part.to - 0.5));
    if (right <= left || model.rows === 0) continue;
    context.strokeStyle = colours.line;
    if (part.from > view.from) line(context, left, MARGIN.top - 20, left, bottom + 20);
    const text = `${part.phase} ▸`;
    if (context.measureText(text).width + 8 > right - left) continue;
    context.fillStyle = colours.muted;
    context.textAlign = "left";
    context.fillText(text, left + 4, bottom + 20);
  }
}

function drawMarks(context: CanvasRenderingContext2D, colours: Palette, model: Model, values: Float32Array, view: View, selected: number, hovered: number): void {
  context.textBaseline = "alphabetic";
  let free = -Infinity;
  for (const [call, origin] of model.originOfCall) {
    const row = origin.row ?? model.firstRow[call];
    if (row < view.from || row >= view.to) continue;
    const x = xOf(view, row);
    context.strokeStyle = context.fillStyle = colours.origin;
    context.setLineDash([2, 3]);
    line(context, x, 18, x, bottom);
    context.setLineDash([]);
    const value = values[row];
    if (value > 0 && value < Infinity && view.high < 30) disc(context, x, yOf(view, Math.log10(value)), 4.5, colours.surface);
    if (x < free) continue;
    const text = `✖ ${brief(model.names[call])}`;
    const wide = context.measureText(text).width;
    context.textAlign = "left";
    const left = Math.min(x - 4, MARGIN.left + view.width - wide);
    if (left < free) continue;
    context.fillText(text, left, 13);
    free = left + wide + 12;
  }
  for (const [row, width] of [[hovered, 1], [selected, 2]]) {
    if (row < view.from || row >= view.to) continue;
    context.strokeStyle = context.fillStyle = row === selected ? colours.accent : colours.muted;
    context.lineWidth = width;
    line(context, xOf(view, row), MARGIN.top - 20, xOf(view, row), bottom + 7);
    context.lineWidth = 1;
    if (row === selected) {
      context.beginPath();
      context.moveTo(xOf(view, row), bottom + 3);
      context.lineTo(xOf(view, row) - 5, bottom + 10);
      context.lineTo(xOf(view, row) + 5, bottom + 10);
      context.fill();
    }
  }
}

/** The parts of an entry's name that tell it from others, without its prefix, class and numbers. */
export function brief(name: string): string {
  const parts = shortened(name, 200).split(".");
  const direction = parts.findIndex((part) => part === "forward" || part === "backward" || part === "parameters_grad");
  const module = direction > 1 && /^(Cell|Module)$/.test(parts[0]);
  const path = module ? parts.slice(1, Math.max(2, direction - 1)).join(".") : parts.slice(0, 3).join(".");
  return shortened(path, 60);
}

function line(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

function disc(context: CanvasRenderingContext2D, x: number, y: number, radius: number, ring: string): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fill();
  context.strokeStyle = ring;
  context.stroke();
}

function diamond(context: CanvasRenderingContext2D, colour: string, x: number, y: number, size: number): void {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.lineTo(x - size, y);
  context.fill();
}

function plotLabel(model: Model, from: number, to: number): string {
  const origins = [...model.originOfCall.keys()].slice(0, 3).map((call) => brief(model.names[call])).join(", ");
  let beyond = 0, worst = -1;
  for (let row = from; row < to; row++) {
    if (model.ratio[row] > 1) beyond++;
    if (worst < 0 || model.ratio[row] > model.ratio[worst]) worst = row;
  }
  const largest = worst >= 0 ? `; the largest error ratio is ${short(model.ratio[worst] || 0)}` : "";
  if (model.alone) return `Largest magnitude of ${plural(to - from, "value")} along execution. ${origins ? `The first that is not finite: ${origins}.` : "All are finite."}`;
  return `Error ratio of ${plural(to - from, "value")} along execution: ${grouped(beyond)} beyond their tolerance${largest}. ` +
    (origins ? `Error begins at ${origins}.` : "No origin of error.");
}
