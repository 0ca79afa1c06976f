/** What the plot draws: its axes, a band for each column of pixels, the parts of a step, origins and the selection. */

import { type Bins, LOUD, QUIET, type Stretch } from "./bins.ts";
import { COLOURS, type Model, Outcome } from "./model.ts";
import type { Measure } from "./page.ts";
import { shortened } from "./text.ts";
import type { Palette } from "./theme.ts";

export const HEIGHT = 232;
export const MARGIN = { left: 76, right: 10, top: 40, bottom: 30 };

export interface View {
  from: number;
  to: number;
  low: number;
  high: number;
  width: number;
}

export function viewOf(bins: Bins, from: number, to: number, width: number, measure: Measure): View {
  const most = Math.max(bins.most, measure === "ratio" ? 3 : 0) || 1;
  const high = Math.log10(most) + 0.15;
  const least = Number.isFinite(bins.least) ? Math.log10(bins.least) - 0.1 : high - 3;
  return { from, to, width, high, low: Math.max(least, high - (measure === "ratio" ? 7 : 10), -30) };
}

const bottom = HEIGHT - MARGIN.bottom;
const yOf = (view: View, logarithm: number) =>
  bottom - ((Math.max(view.low, logarithm) - view.low) / (view.high - view.low)) * (bottom - MARGIN.top);
const xOf = (view: View, row: number) => MARGIN.left + ((row + 0.5 - view.from) / (view.to - view.from)) * view.width;

export function drawPlot(
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
    context.fillText("tolerance 1", MARGIN.left - 7, y);
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

export function drawMarks(context: CanvasRenderingContext2D, colours: Palette, model: Model, values: Float32Array, view: View, selected: number, hovered: number): void {
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
