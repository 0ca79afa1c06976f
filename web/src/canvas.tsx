/** What follows the size of its element: canvases, which are drawn again, and long lists, of which only what is seen exists. */

import type { CanvasHTMLAttributes } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { onThemeChange, type Palette, palette } from "./theme.ts";

export type Draw = (context: CanvasRenderingContext2D, width: number, height: number, colours: Palette) => void;

interface Props extends Omit<CanvasHTMLAttributes<HTMLCanvasElement>, "label" | "ref" | "height"> { draw: Draw; label: string; height: number }

/** A canvas that is drawn again when its size, its colours or what it shows change. */
export function Canvas({ draw, label, height, ...rest }: Props) {
  const redraw = useCallback((canvas: HTMLCanvasElement) => {
    const scale = devicePixelRatio || 1, width = canvas.clientWidth;
    if (!width) return;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d")!;
    context.scale(scale, scale);
    context.font = `11px ${getComputedStyle(canvas).fontFamily}`;
    draw(context, width, height, palette());
  }, [draw, height]);
  const element = useSized(redraw);
  useLayoutEffect(() => onThemeChange(() => redraw(element.current!)), [redraw]);
  useLayoutEffect(() => void (element.current!.style.height = `${height}px`), [height]);
  return <canvas ref={element} role="img" aria-label={label} {...rest} />;
}

/** Call back at once, and whenever the size of an element changes. */
function useSized<T extends HTMLElement>(sized: (element: T) => void): { current: T | null } {
  const element = useRef<T>(null);
  useLayoutEffect(() => {
    const measured = element.current!;
    sized(measured);
    const observer = new ResizeObserver(() => sized(measured));
    observer.observe(measured);
    return () => observer.disconnect();
  }, [sized]);
  return element;
}

/** The width of an element in pixels, as it changes. */
export function useWidth<T extends HTMLElement>(): [{ current: T | null }, number] {
  const [width, setWidth] = useState(0);
  return [useSized(useCallback((element: T) => setWidth(element.clientWidth), [])), width];
}

const LINE = 24;
/** Browsers cap the height of an element: beyond this a list scrolls in proportion. */
const TALLEST = 8_000_000;

/** Lines ``first`` to ``last`` of ``count`` are seen in ``scroller``, ``head`` of whose lines stay where they are. */
export function useLines(count: number, head: number) {
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(480);
  const scroller = useSized(useCallback((element: HTMLDivElement) => setHeight(element.clientHeight), []));
  const spacer = useRef<HTMLDivElement>(null), body = useRef<HTMLDivElement>(null);
  const full = count * LINE, tall = Math.min(full, TALLEST);
  const room = Math.max(1, height - head * LINE);
  const stretch = tall > room && full > tall ? (full - room) / (tall - room) : 1;
  const first = Math.max(0, Math.min(count - 1, Math.floor((top * stretch) / LINE)));
  const last = Math.min(count, first + Math.ceil(room / LINE) + 2);
  useLayoutEffect(() => {
    spacer.current!.style.height = `${tall}px`;
    const shift = stretch === 1 ? first * LINE : top - (((top * stretch) / LINE) % 1) * LINE;
    body.current!.style.transform = `translateY(${shift}px)`;
  });
  const reveal = (place: number) => {
    const element = scroller.current!;
    const at = (place * LINE) / stretch;
    if (at < element.scrollTop || at > element.scrollTop + room - LINE / stretch) {
      element.scrollTop = Math.max(0, at - (stretch === 1 ? room / 3 : 0));
    }
  };
  /** Where a key leads from a line; null where it is none of those that move. */
  const moved = (key: string, from: number): number | null => {
    const page = Math.max(1, Math.floor(room / LINE) - 1);
    const step = new Map([["ArrowDown", 1], ["ArrowUp", -1], ["PageDown", page], ["PageUp", -page], ["Home", -count], ["End", count]]).get(key);
    return step === undefined ? null : Math.max(0, Math.min(count - 1, from + step));
  };
  const onScroll = (event: { currentTarget: HTMLElement }) => setTop(event.currentTarget.scrollTop);
  return { scroller, spacer, body, first, last, shown: Array.from({ length: Math.max(0, last - first) }, (_, place) => first + place), reveal, moved, onScroll };
}
