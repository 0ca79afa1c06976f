/** Small parts that panels share. */

import { type ComponentChildren, render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { COLOURS, GLYPHS, WORDS } from "./model.ts";
import { usePage } from "./page.ts";
import { grouped, shortened } from "./text.ts";
import { isDark, setTheme } from "./theme.ts";
import { t } from "./texts.ts";

/** An outcome by glyph, word and colour. */
export function Label({ outcome, count }: { outcome: number; count?: number }) {
  const { model } = usePage();
  return (
    <span class={`outcome ${COLOURS[outcome]}`}>
      <span class="glyph" aria-hidden="true">{GLYPHS[outcome]}</span> <span class="word">{model.words[outcome]}</span>
      {count !== undefined && <span class="muted"> {grouped(count)}</span>}
    </span>
  );
}

export function Glyph({ outcome }: { outcome: number }) {
  return <span class={`glyph ${COLOURS[outcome]}`} title={WORDS[outcome]} aria-hidden="true">{GLYPHS[outcome]}</span>;
}

/** A name that leads to its call. */
export function Goto({ call, row }: { call: number; row?: number }) {
  const { model, select } = usePage();
  return <button type="button" class="link" onClick={() => select(call, row)}><bdi>{shortened(model.names[call] ?? "", 160)}</bdi></button>;
}

/** One of few: buttons side by side. */
export function Segmented<T extends string>({ label, value, set, options }: {
  label: string; value: T; set: (value: T) => void; options: readonly (readonly [T, string])[];
}) {
  return (
    <span class="group" role="group" aria-label={label}>
      {options.map(([each, text]) => <button type="button" key={each} aria-pressed={each === value} onClick={() => set(each)}>{text}</button>)}
    </span>
  );
}

/** Copy a text; where the clipboard is closed to the page, by way of a selection. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

/** A button that copies a text, and says for a moment that it did. */
export function CopyButton({ text, children, title, done = t("copied") }: {
  text: () => string | Promise<string>; children: string; title?: string; done?: string;
}) {
  const [told, setTold] = useState("");
  const copy = async () => {
    setTold((await copyText(await text())) ? done : t("not copied"));
    setTimeout(() => setTold(""), 1500);
  };
  return <button type="button" title={title} onClick={copy}><span role="status">{told || children}</span></button>;
}

/** Switches between light and dark colours. */
export function ThemeButton() {
  const [dark, setDark] = useState(isDark());
  return <button type="button" onClick={() => { setTheme(dark ? "light" : "dark"); setDark(!dark); }} aria-label={dark ? t("light colours") : t("dark colours")} title={dark ? t("light") : t("dark")}>◐</button>;
}

/** Buttons in the header, which is not ours to render: they have an element of their own there. */
export function Tools({ children }: { children: ComponentChildren }) {
  const holder = useRef<HTMLElement | null>(null);
  useEffect(() => {
    const element = holder.current = document.createElement("div");
    element.className = "tools";
    document.getElementById("verdict")?.append(element);
    return () => element.remove();
  }, []);
  useEffect(() => render(<>{children}</>, holder.current!));
  return null;
}

/** A dialog over the page, which gives the focus back as it closes. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  useLayoutEffect(() => box.current!.showModal(), []);
  useEffect(() => () => before.current?.focus(), []);
  return (
    <dialog ref={box} class="help" aria-labelledby="help-title" onClose={close}
      onKeyDown={(event) => { if (event.key === "?") { event.stopPropagation(); close(); } }}>
      <h2 id="help-title">{title}</h2>
      {children}
      <p><button type="button" onClick={close}>{t("close")}</button></p>
    </dialog>
  );
}
