"""What comes out right was computed right: no origin lies within a call whose results agree.

A value that differs there stands beside another than its counterpart (operands in another order, calls of one function
in another order, one call beside several that do the same together), or has no effect on what is computed. One that
differs by so little that a healthy call may let it fade is what it seems (see `harmless_inputs`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import Fingerprints, fingerprints
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.explanations.later_uses import LaterUses
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, error_ratio, is_of_another_form, is_of_whole_numbers
from msprobe_ms.comparison.origin.propagation import DRIFT, GAIN_IN_DOUBT
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.statistics import element_count

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: Times that a result may be further apart than a parameter that updates set apart, and an input at least.
_DRIFT, _FAR_FROM_DRIFT = 2.0, 10.0


class _Given:
    """The largest error ratio of what modules gave out before a node, as far as it grew by drift; 1 at least.

    What is further apart than a call makes of what it takes in is no drift, nor is what comes after it on that account:
    neither far beyond anything before, nor at a call that takes in hardly any error.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._orders, self._largest = [-1], [1.0]
        for node in nodes:
            if not node.is_module or node.ratio_out <= self._largest[-1]:
                continue
            if node.ratio_out > GAIN_IN_DOUBT * min(self._largest[-1], _taken(node)):
                break
            self._orders.append(node.order)
            self._largest.append(node.ratio_out)

    def before(self, node: Node) -> float:
        return self._largest[bisect_left(self._orders, node.order) - 1]


def _taken(node: Node) -> float:
    """The largest error ratio that a module takes in, or that comes into being inside it; of a net a tolerance."""
    inside = max((each.ratio_out for each in node.children), default=0.0)
    return max(node.ratio_taken, inside, 1.0 if node.parent is None else 0.0)


