/** Small parts that panels share. */

import { useState } from "preact/hooks";
import { ALONE_WORDS, COLOURS, GLYPHS, WORDS } from "./model.ts";
import { grouped } from "./text.ts";

/** An outcome by glyph, word and colour. */
export function Label({ outcome, count, alone }: { outcome: number; count?: number; alone?: boolean }) {
  return (
    <span class={`outcome ${COLOURS[outcome]}`}>
      <span class="glyph" aria-hidden="true">{GLYPHS[outcome]}</span> <span class="word">{(alone ? ALONE_WORDS : WORDS)[outcome]}</span>
      {count !== undefined && <span class="muted"> {grouped(count)}</span>}
    </span>
  );
}

interface SegmentedProps<T extends string> {
  label: string;
  value: T;
  set: (value: T) => void;
  options: readonly (readonly [T, string])[];
}

/** One of few: buttons side by side. */
export function Segmented<T extends string>({ label, value, set, options }: SegmentedProps<T>) {
  return (
    <span class="group" role="group" aria-label={label}>
      {options.map(([each, text]) => (
        <button type="button" key={each} aria-pressed={each === value} onClick={() => set(each)}>{text}</button>
      ))}
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

export function CopyButton({ text, children, title }: { text: () => string; children: string; title?: string }) {
  const [done, setDone] = useState("");
  const copy = async () => {
    setDone((await copyText(text())) ? "copied" : "not copied");
    setTimeout(() => setDone(""), 1500);
  };
  return <button type="button" class="copy" title={title} onClick={copy}><span role="status">{done || children}</span></button>;
}
