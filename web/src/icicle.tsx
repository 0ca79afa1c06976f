/** The model as an icicle: what encloses stands above, coloured by the error that a call adds of its own. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Canvas, type Draw, useWidth } from "./canvas.tsx";
import { Glyph, Goto } from "./controls.tsx";
import { largest } from "./data.ts";
import { COLOURS, GLYPHS, type Model, Outcome, WORDS } from "./model.ts";
import { type ColourBy, usePage } from "./page.ts";
import { short, shortened } from "./text.ts";
import type { Colour, Palette } from "./theme.ts";
import { buildTree, type Direction, lineOf, type TreeNode } from "./tree.ts";
import { t } from "./texts.ts";

/** Height of a level: more where there are few. */
const LOWEST = 24, HIGHEST = 46, WANTED = 300;
const MOST_LEVELS = 11, MOST_ADDERS = 6;

/** ``many``: how many nodes share the box, where each is narrower than a pixel. */
interface Box { node: TreeNode; level: number; x: number; width: number; many: number }

export function Icicle({ direction }: { direction: Direction }) {
  const { model, state, select } = usePage();
  const { root, ofCall } = useMemo(() => buildTree(model, direction), [model, direction]);
  const [top, setTop] = useState(root);
  const [box, width] = useWidth<HTMLDivElement>();
  const [hover, setHover] = useState<Box | null>(null);
  const pressed = useRef<TreeNode | null>(null);
  useEffect(() => setTop(only(root)), [root]);
  // What is selected elsewhere comes into view.
  const selected = ofCall.get(state.call);
  useEffect(() => {
    if (selected && !lineOf(selected).includes(top)) setTop(only(root));
  }, [selected]);
  const boxes = useMemo(() => layout(model, top, width), [model, top, width]);
  const levels = boxes.reduce((most, each) => Math.max(most, each.level + 1), 1);
  const tall = Math.max(LOWEST, Math.min(HIGHEST, Math.floor(WANTED / levels)));
  const draw = useCallback<Draw>((context, _width, _height, colours) => {
    const last = (each: Box) => Number(each.node === selected) + Number(each.node.origins > 0 && each.width < 8);
    for (const each of [...boxes].sort((a, b) => last(a) - last(b))) drawBox(context, colours, model, each, tall, state.colour, each.node === selected);
  }, [boxes, model, tall, state.colour, selected]);
  const boxAt = (event: MouseEvent) => {
    const place = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const x = event.clientX - place.left, level = Math.floor((event.clientY - place.top) / tall);
    return boxes.find((each) => each.level === level && x >= each.x && x < each.x + Math.max(1, each.width)) ?? null;
  };
  const path = lineOf(top).reverse();
  const zoom = (node: TreeNode | undefined) => node?.children.length && setTop(node);
  return (
    <div class="icicle">
      <div class="bar crumbs">
        {path.map((each) => (
          <button type="button" key={each.label + each.depth} onClick={() => setTop(each)} aria-current={each === top ? "true" : undefined}>{shortened(each.label || "…", 40)}</button>
        ))}
        <button type="button" disabled={!selected?.children.length || selected === top} onClick={() => zoom(selected)}>{t("zoom to selected")}</button>
      </div>
      <div class="canvas" ref={box}>
        <Canvas draw={draw} height={levels * tall} label={icicleLabel(model, root, direction)} id="icicle"
          onPointerMove={(event) => setHover(boxAt(event))} onPointerLeave={() => setHover(null)}
          onClick={(event) => {
            const hit = boxAt(event);
            pressed.current = hit?.node ?? null;
            if (!hit) return;
            if (hit.node.call >= 0 && hit.many === 1) select(hit.node.call);
            else if (hit.many > 1 && hit.node.parent) setTop(hit.node.parent);
            else zoom(hit.node);
          }}
          onDblClick={() => zoom(pressed.current ?? undefined)} />
      </div>
      <p class="muted told" aria-live="off">{hover ? told(model, hover) : LEGENDS[state.colour][1]}</p>
      {!model.alone && <Adders direction={direction} />}
    </div>
  );
}

