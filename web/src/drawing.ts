/** What the plot draws: its axes, a band for each column of pixels, the parts of a step, origins and the selection. */

import { type Bins, LOUD, QUIET, type Stretch } from "./bins.ts";
import { COLOURS, type Model, Outcome } from "./model.ts";
import type { Measure } from "./page.ts";
import { shortened } from "./text.ts";
import { t } from "./texts.ts";
import type { Palette } from "./theme.ts";
import { pathOf } from "./tree.ts";

export const HEIGHT = 232;
export const MARGIN = { left: 76, right: 10, top: 40, bottom: 30 };

/** Rows ``from`` to ``to`` and logarithms ``low`` to ``high``, over so many pixels. */
export interface View { from: number; to: number; low: number; high: number; width: number }

export function viewOf(bins: Bins, from: number, to: number, width: number, measure: Measure): View {
  const most = Math.max(bins.most, measure === "ratio" ? 3 : 0) || 1;
  const high = Math.log10(most) + 0.15;
  const least = Number.isFinite(bins.least) ? Math.log10(bins.least) - 0.1 : high - 3;
  // The tolerance is always seen.
  return { from, to, width, high, low: measure === "ratio" ? Math.min(-0.3, Math.max(least, high - 7)) : Math.max(least, high - 10, -30) };
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
    // Where a value has many columns of pixels, it stands in the middle of them.
    const size = wide > 3 ? Math.min(7, wide) : 1, x = MARGIN.left + column + (wide > 3 ? wide / 2 : 0.5);
    for (const band of [QUIET, LOUD]) {
      const low = bins.low[band][column], high = bins.high[band][column];
      if (low > high) continue;
      const outcome = band === LOUD ? bins.outcome[column] : quietest(bins.outcome[column]);
      context.fillStyle = colours[COLOURS[outcome]];
      const top = yOf(view, high);
      context.fillRect(x - size / 2, top - 1.5, size, Math.max(3, yOf(view, low) - top + 3));
    }
    if (bins.beyond[column]) {
      context.fillStyle = colours[COLOURS[Math.max(bins.outcome[column], Outcome.UNMATCHED)]];
      path(context, [x, MARGIN.top - 16], [x + 4, MARGIN.top - 12], [x, MARGIN.top - 8], [x - 4, MARGIN.top - 12]).fill();
    }
    if (bins.alone[column]) {
      context.fillStyle = colours.unmatched;
      context.fillRect(x - size / 2, bottom + 2, Math.max(2, size), 5);
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
  const across = (logarithm: number, colour: string, text: string, textColour: string) => {
    const y = Math.round(yOf(view, logarithm)) + 0.5;
    context.strokeStyle = colour;
    path(context, [MARGIN.left, y], [MARGIN.left + view.width, y]).stroke();
    context.fillStyle = textColour;
    context.fillText(text, MARGIN.left - 7, y);
  };
  const tolerance = measure === "ratio" && view.low < 0;
  const step = Math.ceil((view.high - view.low) / 6);
  for (let power = Math.ceil(view.low); power <= view.high; power++) {
    if (power % step === 0 && !(tolerance && power === 0)) across(power, colours.faint, powerText(power), colours.muted);
  }
  context.fillStyle = colours.muted;
  context.fillText("∞, NaN", MARGIN.left - 7, MARGIN.top - 12);
  if (!tolerance) return;
  context.setLineDash([6, 4]);
  across(0, colours.ink, t("tolerance 1"), colours.ink);
  context.setLineDash([]);
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
    if (part.from > view.from) path(context, [left, MARGIN.top - 20], [left, bottom + 20]).stroke();
    const text = `${t(part.phase)} ▸`;
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
    path(context, [x, 18], [x, bottom]).stroke();
    context.setLineDash([]);
    const value = values[row];
    if (value > 0 && value < Infinity && view.high < 30) {
      context.beginPath();
      context.arc(x, yOf(view, Math.log10(value)), 4.5, 0, 7);
      context.fill();
      context.strokeStyle = colours.surface;
      context.stroke();
    }
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
    const x = xOf(view, row);
    context.strokeStyle = context.fillStyle = row === selected ? colours.accent : colours.muted;
    context.lineWidth = width;
    path(context, [x, MARGIN.top - 20], [x, bottom + 7]).stroke();
    context.lineWidth = 1;
    if (row === selected) path(context, [x, bottom + 3], [x - 5, bottom + 10], [x + 5, bottom + 10]).fill();
  }
}

/** The parts of an entry's name that tell it from others, without its prefix, class and numbers. */
export function brief(name: string): string {
  return shortened(pathOf(shortened(name, 200), 3), 60);
}

/** Points, from one to the next: to be stroked or filled. */
export function path(context: CanvasRenderingContext2D, ...points: [x: number, y: number][]): CanvasRenderingContext2D {
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  return context;
}
