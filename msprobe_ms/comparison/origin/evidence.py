"""What the search for origins knows before it begins: the measured pairs as nodes, and the dumps around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.fingerprints import Fingerprints, fingerprints
from msprobe_ms.comparison.measuring.updated import were_updated
from msprobe_ms.comparison.model import Allowance, Pair, Row
from msprobe_ms.comparison.origin.connected_nodes import nodes_of
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.local_bounds import SmallRows, small_rows
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.parts_left_alone import PartLeftAlone, parts_left_alone
from msprobe_ms.comparison.origin.rows_of_nodes import RowsOfNodes
from msprobe_ms.comparison.origin.same_optimizer import apart_by_updates
from msprobe_ms.comparison.origin.unrecorded_code import UnrecordedCode
from msprobe_ms.comparison.origin.updates import Place, Update, apart_at_most, place_of, updates_since
from msprobe_ms.comparison.row_items import RowItems
from msprobe_ms.dump.model import Dump, Entry

#: Times that a deviation may be larger than the one that sketches of updates estimate: 2.3 was seen, of some hundred
#: parameters of a network.
_ESTIMATE = 3.0

#: The tensors of a row on both sides; None where there are none, or they cannot be read.
Load = Callable[[Row], "tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]] | None"]


class Evidence:
    """The measured pairs of a comparison as nodes.

    ``pairs``    in the order of execution; what an earlier search said of their rows is forgotten
    ``nodes``    those with both sides
    ``golden``   all entries of the golden dump in the order of execution
    ``load``     loads the tensors of a row; None where elements were not recorded
    ``damaged``  whether one of the dumps is not whole
    ``earlier``  the dumps of the steps before; None where it is not known where they are
    ``dumps``    target and golden, which know what joined tensors were joined of; None where nothing is joined
    ``sides``    the items of all rows, where they were put side by side
    ``frameworks``  those of target and golden, which say what functions take in which order; "" where not known
    ``asked``    filled by the search: what each explanation that was asked of a row allowed, of the first rows in
                 execution order that are beyond their tolerance
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        golden: Sequence[Entry] = (),
        load: Load | None = None,
        *,
        damaged: bool = False,
        earlier: EarlierSteps | None = None,
        dumps: tuple[Dump, Dump] | None = None,
        frameworks: tuple[str, str] = ("", ""),
        sides: tuple[RowItems, RowItems] | None = None,
    ) -> None:
        self.pairs, self.golden, self.load, self.damaged, self.earlier = pairs, golden, load, damaged, earlier
        self.frameworks, self.dumps, self._sides = frameworks, dumps, sides
        for pair in pairs:
            for row in pair.rows:
                row.explained = None
        self.nodes: list[Node] = nodes_of(pairs)
        self.asked: dict[Row, list[tuple[str, Allowance | None]]] = {}

    @property
    def same_framework(self) -> bool:
        """Whether one framework computed both sides, as far as is known."""
        return self.frameworks[0] == self.frameworks[1]

    def release(self) -> None:
        """Part the nodes, which know each other, so that they are freed without a search for cycles."""
        for node in self.nodes:
            node.parent, node.children, node.context, node.gradients, node.before = None, (), (), None, None

    def let_pass(self, found: Mapping[Row, tuple[Node, Allowance]]) -> None:
        """Fill ``Row.explained`` of the rows of these nodes that nothing explained so far."""
        changed: dict[Node, None] = {}
        for row, (node, allowance) in found.items():
            if row.explained is None:
                row.explained = allowance
                changed[node] = None
        for node in changed:
            node.measure()

    @cached_property
    def updated(self) -> bool:
        """Whether the parameters have been through updates: most that are trained are not exactly equal, yet near."""
        return were_updated(self.pairs)

    @cached_property
    def updates(self) -> list[Update]:
        """The updates since the step before, where parameters differ now; [] where nothing is known of them."""
        return [] if self._step_before is None else list(updates_since(self.nodes, *self._step_before))

    @cached_property
    def parts_left_alone(self) -> list[PartLeftAlone]:
        """Parts of joined parameters that one side did not update in the step before."""
        if self._step_before is None or self.dumps is None:
            return []
        return list(parts_left_alone(self.nodes, self.dumps, self._step_before))

    @cached_property
    def _step_before(self) -> tuple[Dump, Dump] | None:
        """The dumps of the step before, read only where parameters differ now."""
        if self.earlier is None or all(node.ratio_parameters <= 1 for node in self.nodes):
            return None
        return self.earlier.before

    @property
    def is_later(self) -> bool:
        """Whether there were updates, and steps before them were recorded."""
        return self.earlier is not None and self.earlier.were_recorded and self.updated

    @property
    def first_step(self) -> tuple[Dump, Dump] | None:
        """The dumps of the first step that both sides recorded, where it is another one and there were updates."""
        return self.earlier.first if self.earlier is not None and self.updated else None

    @cached_property
    def _since_first(self) -> list[Update]:
        """The updates since the first step; [] where nothing is known of them."""
        if self._step_before is None or self.earlier is None or (first := self.earlier.first) is None:
            return []
        return self.updates if first is self._step_before else list(updates_since(self.nodes, *first))

    @cached_property
    def apart_by_updates(self) -> Mapping[Place, float]:
        """By how much of each parameter its updates differ since the first step, where optimizers do the same."""
        if self._step_before is None or self.earlier is None or (first := self.earlier.first) is None:
            return {}
        apart = apart_by_updates(self._since_first)
        return {**apart_at_most(self.nodes, *first), **apart} if apart else {}

    def set_apart_by_updates(self, row: Row) -> float | None:
        """How far apart its updates may have set a parameter, also one that is an input; None where they do not tell.

        Functions take a parameter in before its module's entry tells whose it is: it is known by the recorded tensors.
        """
        if row.state == "parameters":
            return self._set_apart(row)
        return self._tensors_set_apart.get(fingerprints(row)) if self._tensors_set_apart else None

    def _set_apart(self, row: Row) -> float | None:
        apart = self.apart_by_updates.get(place_of(row)) if row.held_to is not None else None
        return (row.held_to or 0.0) + _ESTIMATE * apart if apart is not None else None

    @cached_property
    def _tensors_set_apart(self) -> Mapping[Fingerprints, float]:
        parameters = (row for node in (self.nodes if self.apart_by_updates else ()) for row in node.rows("parameters"))
        known = ((fingerprints(row), self._set_apart(row)) for row in parameters)
        return {both: up_to for both, up_to in known if up_to is not None and None not in both}

    @cached_property
    def drift(self) -> float:
        """The largest deviation of a parameter that updates of gradients that agree explain; 0 without any.

        One whose gradient is rounding may be further apart without any effect.
        """
        steady = {place_of(each.row) for each in self._since_first if each.is_steady}
        return max((apart for place, apart in self.apart_by_updates.items() if place in steady), default=0.0)

    @cached_property
    def small_rows(self) -> SmallRows:
        """How much more than the whole rows of a shape multiply errors in normalisations."""
        return small_rows(self.nodes)

    @cached_property
    def rows(self) -> RowsOfNodes:
        """The rows of the nodes."""
        if self._sides is None or len(self.nodes) == len(self.pairs):
            return RowsOfNodes(self.nodes, self._sides)
        paired = np.flatnonzero(
            np.repeat([pair.matched for pair in self.pairs], [len(pair.rows) for pair in self.pairs])
        )
        return RowsOfNodes(self.nodes, (self._sides[0].of(paired), self._sides[1].of(paired)))

    @cached_property
    def unrecorded(self) -> UnrecordedCode:
        """The calls and the code between recorded calls."""
        return UnrecordedCode(self.rows, self.pairs, self.golden)
