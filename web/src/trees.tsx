/** Target and golden side by side: one tree, so both expand together; what has no counterpart shows ∅. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { CopyButton } from "./controls.tsx";
import { CallFlag, GLYPHS, COLOURS, type Model, Outcome, WORDS } from "./model.ts";
import { usePage } from "./page.ts";
import { short, shortened } from "./text.ts";
import { buildTree, type Direction, layerMapping, pathOf, type TreeNode } from "./tree.ts";

const LINE = 24;
/** Taller than the panel is: so many lines are in the document. */
const HEIGHT = 900;

export function Trees({ direction }: { direction: Direction }) {
  const { model, state, select } = usePage();
  const { root, ofCall } = useMemo(() => buildTree(model, direction), [model, direction]);
  const [open, setOpen] = useState<ReadonlySet<TreeNode>>(() => new Set());
  const [alone, setAlone] = useState(false);
  const [marked, setMarked] = useState<[number, number]>([-1, -1]);
  const [top, setTop] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  // Everything above the selection, and above the first origin, is open.
  useEffect(() => {
    const wanted = new Set(open);
    for (const call of [state.call, model.originOfCall.keys().next().value ?? -1]) {
      for (let at = ofCall.get(call)?.parent; at; at = at.parent) wanted.add(at);
    }
    setOpen(wanted);
  }, [state.call, ofCall]);
  const lines = useMemo(() => visible(model, root, open, alone), [model, root, open, alone]);
  const at = lines.findIndex((each) => each.call === state.call);
  useEffect(() => {
    const element = scroller.current!;
    if (at >= 0 && (at * LINE < element.scrollTop || (at + 2) * LINE > element.scrollTop + element.clientHeight)) element.scrollTop = at * LINE - element.clientHeight / 3;
  }, [at]);
  const toggle = (node: TreeNode, wanted = !open.has(node)) => {
    const next = new Set(open);
    if (wanted) next.add(node);
    else next.delete(node);
    setOpen(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const node = lines[at];
    const go = (place: number) => {
      const wanted = lines[Math.max(0, Math.min(lines.length - 1, place))];
      if (wanted && wanted.call >= 0) select(wanted.call);
    };
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(lines.length - 1);
    else if (event.key === "ArrowRight" && node) open.has(node) || !node.children.length ? go(at + 1) : toggle(node, true);
    else if (event.key === "ArrowLeft" && node) open.has(node) ? toggle(node, false) : node.parent && node.parent.call >= 0 && select(node.parent.call);
    else return;
    event.preventDefault();
  };
  const first = Math.max(0, Math.floor(top / LINE) - 5);
  const shown = lines.slice(first, first + Math.ceil(HEIGHT / LINE) + 10);
  const place = (element: HTMLElement | null) => {
    if (element) element.style.transform = `translateY(${first * LINE}px)`;
  };
  const size = (element: HTMLElement | null) => {
    if (element) element.style.height = `${lines.length * LINE}px`;
  };
  return (
    <div class="trees">
      <div class="bar">
        <label class="check"><input type="checkbox" checked={alone} onChange={(event) => setAlone(event.currentTarget.checked)} /> only what has no counterpart</label>
        <span class="spring" />
        <Mapping marked={marked} setMarked={setMarked} />
      </div>
      <div class="pair head"><span>target</span><span>paired by</span><span>golden</span></div>
      <div class="scroll" role="tree" aria-label={`calls of target and golden, ${direction}`} tabIndex={0} ref={scroller} onKeyDown={onKeyDown}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)} aria-activedescendant={at >= first && at < first + shown.length ? `tree${at}` : undefined}>
        <div ref={size} role="none"><div ref={place} role="none">
          {shown.map((node, index) => (
            <Line key={index} id={`tree${first + index}`} node={node} model={model} selected={node.call === state.call && node.call >= 0} open={open.has(node)}
              toggle={() => toggle(node)} choose={() => (node.call >= 0 ? select(node.call) : toggle(node))} />
          ))}
        </div></div>
        {!lines.length && <p class="empty">Every call has a counterpart.</p>}
      </div>
    </div>
  );
}

interface LineProps {
  id: string;
  node: TreeNode;
  model: Model;
  selected: boolean;
  open: boolean;
  toggle: () => void;
  choose: () => void;
}

function Line({ id, node, model, selected, open, toggle, choose }: LineProps) {
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
        <span class={`glyph ${COLOURS[outcome]}`} title={WORDS[outcome]}>{GLYPHS[outcome]}</span>
        {flags & CallFlag.TARGET ? <bdi>{shortened(node.label, 120)}</bdi> : <span class="muted">∅</span>}
        {node.origins > 0 && outcome !== Outcome.ORIGIN && <span class="origin badge">✖{node.origins}</span>}
      </span>
      <span class="chip">{how}{call >= 0 && model.given[call] > 1 ? <span class="muted"> ×{short(model.given[call])}</span> : null}</span>
      <span class="side">{call < 0 || model.alone ? "" : flags & CallFlag.GOLDEN ? <bdi>{shortened(pathOf(model.golden(call)), 120)}</bdi> : <span class="muted">∅ no counterpart</span>}</span>
    </div>
  );
}

interface MappingProps {
  marked: [number, number];
  setMarked: (marked: [number, number]) => void;
}

/** Choose one call of each side, and copy the lines that pair their modules. */
function Mapping({ marked: [target, golden], setMarked }: MappingProps) {
  const { model, state } = usePage();
  const flags = state.call >= 0 ? model.callFlags[state.call] : 0;
  const yaml = target >= 0 && golden >= 0 ? layerMapping(model, target, golden) : "";
  const name = (call: number, text: (call: number) => string, side: string) => call >= 0 ? shortened(pathOf(text(call)), 40) : side;
  return (
    <span class="group" role="group" aria-label="pair by hand: choose a call of each side">
      <button type="button" disabled={!(flags & CallFlag.TARGET)} onClick={() => setMarked([state.call, golden])} title="take the selected call's target">
        {name(target, (call) => model.names[call], "pair target…")}
      </button>
      <button type="button" disabled={!(flags & CallFlag.GOLDEN)} onClick={() => setMarked([target, state.call])} title="take the selected call's golden">
        {name(golden, (call) => model.golden(call), "with golden…")}
      </button>
      {yaml && <CopyButton text={() => yaml} title={yaml}>copy as layer mapping</CopyButton>}
      {target >= 0 && golden >= 0 && !yaml && <span class="muted">only modules can be mapped by layer</span>}
    </span>
  );
}

function visible(model: Model, root: TreeNode, open: ReadonlySet<TreeNode>, alone: boolean): TreeNode[] {
  const lines: TreeNode[] = [];
  const waiting = [...root.children].reverse();
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    const unmatched = node.call >= 0 && !model.alone && (model.callFlags[node.call] & 3) !== 3;
    if (!alone || unmatched) lines.push(node);
    if (open.has(node) || alone) for (let i = node.children.length - 1; i >= 0; i--) waiting.push(node.children[i]);
  }
  return lines;
}