/** The calls that add most error of their own. */
function Adders({ direction }: { direction: Direction }) {
  const { model } = usePage();
  const adds = (call: number) => (model.phase(call) === direction && model.added(call) > 1 ? model.added(call) : NaN);
  const most = useMemo(() => largest(model.calls, MOST_ADDERS, adds), [model, direction]);
  if (!most.length) return <p class="muted">{t("No call gives out more error than it takes in and its tolerance allows.")}</p>;
  return (
    <table class="adders">
      <thead><tr><th scope="col">{t("adds most error")}</th>{[t("in"), t("out"), t("adds")].map((title) => <th scope="col" class="number" key={title}>{title}</th>)}</tr></thead>
      <tbody>{most.map((call) => (
        <tr key={call}>
          <td><Glyph outcome={model.callOutcome[call]} /> <Goto call={call} /></td>
          <td class="number">{short(model.taken[call])}</td><td class="number">{short(model.given[call])}</td><td class="number">×{short(model.added(call))}</td>
        </tr>
      ))}</tbody>
    </table>
  );
}

/** Below a chain of single children: where the first choice is. */
function only(root: TreeNode): TreeNode {
  let at = root;
  while (at.children.length === 1 && at.children[0].children.length) at = at.children[0];
  return at;
}

function layout(model: Model, top: TreeNode, width: number): Box[] {
  const boxes: Box[] = [];
  if (!width) return boxes;
  // What is no call, as the root of all, takes no place of its own.
  const waiting: Box[] = [{ node: top, level: top.call < 0 ? -1 : 0, x: 0, width, many: 1 }];
  for (let box = waiting.pop(); box; box = waiting.pop()) {
    if (box.level >= 0) boxes.push(box);
    if (box.level + 1 >= MOST_LEVELS || box.many > 1) continue;
    let x = box.x;
    let gathered: Box | null = null;
    for (const child of box.node.children) {
      const wide = (child.leaves / box.node.leaves) * box.width;
      if (wide >= 1.5) waiting.push({ node: child, level: box.level + 1, x, width: wide, many: 1 });
      else if (gathered && x + wide - gathered.x <= 2) {
        gathered.width = x + wide - gathered.x;
        gathered.many++;
        if (severity(model, child) > severity(model, gathered.node)) gathered.node = child;
      } else {
        gathered = { node: child, level: box.level + 1, x, width: wide, many: 1 };
        waiting.push(gathered);
      }
      x += wide;
    }
  }
  return boxes;
}

function severity(model: Model, node: TreeNode): number {
  return node.origins * 1e6 + (node.call >= 0 ? model.added(node.call) : 0);
}

/** The colour of a call; ``surface`` where there is nothing to say. */
function colourOf(model: Model, call: number, by: ColourBy): Colour {
  if (call < 0) return "surface";
  const outcome = model.callOutcome[call];
  if (outcome === Outcome.ORIGIN) return "origin";
  if (outcome === Outcome.UNMATCHED && model.isAlone(call)) return "unmatched";
  if (by === "outcome") return outcome <= Outcome.NOT_COMPARED ? "passes" : COLOURS[outcome];
  if (by === "finite") return model.rowsOf(call).some((row) => model.nonFinite(row)) ? "differs" : "passes";
  const value = by === "added" ? model.added(call) : model.callWorst[call];
  return value <= 1 ? (by === "added" && model.given[call] > 1 ? "heat0" : "passes") : value <= 10 ? "heat1" : "heat2";
}

