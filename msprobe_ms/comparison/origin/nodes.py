"""The nodes of a comparison: matched entries, and how strained what goes into them and what comes out is.

The *strain* of a row is its deviation in tolerances: 1 is as far apart as dtype and framework explain.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.origin.explanations.relu_switching import allowed_by_kinks, is_smooth
from msprobe_ms.comparison.origin.layer_kinds import Kind, kind_of
from msprobe_ms.comparison.tensor_identity import GOLDEN, TARGET, Fingerprint, fingerprint, norm_of
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.names import BACKWARD, DEBUG, FORWARD, PARAMETER, PARAMETERS_GRAD, EntryName

#: States of what a node gives out.
RESULTS = ("output", "parameters_grad", "debug")


@dataclass(eq=False, slots=True)
class Node:
    """A matched pair of entries, with what judging it needs.

    ``parent``    the nearest enclosing call that is a node
    ``context``   what went into the computation besides this entry's own inputs: a backward node's forward twin, the
                  calls whose gradients a parameter gradient sums
    ``before``    of a save: the one before it
    ``noise``, ``noise_inside``  the largest strain of its parameters that differ by right (see ``harmless``), and of
                  those of the calls inside it
    """

    order: int
    pair: Pair
    name: str
    parsed: EntryName | None
    parent: Node | None = None
    children: Sequence[Node] = ()
    context: Sequence[Node] = ()
    strain_in: float = 0.0
    strain_parameters: float = 0.0
    strain_out: float = 0.0
    before: Node | None = None
    noise: float = 0.0
    noise_inside: float = 0.0

    def measure(self) -> None:
        """Fill the strains from the rows."""
        strain_in = strain_parameters = strain_out = 0.0
        for row in self.pair.rows:
            amount = strain(row)
            if amount:
                state = row.state
                if state == "input":
                    strain_in = max(strain_in, amount)
                elif state == "parameters":
                    strain_parameters = max(strain_parameters, amount)
                else:
                    strain_out = max(strain_out, amount)
        self.strain_in, self.strain_parameters, self.strain_out = strain_in, strain_parameters, strain_out

    @property
    def kind(self) -> Kind:
        kind = kind_of(self.parsed)
        if kind is Kind.OTHER and self.pair.how == PairedBy.GROUP and self.pair.golden is not None:
            kind = kind_of(self.pair.golden.parsed)  # the last of several calls does not tell what all of them are
        return Kind.OTHER if kind is Kind.RANDOM and self._hands_on() else kind

    def _hands_on(self) -> bool:
        """Whether it gives out on both sides what it took in: a dropout of probability 0 draws nothing."""
        taken, given = next(self.rows("input"), None), next(self.rows("output"), None)
        if taken is None or given is None:
            return False
        return all(
            (print_in := fingerprint(taken, side)) is not None and print_in == fingerprint(given, side)
            for side in (TARGET, GOLDEN)
        )

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

    @property
    def is_parameter_gradient(self) -> bool:
        return self.parsed is not None and self.parsed.direction == PARAMETERS_GRAD

    @property
    def is_part(self) -> bool:
        """A framework's own part of a layer, which users know by the layer alone (``LSTM`` runs ``_DynamicLSTM``)."""
        return self.parent is not None and self.parsed is not None and self.parsed.class_name.startswith("_")

    @property
    def module(self) -> str:
        return self.parsed.name if self.parsed is not None and self.parsed.is_module else self.name

    def rows(self, *states: str) -> Iterator[Row]:
        return (row for row in self.pair.rows if row.state in states)

    def explained_by_kinks(self) -> float:
        """The deviation of its gradients that switches at kinks explain, given how its forward calls differ."""
        smooth = self.parsed is not None and not self.children and is_smooth(self.parsed.class_name)
        if not self.is_backward or (smooth and self.strain_in <= 1):
            return 0.0
        return allowed_by_kinks(row for node in self.context if not node.is_backward for row in node.pair.rows)

    @property
    def deviation(self) -> float:
        """The largest deviation beyond its tolerance."""
        if max(self.strain_in, self.strain_parameters, self.strain_out) <= 1:
            return 0.0
        return max((row.deviation or 0.0 for row in self.pair.rows if strain(row) > 1), default=0.0)

    @property
    def strain_before(self) -> float:
        """The largest strain of anything the outputs are computed from, parameters that can be blamed apart."""
        return max((self.strain_in, self.noise, *map(_whole_strain, self.context)))

    @property
    def strain_taken(self) -> float:
        """The largest strain of all that explains the outputs."""
        return max(self.strain_before, self.strain_parameters, self.noise_inside)

    def ancestors(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def _whole_strain(node: Node) -> float:
    return max(node.strain_in, node.strain_parameters, node.noise, 0.0 if node.is_backward else node.strain_out)


def strain(row: Row) -> float:
    """Deviation of a row in tolerances; 0 where there is nothing to compare or the record was refuted."""
    deviation, tolerance = row.deviation, row.tolerance
    if not deviation or tolerance is None or row.refuted:
        return 0.0
    return deviation / tolerance if tolerance > 0 else math.inf


def worst(rows: Iterable[Row]) -> Row | None:
    return max(rows, key=strain, default=None)


def nodes_of(pairs: list[Pair]) -> list[Node]:
    """The nodes in execution order, records that every later use refutes marked as such."""
    nodes = [
        Node(order, pair, pair.target.name, pair.target.parsed)
        for order, pair in enumerate(pairs)
        if pair.target is not None and pair.golden is not None
    ]
    for node in nodes:
        node.measure()
    _refute(nodes)
    _connect(nodes, pairs)
    return nodes


def _refute(nodes: list[Node]) -> None:
    """Mark strained outputs that later nodes took in, each time in agreement: same shape, same four figures."""
    doubted: dict[Fingerprint, list[tuple[Node, Row]]] = defaultdict(list)
    for node in nodes:
        if node.strain_out > 1:
            for row in node.rows("output"):
                if strain(row) > 1 and (key := fingerprint(row)) is not None:
                    doubted[key].append((node, row))
    #: Where each was taken in last, and where last in disagreement.
    last: dict[Fingerprint, int] = {}
    last_differing: dict[Fingerprint, int] = {}
    norms = {key[-1] for key in doubted}
    for node in nodes if doubted else ():
        for row in node.pair.rows:
            if row.state == "input" and norm_of(row) in norms and row.matched and (key := fingerprint(row)) is not None:
                last[key] = node.order
                if strain(row) > 1:
                    last_differing[key] = node.order
    refuted = set[Node]()
    for key, records in doubted.items():
        for node, row in records:
            if last.get(key, -1) > node.order >= last_differing.get(key, -1):
                row.refuted = True
                refuted.add(node)
    for node in refuted:
        node.measure()


def _connect(nodes: list[Node], pairs: list[Pair]) -> None:
    """Fill parents, children and context."""
    by_name = {node.name: node for node in nodes}
    around = {pair.target.name: pair.target.parent for pair in pairs if pair.target is not None and not pair.matched}
    inside: dict[Node, list[Node]] = defaultdict(list)
    forwards: dict[str, list[Node]] = defaultdict(list)
    backwards: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        parent = node.pair.target.parent if node.pair.target else None
        if parent in around:
            parent = _nearest(parent, around)
        node.parent = by_name.get(parent or "")
        parsed = node.parsed
        if parsed is not None and parsed.is_module:
            if parsed.direction == FORWARD:
                forwards[parsed.name].append(node)
            elif parsed.direction == BACKWARD:
                backwards[parsed.name].append(node)
    _break_rings(nodes)
    for node in nodes:
        if node.parent is not None:
            inside[node.parent].append(node)
    for around_node, children in inside.items():
        around_node.children = children
    for node in nodes:
        parsed = node.parsed
        if parsed is None:
            continue
        if parsed.direction == BACKWARD:
            twin = by_name.get(str(parsed.in_direction(FORWARD)))
            node.context = () if twin is None else (twin,)
        elif parsed.direction == PARAMETERS_GRAD:
            node.context = [*forwards[parsed.name], *backwards[parsed.name]]


def _break_rings(nodes: list[Node]) -> None:
    """Calls that enclose each other, as a damaged construct.json says, would never end: the last of a ring is free."""
    sound = set[Node]()
    for node in nodes:
        path: dict[Node, None] = {}
        up: Node | None = node
        while up is not None and up not in sound:
            path[up] = None
            if up.parent in path:
                up.parent = None
            up = up.parent
        sound.update(path)


def _nearest(parent: str | None, around: dict[str, str | None]) -> str | None:
    """The nearest enclosing call with a twin; ``around``: what encloses the calls without one."""
    seen = set[str | None]()
    while parent in around and parent not in seen:
        seen.add(parent)
        parent = around[parent]
    return parent
