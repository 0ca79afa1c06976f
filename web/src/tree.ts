/** The nesting of calls: from their enclosing calls, or from dotted names where a dump has no structure. */

import { t } from "./texts.ts";
import { CallFlag, type Model, Outcome } from "./model.ts";
import { printable } from "./text.ts";

export interface TreeNode {
  label: string;
  /** The call, -1 for a part of names that is no call. */
  call: number;
  parent: TreeNode | null; children: TreeNode[]; depth: number; leaves: number;
  /** Origins in this node and below it. */
  origins: number;
}

export type Direction = "forward" | "backward";

const PREFIXES = /^(Cell|Module)\./;
const NOT_NESTED = CallFlag.GRADIENT | CallFlag.VALUE | CallFlag.UPDATE;

/** Build the tree of one direction; its root encloses all. */
export function buildTree(model: Model, direction: Direction): { root: TreeNode; ofCall: Map<number, TreeNode> } {
  const root = node(t("all"), -1, null);
  const ofCall = new Map<number, TreeNode>();
  const wanted = direction === "backward" ? CallFlag.BACKWARD : 0;
  const calls: number[] = [];
  for (let call = 0; call < model.calls; call++) {
    const flags = model.callFlags[call];
    if (!(flags & NOT_NESTED) && (flags & CallFlag.BACKWARD) === wanted) calls.push(call);
  }
  const structured = calls.some((call) => model.parent[call] > 0);
  // A parent may stand after its children: all nodes are made first.
  for (const call of calls) ofCall.set(call, node("", call, null));
  const groups = new Map<string, TreeNode>();
  for (const call of calls) {
    const own = ofCall.get(call)!;
    const above = ofCall.get(model.parent[call] - 1);
    // A dump from elsewhere may have circles.
    const parent = above && !lineOf(above).includes(own) ? above : structured ? root : grouped(groups, root, model.names[call]);
    own.parent = parent;
    parent.children.push(own);
  }
  label(model, root);
  count(model, root);
  return { root, ofCall };
}

function node(label: string, call: number, parent: TreeNode | null): TreeNode {
  return { label, call, parent, children: [], depth: 0, leaves: 0, origins: 0 };
}

/** A node and all above it, itself first. */
export function lineOf(node: TreeNode): TreeNode[] {
  const line: TreeNode[] = [];
  for (let at: TreeNode | null = node; at; at = at.parent) line.push(at);
  return line;
}

function grouped(groups: Map<string, TreeNode>, root: TreeNode, name: string): TreeNode {
  const parts = pathOf(name).split(".").slice(0, 30);
  let parent = root;
  for (let length = 1; length < parts.length; length++) {
    const path = parts.slice(0, length).join(".");
    let group = groups.get(path);
    if (!group) {
      group = node(parts[length - 1], -1, parent);
      groups.set(path, group);
      parent.children.push(group);
    }
    parent = group;
  }
  return parent;
}

/** The dotted path of a module; of another entry its first parts. */
export function pathOf(name: string, first = 2): string {
  const parts = name.split(".");
  if (!PREFIXES.test(name)) return parts.slice(0, first).join(".");
  let end = parts.length - 1;
  while (end > 0 && parts[end] !== "forward" && parts[end] !== "backward" && parts[end] !== "parameters_grad") end--;
  return parts.slice(1, Math.max(2, end - 1)).join(".");
}

/** The class of a module, the last part of its name before the direction. */
export function classOf(name: string): string {
  const found = /\.([^.]+)\.(?:forward|backward|parameters_grad)\.\d+$/.exec(name);
  return found && PREFIXES.test(name) ? found[1] : "";
}

function label(model: Model, root: TreeNode): void {
  const waiting = [root];
  for (let at = waiting.pop(); at; at = waiting.pop()) {
    for (const child of at.children) {
      child.depth = at.depth + 1;
      if (child.call >= 0) {
        const path = pathOf(model.names[child.call]), above = at.call >= 0 ? pathOf(model.names[at.call]) : lineOf(at).slice(0, -1).reverse().map((each) => each.label).join(".");
        child.label = printable(above && path.startsWith(`${above}.`) ? path.slice(above.length + 1) : path).slice(0, 300);
      }
      waiting.push(child);
    }
  }
}

function count(model: Model, root: TreeNode): void {
  const ordered: TreeNode[] = [root];
  for (let i = 0; i < ordered.length; i++) for (const child of ordered[i].children) ordered.push(child);
  for (let i = ordered.length - 1; i >= 0; i--) {
    const each = ordered[i];
    if (!each.children.length) each.leaves = 1;
    if (each.call >= 0 && model.callOutcome[each.call] === Outcome.ORIGIN) each.origins++;
    if (each.parent) {
      each.parent.leaves += each.leaves;
      each.parent.origins += each.origins;
    }
  }
}

/** Lines of mapping.md's layer mapping that pair a target's module with a golden's; "" where one is no module. */
export function layerMapping(model: Model, target: number, golden: number): string {
  const [own, other] = [model.names[target], model.golden(golden)];
  if (!PREFIXES.test(own) || !PREFIXES.test(other)) return "";
  const above = model.parent[target] - 1;
  const enclosed = above >= 0 && PREFIXES.test(model.names[above]);
  const parent = enclosed ? model.names[above] : "";
  const goldenParent = enclosed ? model.golden(above) : "";
  const key = below(pathOf(own), enclosed ? pathOf(parent) : "");
  const value = below(pathOf(other), goldenParent ? pathOf(goldenParent) : "");
  const lines = [enclosed ? classOf(parent) || "TopLayer" : "TopLayer", key, value];
  // Names that would need escapes are left to the author of the mapping.
  if (lines.some((each) => !each || printable(each) !== each)) return "";
  return `${quoted(lines[0])}:\n  ${quoted(key)}: ${quoted(value)}\n`;
}

function below(path: string, above: string): string {
  return above && path.startsWith(`${above}.`) ? path.slice(above.length + 1) : path;
}

function quoted(text: string): string {
  return /^[A-Za-z_][\w.]*$/.test(text) && !/^(true|false|yes|no|null|on|off|y|n)$/i.test(text) ? text : `'${text.replace(/'/g, "''")}'`;
}
