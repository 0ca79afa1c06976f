/** Names that lead to their call, and the glyph of what became of a value. */

import { COLOURS, GLYPHS, WORDS } from "./model.ts";
import { usePage } from "./page.ts";
import { shortened } from "./text.ts";

export function Goto({ call, row }: { call: number; row?: number }) {
  const { model, select } = usePage();
  return (
    <button type="button" class="link" onClick={() => select(call, row)}><bdi>{shortened(model.names[call] ?? "", 160)}</bdi></button>
  );
}

export function Glyph({ outcome }: { outcome: number }) {
  return <span class={`glyph ${COLOURS[outcome]}`} title={WORDS[outcome]} aria-hidden="true">{GLYPHS[outcome]}</span>;
}
