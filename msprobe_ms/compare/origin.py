"""Where error begins: the nodes, in execution order, whose inputs agree and whose output does not.

What a node differs by is measured in tolerances (its *strain*: deviation / tolerance, 1 = as far apart as dtype and
framework explain). A node is an origin when its output is strained beyond 1, its inputs are not, and the strain jumped
inside it; a drift that crosses the bound by degrees is no origin. Difference is inherited when an origin lies inside
the node, or when its inputs already differ. Two things have no node to blame and are origins of their own: an input
that differs although nothing computed before it does (data, a weight, code that was not recorded), and a parameter
that differs before the step has computed anything with it.

A record can be wrong where the computation is right: when every later node that takes in the very tensor an output
recorded finds it to agree, the difference is the record's and no origin (tools that record the gradient of
``cross_entropy`` with respect to its inner log-softmax leave such entries).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from msprobe_ms.compare.gaps import calls_between
from msprobe_ms.compare.kinks import allowed_by_kinks, is_smooth
from msprobe_ms.compare.last_nodes import refute_last_nodes
from msprobe_ms.compare.missing_gradients import find_missing_gradients
from msprobe_ms.compare.model import Metrics, Origin, Pair, Row
from msprobe_ms.compare.shared import refute_parts
from msprobe_ms.names import BACKWARD, DEBUG, FORWARD, PARAMETERS_GRAD, EntryName
from msprobe_ms.store.model import Entry

#: What tells one recorded tensor from another.
Fingerprint = tuple[object, ...]

#: Least growth of strain inside a node for it to be an origin; kernels of healthy frameworks differ by less.
_JUMP = 5.0
#: Inputs this little strained count as not strained at all when growth is judged: below it lies rounding.
_REST = 0.03
#: Inputs strained beyond 1 by no more than this may still be drift; a node that multiplies it is to blame all the same.
_DRIFT = 3.0
_JUMP_FROM_DRIFT = 30.0
#: Where nothing jumps, error that grew by degrees is told from this strain on; below it the net is only deep.
_DRIFTED = 10.0


def find_origins(pairs: list[Pair], golden: Sequence[Entry] = ()) -> list[Origin]:
    """The origins among measured pairs, in execution order; [] when the two dumps agree.

    ``golden``: all entries of the golden dump in execution order, to tell which of them lie unpaired before an origin.
    """
    _refute(pairs)
    refute_parts(pairs)
    refute_last_nodes(pairs)
    nodes = _nodes(pairs)
    between = partial(calls_between, pairs=pairs, golden=golden)
    origins: list[tuple[int, Origin]] = []
    explained: set[str] = set()
    wrong_parameters: set[str] = set()
    #: The largest strain of what was computed so far.
    seen = 0.0
    #: What switches at kinks explain of gradients from here on.
    switched = 0.0
    saved: _Node | None = None
    for node in nodes:
        if node.is_save:
            # A save has no inputs: what was saved before it is what it is computed from.
            node.strain_in, node.before, saved = seen, saved, node
        # Through the loss, a forward fault reaches every gradient of the step; and what is saved later inherits.
        if (node.is_backward or node.is_save) and origins:
            break
        found: _Node | None = None
        if node.is_backward and 0 < node.deviation <= max(switched, node.explained_by_kinks()):
            # Figures hide it further on, where it must not be taken for an origin.
            switched = max(switched, node.explained_by_kinks())
        elif node.is_origin(doubtful=seen > _DRIFT):
            found = node
            if node.name not in explained and node.module not in wrong_parameters:
                origins.append((node.order, _describe(node, nodes, between)))
        elif seen <= 1 and node.takes_in_what_differs(seen):
            # What encloses it took the difference in earlier, though its entry stands later.
            found = next((up for up in reversed([*node.ancestors()]) if up.strain_in > 1), node)
            origins.append((found.order, _describe_outside(found, between(found.pair))))
        if found is not None:
            explained.update(up.name for up in (found, *found.ancestors()))
            if found.strain_parameters > 1:
                wrong_parameters.add(found.module)
        seen = max(seen, node.strain_in, node.strain_parameters, 0.0 if node.is_parameter_gradient else node.strain_out)
    named = {origin.target for _, origin in origins}
    lost = [each for each in find_missing_gradients(pairs) if each[1].target not in named]
    if not origins and not lost and not switched:
        return _drift(nodes)
    origins += lost
    return [origin for _, origin in sorted(origins, key=lambda each: each[0])]


@dataclass(eq=False, slots=True)
class _Node:
    """A matched pair of entries, with what judging it needs."""

    order: int
    pair: Pair
    name: str
    parsed: EntryName | None
    parent: _Node | None = None
    children: list[_Node] = field(default_factory=list)
    #: What went into the computation besides this entry's own inputs: a backward node's forward twin, the calls whose
    #: gradients a parameter gradient sums.
    context: list[_Node] = field(default_factory=list)
    strain_in: float = 0.0
    strain_parameters: float = 0.0
    strain_out: float = 0.0
    #: Of a save: the one before it.
    before: _Node | None = None

    @property
    def is_save(self) -> bool:
        return self.parsed is not None and self.parsed.direction == DEBUG

    @property
    def is_backward(self) -> bool:
        return self.parsed is not None and self.parsed.direction in (BACKWARD, PARAMETERS_GRAD)

    def explained_by_kinks(self) -> float:
        """The deviation of its gradients that switches at kinks explain, given how its forward calls differ."""
        smooth = self.parsed is not None and not self.children and is_smooth(self.parsed.class_name)
        if not self.is_backward or (smooth and self.strain_in <= 1):
            return 0.0
        return allowed_by_kinks(row for node in self.context if not node.is_backward for row in node.pair.rows)

    @property
    def deviation(self) -> float:
        """The largest deviation beyond its tolerance."""
        return max((row.deviation or 0.0 for row in self.pair.rows if strain(row) > 1), default=0.0)

    @property
    def is_parameter_gradient(self) -> bool:
        return self.parsed is not None and self.parsed.direction == PARAMETERS_GRAD

    @property
    def module(self) -> str:
        return self.parsed.name if self.parsed is not None and self.parsed.is_module else self.name

    @property
    def strain_before(self) -> float:
        """The largest strain of anything the outputs are computed from, parameters apart."""
        return max((self.strain_in, *(_whole_strain(node) for node in self.context)))

    def is_origin(self, doubtful: bool) -> bool:
        """Whether error begins here; ``doubtful`` when something differed before, which figures may hide."""
        before, after = self.strain_before, max(self.strain_out, self.strain_parameters)
        # What differs a little may have drifted; where something jumped before, it has inherited.
        if after <= 1 or before > (1 if doubtful else _DRIFT):
            return False
        doubtful = before > (_REST if doubtful else 1)
        return after / max(before, _REST) >= (_JUMP_FROM_DRIFT if doubtful else _JUMP)

    def takes_in_what_differs(self, seen: float) -> bool:
        """Whether an input differs by far more than anything did before, and no origin around this node says why."""
        if self.strain_in <= 1 or self.strain_in / max(seen, _REST) < _JUMP:
            return False
        return not any(node.is_origin(doubtful=False) for node in self.ancestors())

    def ancestors(self) -> Iterator[_Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def _whole_strain(node: _Node) -> float:
    return max(node.strain_in, node.strain_parameters, 0.0 if node.is_backward else node.strain_out)


def strain(row: Row) -> float:
    """Deviation of a row in tolerances; 0 where there is nothing to compare or the record was refuted."""
    if row.refuted or row.deviation is None or row.tolerance is None or row.deviation == 0:
        return 0.0
    return row.deviation / row.tolerance if row.tolerance > 0 else math.inf


def _worst(rows: Iterable[Row]) -> Row | None:
    return max(rows, key=strain, default=None)


def _strain_of(pair: Pair, *states: str) -> float:
    return max((strain(row) for row in pair.rows if _state(row) in states), default=0.0)


def _state(row: Row) -> str:
    item = row.target or row.golden
    return item.state if item is not None else ""


def _nodes(pairs: list[Pair]) -> list[_Node]:
    nodes: list[_Node] = []
    for order, pair in enumerate(pairs):
        if pair.target is None or pair.golden is None:
            continue
        node = _Node(order, pair, pair.target.name, pair.target.parsed)
        node.strain_in = _strain_of(pair, "input")
        node.strain_parameters = _strain_of(pair, "parameters")
        node.strain_out = _strain_of(pair, "output", "parameters_grad", "debug")
        nodes.append(node)
    by_name = {node.name: node for node in nodes}
    forwards: dict[str, list[_Node]] = defaultdict(list)
    backwards: dict[str, list[_Node]] = defaultdict(list)
    for node in nodes:
        node.parent = by_name.get((node.pair.target.parent if node.pair.target else None) or "")
        if node.parent is not None:
            node.parent.children.append(node)
        if node.parsed is not None and node.parsed.is_module:
            group = {FORWARD: forwards, BACKWARD: backwards}.get(node.parsed.direction)
            if group is not None:
                group[node.parsed.name].append(node)
    for node in nodes:
        node.context = _context(node, by_name, forwards, backwards)
    return nodes


def _refute(pairs: list[Pair]) -> None:
    """Mark the strained outputs that later nodes took in, each time in agreement: same shape, same four figures."""
    inputs: dict[Fingerprint, list[tuple[int, Row]]] = defaultdict(list)
    for order, pair in enumerate(pairs):
        for row in pair.rows:
            if _state(row) == "input" and (key := _fingerprint(row)) is not None:
                inputs[key].append((order, row))
    for order, pair in enumerate(pairs):
        for row in pair.rows:
            if _state(row) == "output" and strain(row) > 1 and (key := _fingerprint(row)) is not None:
                taken = [use for later, use in inputs.get(key, ()) if later > order]
                row.refuted = bool(taken) and all(strain(use) <= 1 for use in taken)


def _fingerprint(row: Row) -> Fingerprint | None:
    item = row.target
    if item is None or row.golden is None or item.kind != "tensor" or item.norm is None or item.maximum == item.minimum:
        return None
    return item.shape, item.maximum, item.minimum, item.mean, item.norm


def _context(
    node: _Node, by_name: dict[str, _Node], forwards: dict[str, list[_Node]], backwards: dict[str, list[_Node]]
) -> list[_Node]:
    if node.parsed is None:
        return []
    if node.parsed.direction == BACKWARD:
        twin = by_name.get(str(node.parsed.in_direction(FORWARD)))
        return [] if twin is None else [twin]
    if node.parsed.direction == PARAMETERS_GRAD:
        return [*forwards[node.parsed.name], *backwards[node.parsed.name]]
    return []


def _drift(nodes: list[_Node]) -> list[Origin]:
    """Nothing jumps, yet something is far out of bounds: the first node that is out of bounds at all."""
    if all(strain(row) <= _DRIFTED for node in nodes for row in node.pair.rows):
        return []
    for node in nodes:
        row = _worst(node.pair.rows)
        if row is not None and strain(row) > 1:
            reason = f"error grows by degrees and crosses the tolerance here: {_figures(row)}"
            return [_origin(row, reason)]
    return []


def _describe(node: _Node, nodes: list[_Node], between: Callable[[Pair], str]) -> Origin:
    parameter = _worst(row for row in node.pair.rows if _state(row) == "parameters")
    if parameter is not None and strain(parameter) > 1:
        reason = (
            f"its inputs agree, but its parameter differs before the computation: {_figures(parameter)}"
            f"{_other_parameters(node, nodes)}; look at initialisation and checkpoint loading, in later steps at the "
            "optimizer, its learning rate and the gradients of the step before"
        )
        return _origin(parameter, reason)
    row = _worst(row for row in node.pair.rows if _state(row) in ("output", "parameters_grad", "debug"))
    assert row is not None
    if node.is_save:
        return _origin(row, f"the saved value differs: {_figures(row)}; {_what_was_saved_before(node)}")
    return _origin(row, f"{_what_agrees(node)}, {_figures(row)}{_inside(node, between)}{_around(node)}")


def _other_parameters(node: _Node, nodes: list[_Node]) -> str:
    """How many modules it shares this with: one is a slip, all are an update."""
    holders = {each.module for each in nodes if any(_state(row) == "parameters" for row in each.pair.rows)}
    others = {each.module for each in nodes if each.strain_parameters > 1} - {node.module}
    return (
        f" (so do parameters of {len(others)} of the {len(holders) - 1} other modules with parameters)"
        if others
        else ""
    )


def _what_agrees(node: _Node) -> str:
    if node.is_parameter_gradient:
        return "the layer's inputs and the gradients that reach it agree, its parameter gradient does not"
    worst = max((strain(row) for row in node.pair.rows if _state(row) == "input"), default=0.0)
    margin = "exactly" if worst == 0 else f"to {worst:.2g} of the tolerance"
    return f"its inputs agree {margin}, its output does not"


def _what_was_saved_before(node: _Node) -> str:
    if node.before is None:
        return "nothing was saved before it"
    margin = "exactly" if node.strain_in == 0 else f"to {node.strain_in:.2g} of the tolerance"
    return f"what was saved before it agrees {margin}: look at the code after {node.before.name} was saved"


def _figures(row: Row) -> str:
    item = row.target or row.golden
    # What a save holds may be the tensor itself, with no place of its own.
    suffix = (item.suffix if item is not None else "") or "it"
    target, golden = row.target, row.golden
    if target is not None and golden is not None and target.kind == "value" == golden.kind:
        return f"{suffix} is {target.maximum} against {golden.maximum}"
    if target is not None and golden is not None and target.shape != golden.shape:
        return f"{suffix} has shape {_shape(target.shape)} against {_shape(golden.shape)}"
    if row.deviation == math.inf:
        return f"{suffix} differs beyond measure"
    return f"{suffix} deviates by {row.deviation:.3g} (tolerance {row.tolerance:.3g})"


def _shape(shape: object) -> str:
    return str(list(shape)) if isinstance(shape, tuple) else str(shape)


def _inside(node: _Node, between: Callable[[Pair], str]) -> str:
    """What the calls recorded inside an origin say: they agree, so the fault is in its own code, or where it enters."""
    for child in node.children:
        row = _worst(row for row in child.pair.rows if _state(row) == "input")
        if row is not None and strain(row) > 1 and row.target is not None:
            gap = between(child.pair)
            after = f", right after calls without a twin: {gap}" if gap else ""
            return f"; inside it the difference shows first at {row.target.name}{after}"
    if node.children:
        return f"; the {len(node.children)} calls recorded inside it agree: look at the code between and after them"
    return ""


def _around(node: _Node) -> str:
    # A dump of functions or kernels names modules that have no entries in it.
    target = node.pair.target
    around = node.parent.name if node.parent is not None else target.parent if target is not None else None
    if around is None or (node.parsed is not None and node.parsed.is_module):
        return ""
    return f"; called in {around}"


def _describe_outside(node: _Node, between: str) -> Origin:
    """``between``: the calls without a twin that lie before it."""
    row = next(row for row in node.pair.rows if _state(row) == "input" and strain(row) > 1)
    if between:
        before = "though nothing before it that was compared differs"
        source = f"calls without a twin come right before it: {between}: look there, or pair them by a mapping"
    elif node.is_backward:
        before = "though nothing recorded before it differs"
        source = "the gradient differs on arrival: look at the loss and at what follows this node"
    else:
        before = "though nothing recorded before it differs"
        source = "it comes from outside: input data, a weight, an argument, or code that was not recorded"
    return _origin(row, f"{_figures(row)}, {before}; {source}{_around(node)}")


def _origin(row: Row, reason: str) -> Origin:
    assert row.target is not None and row.golden is not None
    metrics: Metrics = dict(row.metrics)
    metrics["deviation"], metrics["tolerance"] = row.deviation, row.tolerance
    return Origin(row.target.name, row.golden.name, row.target.state, reason, metrics)