function drawBox(context: CanvasRenderingContext2D, colours: Palette, model: Model, box: Box, tall: number, by: ColourBy, selected: boolean): void {
  const y = box.level * tall, width = Math.max(0.5, box.width - (box.width > 4 ? 1 : 0));
  const colour = colourOf(model, box.node.call, by);
  context.fillStyle = colours[colour];
  context.fillRect(box.x, y, width, tall - 1);
  if (colours[colour] === colours.surface) {
    context.strokeStyle = colours.line;
    context.strokeRect(box.x + 0.5, y + 0.5, width - 1, tall - 2);
  }
  if (selected) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    const out = width < 8 ? 2 : -1; // around what is narrow, inside of what is not
    context.strokeRect(box.x - out, y + 1, width + 2 * out, tall - 3);
    context.lineWidth = 1;
  }
  if (box.many > 1 || box.width < 14) return;
  const text = readable(colours[colour], colours);
  const solid = text !== colours.ink;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const inside = box.node.origins - (colour === "origin" ? 1 : 0);
  let right = box.x + width - 5;
  const badge = `✖${inside}`, wide = context.measureText(badge).width;
  if (inside > 0 && box.node.children.length && wide + 6 < width) {
    context.fillStyle = solid ? text : colours.origin;
    context.fillText(badge, right - wide, y + tall / 2);
    right -= wide + 6;
  }
  context.fillStyle = text;
  const room = right - box.x - 5, glyph = colour === "origin" ? "✖ " : "", full = glyph + box.node.label;
  const fits = context.measureText(full).width <= room;
  context.fillText(fits ? full : fitting(context, glyph + box.node.label.slice(box.node.label.lastIndexOf(".") + 1), room), box.x + 5, y + tall / 2);
}

/** The ink or the surface, whichever stands out more on a colour. */
function readable(fill: string, colours: Palette): string {
  const light = lightness(fill);
  return Math.abs(lightness(colours.ink) - light) >= Math.abs(lightness(colours.surface) - light) ? colours.ink : colours.surface;
}

function lightness(colour: string): number {
  const [red, green, blue] = (colour.match(/[\d.]+/g) ?? []).map((each) => Math.pow(Number(each) / 255, 2.2));
  return Math.sqrt(0.2126 * red + 0.7152 * green + 0.0722 * blue);
}

/** As much of a text as fits, its end first to go; nothing where that would be a letter or two. */
function fitting(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = Math.min(text.length, Math.ceil(width / 3));
  while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return length > 1 ? `${text.slice(0, length)}…` : "";
}

function told(model: Model, box: Box): string {
  const { call } = box.node;
  if (box.many > 1) return t("{count} calls that are too narrow to draw; click to see them", { count: box.many });
  if (call < 0) return t("{name}: {count} calls inside", { name: box.node.label, count: box.node.leaves });
  const flow = t("takes in {taken}, gives out {given}, adds ×{added}",
    { taken: short(model.taken[call]), given: short(model.given[call]), added: short(model.added(call)) });
  return `${GLYPHS[model.callOutcome[call]]} ${shortened(model.names[call], 160)} · ${flow}`;
}

/** What a colour shows: in the menu, and below the icicle. */
export const LEGENDS: Record<ColourBy, readonly [string, string]> = {
  added: [t("added error"), t("Colour: what a call adds, out ÷ max(in, 1). Pale agrees, blue adds nothing, amber up to 10 times, red more; dark has no counterpart.")],
  worst: [t("largest error"), t("Colour: the largest error ratio of a call. Pale up to 1, amber up to 10, red more; dark has no counterpart.")],
  outcome: [t("result"), t("Colour: the most severe result of a call.")],
  finite: [t("NaN, infinity"), t("Colour: calls with NaN or infinity.")],
};

function icicleLabel(model: Model, root: TreeNode, direction: Direction): string {
  const origins = [...model.originOfCall.keys()].map((call) => shortened(model.names[call], 100)).slice(0, 3).join(", ");
  const told = t("{count} {direction} calls by what encloses them, coloured by error.", { count: root.leaves, direction: t(direction) });
  return `${told} ${origins ? `${WORDS[Outcome.ORIGIN]}: ${origins}` : ""}`;
}
