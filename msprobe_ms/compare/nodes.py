"""The nodes of a comparison: matched entries with what is needed to judge where error begins."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msprobe_ms.compare.kinks import allowed_by_kinks, is_smooth
from msprobe_ms.compare.model import Pair, Row
from msprobe_ms.names import BACKWARD, DEBUG, FORWARD, PARAMETER, PARAMETERS_GRAD, EntryName

#: Least growth of strain inside a node for it to be an origin; kernels of healthy frameworks differ by less.
_JUMP = 5.0
#: Inputs this little strained count as not strained at all when growth is judged: below it lies rounding.
_REST = 0.03
#: Inputs strained beyond 1 by no more than this may still be drift; a node that multiplies it is to blame all the same.
DRIFT = 3.0
_JUMP_FROM_DRIFT = 30.0


@dataclass(eq=False, slots=True)
class Node:
    """A matched pair of entries, with what judging it needs."""

    order: int
    pair: Pair
    name: str
    parsed: EntryName | None
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    #: What went into the computation besides this entry's own inputs: a backward node's forward twin, the calls whose
    #: gradients a parameter gradient sums.
    context: list[Node] = field(default_factory=list)
    strain_in: float = 0.0
    strain_parameters: float = 0.0
    strain_out: float = 0.0
    #: Of a save: the one before it.
    before: Node | None = None

    @property
    def is_save(self) -> bool:
        """A value without a call: what the script saved, what a compiled graph keeps."""
        return self.parsed is not None and (self.parsed.direction == DEBUG or self.is_kept)

    @property
    def is_kept(self) -> bool:
        """A parameter or input of a compiled graph, after it ran."""
        return self.parsed is not None and self.parsed.prefix == PARAMETER

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
        return max((self.strain_in, *(whole_strain(node) for node in self.context)))

    def is_origin(self, doubtful: bool) -> bool:
        """Whether error begins here; ``doubtful`` when something differed before, which figures may hide."""
        before, after = self.strain_before, max(self.strain_out, self.strain_parameters)
        # What differs a little may have drifted; where something jumped before, it has inherited.
        if after <= 1 or before > (1 if doubtful else DRIFT):
            return False
        doubtful = before > (_REST if doubtful else 1)
        return after / max(before, _REST) >= (_JUMP_FROM_DRIFT if doubtful else _JUMP)

    def takes_in_what_differs(self, seen: float) -> bool:
        """Whether an input differs by far more than anything did before, and no origin around this node says why."""
        if self.strain_in <= 1 or self.strain_in / max(seen, _REST) < _JUMP:
            return False
        return not any(node.is_origin(doubtful=False) for node in self.ancestors())

    def ancestors(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def whole_strain(node: Node) -> float:
    return max(node.strain_in, node.strain_parameters, 0.0 if node.is_backward else node.strain_out)


def strain(row: Row) -> float:
    """Deviation of a row in tolerances; 0 where there is nothing to compare or the record was refuted."""
    if row.refuted or row.deviation is None or row.tolerance is None or row.deviation == 0:
        return 0.0
    return row.deviation / row.tolerance if row.tolerance > 0 else math.inf


def worst(rows: Iterable[Row]) -> Row | None:
    return max(rows, key=strain, default=None)


def strain_of(pair: Pair, *states: str) -> float:
    return max((strain(row) for row in pair.rows if state_of(row) in states), default=0.0)


def state_of(row: Row) -> str:
    item = row.target or row.golden
    return item.state if item is not None else ""


def nodes_of(pairs: list[Pair]) -> list[Node]:
    nodes: list[Node] = []
    for order, pair in enumerate(pairs):
        if pair.target is None or pair.golden is None:
            continue
        node = Node(order, pair, pair.target.name, pair.target.parsed)
        node.strain_in = strain_of(pair, "input")
        node.strain_parameters = strain_of(pair, "parameters")
        node.strain_out = strain_of(pair, "output", "parameters_grad", "debug")
        nodes.append(node)
    by_name = {node.name: node for node in nodes}
    forwards: dict[str, list[Node]] = defaultdict(list)
    backwards: dict[str, list[Node]] = defaultdict(list)
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


def _context(
    node: Node, by_name: dict[str, Node], forwards: dict[str, list[Node]], backwards: dict[str, list[Node]]
) -> list[Node]:
    if node.parsed is None:
        return []
    if node.parsed.direction == BACKWARD:
        twin = by_name.get(str(node.parsed.in_direction(FORWARD)))
        return [] if twin is None else [twin]
    if node.parsed.direction == PARAMETERS_GRAD:
        return [*forwards[node.parsed.name], *backwards[node.parsed.name]]
    return []