class AgreeingResults(Surveyed):
    """Inputs of calls that come out right, and all values of functions called in a module that does, or before one.

    A function comes out right as well whose results differ from those beside them, but agree wherever they are used.

    A module that passes on what it takes in counts as a function: such ones (Identity, Dropout of probability 0) stand
    at other places in other implementations.

    Not what a module gives out of inputs that agree: modules are paired by their names and their place in the network,
    so that it is their own doing, though the error may fade behind it; but for what has another size and is cut to the
    same before the next call, which agrees. Nor parameters. A mask in another form that is no error in one call is none
    in another. After updates of the parameters results agree that are as near as these are.
    """

    name: ClassVar[str] = "results agree"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        self._drift = evidence.drift
        #: Few are asked for: of most nodes nothing differs, nor of what is around them.
        self._right: dict[Node, bool] = {}
        self._given = _Given(evidence.nodes)
        differing = {
            node: None
            for node in evidence.nodes
            if max(node.ratio_in, node.ratio_out) > GAIN_IN_DOUBT * self._given.before(node)
            and not (node.is_save or node.is_update)
        }
        before_right = self._before_right(evidence.nodes, differing) if differing else set()
        harmless: set[Fingerprints] = set()
        near_right = (
            node for node in differing if node in before_right or self._is_inside_right(node) or self._is_right(node)
        )
        for row, node in self._rows(near_right):
            if node.is_module and node in before_right and row.state == "output" and _is_of_other_size(row):
                harmless.add(fingerprints(row))
                self.let_pass(row, node)
                continue
            inside = self._is_inside_right(node)
            if inside or (row.state == "input" and self._is_right(node)):
                if row.state == "input":
                    if is_of_another_form(row):
                        harmless.add(fingerprints(row))
                    if inside:
                        self._let_results_pass(node)
                elif _is_own_doing(node):
                    continue
                self.let_pass(row, node)
            elif node in before_right and (not node.is_module or (node.passes_on and node.ratio_in > 1)):
                if row.state == "input" and is_of_another_form(row):
                    harmless.add(fingerprints(row))
                self.let_pass(row, node)
        for row, node in self._rows(differing if harmless - {(None, None)} else ()):
            both = fingerprints(row)
            if (row.state == "input" or not node.is_module) and None not in both and both in harmless:
                self.let_pass(row, node)

    def _let_results_pass(self, node: Node) -> None:
        """Let pass what a call made of an input that is let pass, which explains it no longer."""
        for row in node.rows(*RESULTS):
            if error_ratio(row) > 1:
                self.let_pass(row, node)

    def _is_right(self, node: Node) -> bool:
        if node not in self._right:
            drift = max(_DRIFT * self._drift, self._drifted(node))
            self._right[node] = node.comes_out_right_but_for(drift) or _is_used_rightly(node)
        return self._right[node]

    def _drifted(self, node: Node) -> float:
        """The deviation that results may have because something before them has drifted beyond its tolerance."""
        if (given := self._given.before(node)) <= 1:
            return 0.0
        return DRIFT * given * max((row.tolerance or 0.0 for row in node.rows(*RESULTS)), default=0.0)

    def _rows(self, nodes: Iterable[Node]) -> Iterator[tuple[Row, Node]]:
        """The rows of these nodes that differ by far more than a drift; there may be a million."""
        return ((row, node) for node in nodes for row in self._differing(node))

    def _differing(self, node: Node) -> Iterator[Row]:
        """The rows that differ by far more than a drift."""
        drift = GAIN_IN_DOUBT * self._given.before(node)
        return (
            row
            for row in node.pair.rows
            if row.state != "parameters"
            and error_ratio(row) > drift
            and ((row.deviation or 0.0) > _FAR_FROM_DRIFT * self._drift or is_of_whole_numbers(row))
        )

    def _is_inside_right(self, node: Node) -> bool:
        around = node.parent
        return around is not None and around.is_backward == node.is_backward and self._is_right(around)

    def _before_right(self, nodes: Sequence[Node], differing: Container[Node]) -> set[Node]:
        """The differing calls after which the next module called in the same place comes out right.

        But those whose results a later call takes in, as different as they are, and does not come out right: the module
        is on another branch.
        """
        following: dict[tuple[bool, Node | None], Node] = {}
        found = set[Node]()
        taken_wrongly = set[Fingerprints]()
        #: Calls whose inputs are not yet among these: where no module comes out right, nobody asks for them.
        others: list[Node] = []
        for node in reversed(nodes):
            place = node.is_backward, node.parent
            after = following.get(place)
            if node.is_module:
                following[place] = node
            if node not in differing:
                continue
            if after is not None and self._is_right(after):
                taken_wrongly.update(self._taken_wrongly(others))
                others.clear()
                results = (fingerprints(row) for row in self._differing(node) if row.state == "output")
                if taken_wrongly.isdisjoint(results):
                    found.add(node)
                    continue
            others.append(node)
        return found

    def _taken_wrongly(self, nodes: Iterable[Node]) -> Iterator[Fingerprints]:
        """The inputs that differ of those of ``nodes`` that do not come out right."""
        for node in nodes:
            if not (self._is_right(node) or self._is_inside_right(node)):
                given = (fingerprints(row) for row in self._differing(node) if row.state == "input")
                yield from (each for each in given if None not in each)


def _is_used_rightly(node: Node) -> bool:
    """Whether results are taken in by others, each time in agreement, or agree of themselves; a module's by and large.

    What a module gives out that is far from its counterpart's is its own doing, however it is used.
    """
    if node.ratio_out > 1:
        return False
    used = [row for row in node.rows("output") if row.explained is not None and row.explained.by == LaterUses.name]
    near = (row.deviation is not None and row.deviation <= DRIFT * (row.held_to or 0.0) for row in used)
    return bool(used) and (not node.is_module or all(near))


def _is_of_other_size(row: Row) -> bool:
    both = row.target, row.golden
    sizes = [element_count(item) for item in both if item is not None and item.kind == "tensor"]
    return len(sizes) == 2 and sizes[0] != sizes[1]


def _is_own_doing(node: Node) -> bool:
    """Whether what differs comes from the node: a module, paired by name and place, whose inputs agree."""
    return node.is_module and node.ratio_in <= 1
