"""Why a node is an origin, in a sentence with the figures."""

from __future__ import annotations

import math
from collections.abc import Callable

from msprobe_ms.compare.model import Metrics, Origin, Pair, Row
from msprobe_ms.compare.nodes import Node, state_of, strain, worst


def describe(node: Node, nodes: list[Node], between: Callable[[Pair], str]) -> Origin:
    parameter = worst(row for row in node.pair.rows if state_of(row) == "parameters")
    if parameter is not None and strain(parameter) > 1:
        reason = (
            f"its inputs agree, but its parameter differs before the computation: {figures(parameter)}"
            f"{_other_parameters(node, nodes)}; look at initialisation and checkpoint loading, in later steps at the "
            "optimizer, its learning rate and the gradients of the step before"
        )
        return origin_at(parameter, reason)
    row = worst(row for row in node.pair.rows if state_of(row) in ("output", "parameters_grad", "debug"))
    assert row is not None
    if node.is_kept:
        return origin_at(row, f"the graph keeps another value, though all its kernels agree: {figures(row)}")
    if node.is_save:
        return origin_at(row, f"the saved value differs: {figures(row)}; {_what_was_saved_before(node)}")
    return origin_at(row, f"{_what_agrees(node)}, {figures(row)}{_inside(node, between)}{_around(node)}")


def _other_parameters(node: Node, nodes: list[Node]) -> str:
    """How many modules it shares this with: one is a slip, all are an update."""
    holders = {each.module for each in nodes if any(state_of(row) == "parameters" for row in each.pair.rows)}
    others = {each.module for each in nodes if each.strain_parameters > 1} - {node.module}
    return (
        f" (so do parameters of {len(others)} of the {len(holders) - 1} other modules with parameters)"
        if others
        else ""
    )


def _what_agrees(node: Node) -> str:
    if node.is_parameter_gradient:
        return "the layer's inputs and the gradients that reach it agree, its parameter gradient does not"
    worst = max((strain(row) for row in node.pair.rows if state_of(row) == "input"), default=0.0)
    margin = "exactly" if worst == 0 else f"to {worst:.2g} of the tolerance"
    return f"its inputs agree {margin}, its output does not"


def _what_was_saved_before(node: Node) -> str:
    if node.before is None:
        return "nothing was saved before it"
    margin = "exactly" if node.strain_in == 0 else f"to {node.strain_in:.2g} of the tolerance"
    return f"what was saved before it agrees {margin}: look at the code after {node.before.name} was saved"


def figures(row: Row) -> str:
    item = row.target or row.golden
    # What a save holds may be the tensor itself, with no place of its own.
    suffix = (item.suffix if item is not None else "") or "it"
    target, golden = row.target, row.golden
    if target is not None and golden is not None and "value" in (target.kind, golden.kind):
        return f"{suffix} is {target.maximum} against {golden.maximum}"
    if target is not None and golden is not None and target.shape != golden.shape:
        return f"{suffix} has shape {_shape(target.shape)} against {_shape(golden.shape)}"
    if row.deviation == math.inf:
        return f"{suffix} differs beyond measure"
    return f"{suffix} deviates by {row.deviation:.3g} (tolerance {row.tolerance:.3g})"


def _shape(shape: object) -> str:
    return str(list(shape)) if isinstance(shape, tuple) else str(shape)


def _inside(node: Node, between: Callable[[Pair], str]) -> str:
    """What the calls recorded inside an origin say: they agree, so the fault is in its own code, or where it enters."""
    for child in node.children:
        row = worst(row for row in child.pair.rows if state_of(row) == "input")
        if row is not None and strain(row) > 1 and row.target is not None:
            gap = between(child.pair)
            after = f", right after calls without a twin: {gap}" if gap else ""
            return f"; inside it the difference shows first at {row.target.name}{after}"
    if node.children:
        return f"; the {len(node.children)} calls recorded inside it agree: look at the code between and after them"
    return ""


def _around(node: Node) -> str:
    # A dump of functions or kernels names modules that have no entries in it.
    target = node.pair.target
    around = node.parent.name if node.parent is not None else target.parent if target is not None else None
    if around is None or (node.parsed is not None and node.parsed.is_module):
        return ""
    return f"; called in {around}"


def describe_outside(node: Node, between: str) -> Origin:
    """``between``: the calls without a twin that lie before it."""
    row = next(row for row in node.pair.rows if state_of(row) == "input" and strain(row) > 1)
    if between:
        before = "though nothing before it that was compared differs"
        source = f"calls without a twin come right before it: {between}: look there, or pair them by a mapping"
    elif node.is_backward:
        before = "though nothing recorded before it differs"
        source = "the gradient differs on arrival: look at the loss and at what follows this node"
    else:
        before = "though nothing recorded before it differs"
        source = "it comes from outside: input data, a weight, an argument, or code that was not recorded"
    return origin_at(row, f"{figures(row)}, {before}; {source}{_around(node)}")


def origin_at(row: Row, reason: str) -> Origin:
    assert row.target is not None and row.golden is not None
    metrics: Metrics = dict(row.metrics)
    metrics["deviation"], metrics["tolerance"] = row.deviation, row.tolerance
    return Origin(row.target.name, row.golden.name, row.target.state, reason, metrics)
