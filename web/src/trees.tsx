/** Target and golden side by side: one tree, so both expand together; what has no counterpart shows ∅. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { useLines } from "./canvas.tsx";
import { CopyButton, Glyph } from "./controls.tsx";
import { CallFlag, type Model, Outcome } from "./model.ts";
import { usePage } from "./page.ts";
import { short, shortened } from "./text.ts";
import { buildTree, type Direction, layerMapping, lineOf, pathOf, type TreeNode } from "./tree.ts";
import { t } from "./texts.ts";

export function Trees({ direction }: { direction: Direction }) {
  const { model, state, select } = usePage();
  const { root, ofCall } = useMemo(() => buildTree(model, direction), [model, direction]);
  const [open, setOpen] = useState<ReadonlySet<TreeNode>>(() => new Set());
  const [alone, setAlone] = useState(false);
  // Everything above the selection, and above the first origin, is open.
  useEffect(() => {
    const wanted = new Set(open);
    for (const call of [state.call, model.originOfCall.keys().next().value ?? -1]) {
      for (const each of lineOf(ofCall.get(call) ?? root).slice(1)) wanted.add(each);
    }
    setOpen(wanted);
  }, [state.call, ofCall]);
  const lines = useMemo(() => visible(model, root, open, alone), [model, root, open, alone]);
  const { scroller, spacer, body, first, last, shown, reveal, moved, onScroll } = useLines(lines.length, 0);
  const at = lines.findIndex((each) => each.call === state.call);
  useEffect(() => void (at >= 0 && reveal(at)), [at]);
  const toggle = (node: TreeNode) => setOpen(open.has(node) ? new Set([...open].filter((each) => each !== node)) : new Set([...open, node]));
  const choose = (node: TreeNode | null | undefined) => node && node.call >= 0 && select(node.call);
  const onKeyDown = (event: KeyboardEvent) => {
    const node = lines[at];
    const next = moved(event.key, at);
    if (next !== null) choose(lines[next]);
    else if (event.key === "ArrowRight" && node) open.has(node) || !node.children.length ? choose(lines[at + 1]) : toggle(node);
    else if (event.key === "ArrowLeft" && node) open.has(node) ? toggle(node) : choose(node.parent);
    else return;
    event.preventDefault();
  };
  return (
    <div class="trees">
      <div class="bar">
        <label class="check"><input type="checkbox" checked={alone} onChange={(event) => setAlone(event.currentTarget.checked)} />{" "}{t("only what has no counterpart")}</label>
        <span class="spring" />
        <Mapping />
      </div>
      <div class="pair head"><span>{t("target")}</span><span>{t("paired by · error")}</span><span>{t("golden")}</span></div>
      <div class="scroll" role="tree" aria-label={t("calls of target and golden, {direction}", { direction: t(direction) })} tabIndex={0} ref={scroller} onKeyDown={onKeyDown}
        onScroll={onScroll} aria-activedescendant={at >= first && at < last ? `tree${at}` : undefined}>
        <div ref={spacer} class="spacer" role="none"><div ref={body} class="body" role="none">
          {shown.map((place) => lines[place]).map((node, index) => (
            <Line key={index} id={`tree${first + index}`} node={node} selected={node.call === state.call && node.call >= 0} open={open.has(node)}
              toggle={() => toggle(node)} choose={() => (node.call >= 0 ? select(node.call) : toggle(node))} />
          ))}
        </div></div>
        {!lines.length && <p class="empty">{t("Every call has a counterpart.")}</p>}
      </div>
    </div>
  );
}

function Line({ id, node, selected, open, toggle, choose }: {
  id: string; node: TreeNode; selected: boolean; open: boolean; toggle: () => void; choose: () => void;
}) {
  const { model } = usePage();
  const { call } = node;
  const flags = call >= 0 ? model.callFlags[call] : 3;
  const indent = (element: HTMLElement | null) => {
    if (element) element.style.paddingLeft = `${Math.min(node.depth - 1, 14) * 14 + 4}px`;
  };
  const outcome = call >= 0 ? model.callOutcome[call] : Outcome.AGREES;
  const how = call >= 0 ? model.hows[model.how[call]] : "";
  return (
    <div class={`pair line${selected ? " selected" : ""}`} role="treeitem" id={id} aria-level={node.depth} aria-selected={selected}
      aria-expanded={node.children.length ? open : undefined} onClick={choose}>
      <span ref={indent} class="side">
        <span class={`fold${node.children.length ? "" : " leaf"}`} aria-hidden="true" onClick={(event) => { event.stopPropagation(); toggle(); }}>
          {node.children.length ? (open ? "▾" : "▸") : "·"}
        </span>
        <Glyph outcome={outcome} />{" "}
        {flags & CallFlag.TARGET ? <bdi>{shortened(node.label, 120)}</bdi> : <span class="muted">∅</span>}
        {node.origins > 0 && outcome !== Outcome.ORIGIN && <span class="origin badge">✖{node.origins}</span>}
      </span>
      <span><span class="chip">{t(how)}</span> {call >= 0 && model.given[call] > 1 && <span class="muted">{short(model.given[call])}</span>}</span>
      <span class="side">{call < 0 || model.alone ? "" : flags & CallFlag.GOLDEN ? <bdi>{shortened(pathOf(model.golden(call)), 120)}</bdi> : <span class="muted">{t("∅ no counterpart")}</span>}</span>
    </div>
  );
}

/** Choose one call of each side, and copy the lines that pair their modules. */
function Mapping() {
  const { model, state } = usePage();
  const [[target, golden], setMarked] = useState([-1, -1]);
  const flags = state.call >= 0 ? model.callFlags[state.call] : 0;
  const yaml = target >= 0 && golden >= 0 ? layerMapping(model, target, golden) : "";
  const name = (call: number, text: (call: number) => string, side: string) => call >= 0 ? shortened(pathOf(text(call)), 40) : side;
  return (
    <span class="group" role="group" aria-label={t("pair by hand: choose a call of each side")}>
      <button type="button" disabled={!(flags & CallFlag.TARGET)} onClick={() => setMarked([state.call, golden])} title={t("take the selected call's target")}>
        {name(target, (call) => model.names[call], t("pair target…"))}
      </button>
      <button type="button" disabled={!(flags & CallFlag.GOLDEN)} onClick={() => setMarked([target, state.call])} title={t("take the selected call's golden")}>
        {name(golden, (call) => model.golden(call), t("with golden…"))}
      </button>
      {yaml && <CopyButton text={() => yaml} title={yaml}>{t("copy as layer mapping")}</CopyButton>}
      {target >= 0 && golden >= 0 && !yaml && <span class="muted">{t("only modules can be mapped by layer")}</span>}
    </span>
  );
}

function visible(model: Model, root: TreeNode, open: ReadonlySet<TreeNode>, alone: boolean): TreeNode[] {
  const lines: TreeNode[] = [];
  const waiting = [...root.children].reverse();
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    const unmatched = node.call >= 0 && model.isAlone(node.call);
    if (!alone || unmatched) lines.push(node);
    if (open.has(node) || alone) for (let i = node.children.length - 1; i >= 0; i--) waiting.push(node.children[i]);
  }
  return lines;
}
