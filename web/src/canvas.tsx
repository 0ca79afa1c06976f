/** A canvas that is drawn again when its size, its colours or what it shows change. */

import type { CanvasHTMLAttributes } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { onThemeChange, type Palette, palette } from "./theme.ts";

export type Draw = (context: CanvasRenderingContext2D, width: number, height: number, colours: Palette) => void;

interface Props extends Omit<CanvasHTMLAttributes<HTMLCanvasElement>, "label" | "ref" | "height"> {
  draw: Draw;
  label: string;
  height: number;
}

export function Canvas({ draw, label, height, ...rest }: Props) {
  const element = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const canvas = element.current!;
    const redraw = () => {
      const scale = devicePixelRatio || 1;
      const width = canvas.clientWidth;
      if (!width) return;
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      const context = canvas.getContext("2d")!;
      context.scale(scale, scale);
      context.font = `11px ${getComputedStyle(canvas).fontFamily}`;
      draw(context, width, height, palette());
    };
    redraw();
    const observer = new ResizeObserver(redraw);
    observer.observe(canvas);
    const stop = onThemeChange(redraw);
    return () => {
      observer.disconnect();
      stop();
    };
  }, [draw, height]);
  useLayoutEffect(() => {
    element.current!.style.height = `${height}px`;
  }, [height]);
  return <canvas ref={element} role="img" aria-label={label} {...rest} />;
}

/** The width of an element in pixels, as it changes. */
export function useWidth<T extends HTMLElement>(): [{ current: T | null }, number] {
  const element = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setWidth(element.current?.clientWidth ?? 0);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}
