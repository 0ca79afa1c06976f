/** Where in a tensor the two differ: a map of the difference, value against value, histograms, the worst elements. */

import type { ComponentChildren } from "preact";
import { useCallback, useMemo } from "preact/hooks";
import { Canvas, type Draw } from "./canvas.tsx";
import { fromBase64, type Picture } from "./data.ts";
import { path } from "./drawing.ts";
import { useLoaded, usePage } from "./page.ts";
import { grouped, printable, short, shortened } from "./text.ts";
import type { Palette } from "./theme.ts";
import { t } from "./texts.ts";

const SIZE = 190;

export function Elements() {
  const { model, state } = usePage();
  const pictures = useLoaded(() => (model.columns.has("pictures") ? model.columns.json<Picture>("pictures") : Promise.resolve([])), model);
  const picture = useMemo(() => pictures?.find((each) => each.row === state.row), [pictures, state.row]);
  if (!pictures) return <p class="muted">{t("decoding…")}</p>;
  if (!picture) {
    return model.index.mode === "tensor"
      ? <p class="empty">{t("No picture of this tensor: only those near the origins and those furthest apart have one.")}</p>
      : <p class="empty">{t("The dumps hold statistics alone. To see elements, record both with")}{" "}<code>"task": "tensor"</code>{" "}{t("in the config, for this node only:")}{" "}<code>"list"</code>{" "}{t("takes its name.")}</p>;
  }
  const { map, scatter, histograms, worst } = picture;
  return (
    <div class="elements">
      {picture.where && <p class="wide">{shortened(picture.where, 600)}</p>}
      {map && <Tiles map={map} shape={picture.shape} />}
      {scatter && <Density scatter={scatter} />}
      {histograms && <Histograms histograms={histograms} />}
      {worst && worst.length > 0 && <figure class="wide">
        <figcaption>{t("the elements furthest apart")}</figcaption>
        <table class="worst"><thead><tr><th>{t("index")}</th><th>{t("target")}</th><th>{t("golden")}</th></tr></thead>
          <tbody>{worst.slice(0, 10).map(([index, target, golden], place) => (
            <tr key={place}><td>{printable(`[${index.join(", ")}]`)}</td><td>{shortened(target, 40)}</td><td>{shortened(golden, 40)}</td></tr>
          ))}</tbody></table>
      </figure>}
    </div>
  );
}

/** A picture with its title above and what its axes mean below. */
function Drawing({ title, draw, label, children }: { title: ComponentChildren; draw: Draw; label: string; children: ComponentChildren }) {
  return <figure><figcaption>{title}</figcaption><Canvas draw={draw} height={SIZE} label={label} /><p class="muted">{children}</p></figure>;
}

function Tiles({ map, shape }: { map: NonNullable<Picture["map"]>; shape: number[] }) {
  const bytes = useMemo(() => fromBase64(map.data), [map]);
  const draw = useCallback<Draw>((context, width, height, colours) => {
    const ramp = ramps(colours);
    paint(context, width, height, map.rows, map.columns, (row, column) => {
      const code = bytes[row * map.columns + column];
      return code === 0 ? colours.faint : code === 255 ? colours.ink : ramp(code / 254);
    });
  }, [bytes, map]);
  return (
    <Drawing title={t("|target − golden|")} draw={draw} label={t("map of the difference, {of}; from {low} to {high}", { of: map.of, low: short(map.low), high: short(map.high) })}>
      {short(map.low)} <span class="ramp" aria-hidden="true" /> {short(map.high)} · {t("grey equal")} · <b class="ink">■</b> NaN<br />{printable(map.of)}; shape [{shape.join(", ")}]
    </Drawing>
  );
}

function Density({ scatter }: { scatter: NonNullable<Picture["scatter"]> }) {
  const bytes = useMemo(() => fromBase64(scatter.data), [scatter]);
  const draw = useCallback<Draw>((context, width, height, colours) => {
    const ramp = ramps(colours);
    const most = bytes.reduce((a, b) => Math.max(a, b), 1);
    paint(context, width, height, scatter.size, scatter.size, (row, column) => {
      const code = bytes[(scatter.size - 1 - row) * scatter.size + column];
      return code ? ramp(0.15 + 0.85 * (code / most)) : null;
    });
    context.strokeStyle = colours.muted;
    context.setLineDash([3, 3]);
    path(context, [0, height], [width, 0]).stroke();
    context.setLineDash([]);
    context.strokeStyle = colours.line;
    context.strokeRect(0.5, 0.5, width - 1, height - 1);
  }, [bytes, scatter]);
  return (
    <Drawing title={t("target ↑ against golden →")} draw={draw} label={t("target value against golden value of every element, from {low} to {high}", { low: short(scatter.low), high: short(scatter.high) })}>
      {t("{low} to {high}, logarithmic on both sides of 0; on the dashed line both are equal", { low: short(scatter.low), high: short(scatter.high) })}
    </Drawing>
  );
}

function Histograms({ histograms: { target, golden, low, high } }: { histograms: NonNullable<Picture["histograms"]> }) {
  const draw = useCallback<Draw>((context, width, height, colours) => {
    const most = Math.max(1, ...target, ...golden);
    const step = width / target.length;
    const y = (count: number) => height - 1 - (Math.log2(1 + count) / Math.log2(1 + most)) * (height - 6);
    context.fillStyle = colours.agrees;
    golden.forEach((count, place) => context.fillRect(place * step, y(count), Math.max(1, step - 0.5), height - y(count)));
    context.strokeStyle = colours.origin;
    context.lineWidth = 1.5;
    path(context, ...target.flatMap((count, place): [number, number][] => [[place * step, y(count)], [(place + 1) * step, y(count)]])).stroke();
  }, [target, golden]);
  return (
    <Drawing title={<>{t("values:")} <span class="origin">{t("— target")}</span>, <span class="agrees">{t("▮ golden")}</span></>} draw={draw}
      label={t("histograms of {count} elements of both sides", { count: grouped(golden.reduce((a, b) => a + b, 0)) })}>
      {t("{low} to {high}; heights are logarithmic", { low: short(low), high: short(high) })}
    </Drawing>
  );
}

/** Fill a grid of cells; where there are many, by their corners, so that none is lost between pixels. */
function paint(context: CanvasRenderingContext2D, width: number, height: number, rows: number, columns: number,
  colour: (row: number, column: number) => string | null): void {
  for (let row = 0; row < rows; row++) {
    const top = Math.floor((row / rows) * height), bottom = Math.ceil(((row + 1) / rows) * height);
    for (let column = 0; column < columns; column++) {
      const fill = colour(row, column);
      if (fill === null) continue;
      context.fillStyle = fill;
      const left = Math.floor((column / columns) * width);
      context.fillRect(left, top, Math.ceil(((column + 1) / columns) * width) - left, bottom - top);
    }
  }
}

/** Colours from little to much: three of the style sheet, mixed. */
function ramps(colours: Palette): (share: number) => string {
  const stops = [colours.heat0, colours.heat1, colours.heat2].map((each) => (each.match(/[\d.]+/g) ?? ["0", "0", "0"]).map(Number));
  const known: string[] = [];
  for (let step = 0; step <= 64; step++) {
    const at = Math.min(1.999, (step / 64) * 2), low = stops[Math.floor(at)], high = stops[Math.floor(at) + 1];
    known.push(`rgb(${[0, 1, 2].map((channel) => Math.round(low[channel] + (high[channel] - low[channel]) * (at % 1))).join(" ")})`);
  }
  return (share) => known[Math.max(0, Math.min(64, Math.round(share * 64)))];
}
