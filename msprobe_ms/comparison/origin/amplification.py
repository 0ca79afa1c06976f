"""How far apart a later step may be, by the first: a computation amplifies error in every step alike.

Error goes through a call times its condition, which is that of the code and its settings, hardly of the numbers: what
two frameworks round differently in the first step, and what updates of the parameters set apart later, is multiplied by
the same. So where the deviation of what a call takes in is *k* times that of the first step, so is that of its results,
to within a small factor: below 4 in healthy trainings, from 10 to a million where code or settings changed in between.

What differed in the first step already (a value beside another than its counterpart) tells nothing, nor do values
without sketches, whose distance the four statistics hardly show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.measuring.deviation import is_filled, statistic_deviation
from msprobe_ms.comparison.model import Effect, Row
from msprobe_ms.comparison.origin.conditions import condition_of_shared_error
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.local_bounds import set_apart_at_most
from msprobe_ms.comparison.origin.nodes import is_measured
from msprobe_ms.comparison.origin.propagation import DRIFTED, MARGIN
from msprobe_ms.comparison.statistics import element_count, have_sketches, least_sum_of_squares
from msprobe_ms.comparison.terms import GOLDEN, TARGET

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node

#: Parts of a rounding that may be seen of a whole tensor.
_SEEN = 16.0
#: Times that a value may be further apart than what it is computed from explains. Seen in healthy trainings: 2.3
#: forward, 13 backward, where switches of ReLU and cancelling sums add to it: not to what the loss makes of results.
_MARGIN, _MARGIN_BACKWARD = 8.0, 30.0

#: Elements up to which their deviation may be small by chance, and how seldom that is left to happen.
_FEW, _SELDOM = 8, 0.01


class Amplification:
    """The deviations of a later step beside those of the first."""

    def __init__(self, evidence: Evidence, drift: float) -> None:
        """``drift``: the deviation of parameters that updates explain. The evidence has a first step."""
        assert evidence.first_step is not None
        self._target, self._golden = evidence.first_step
        self._drift, self._unrecorded, self._small = drift, evidence.unrecorded, evidence.small_rows
        self._first: dict[Row, float | None] = {}
        self._inside: dict[Node, float | None] = {}
        self._with_parameters: set[Node] = set()
        #: What was found of the node that is visited, which each of its rows asks for, by whether it is of an input.
        self._taken: dict[tuple[Node, bool], float | None] = {}
        #: Growth of the gradients that have been computed so far.
        self._backward: float | None = None
        self._met_module = False

    def passed(self, node: Node) -> None:
        """Take note that ``node`` has been visited, after what ran inside it."""
        self._taken.clear()
        self._inside[node] = self._inside_of(node)
        if self._shows_parameters(node):
            self._with_parameters.add(node)
        if node.is_backward:
            self._backward = _largest([self._backward, self._given(node)])
            self._met_module |= node.is_module

    @property
    def met_gradients(self) -> bool:
        """Whether a gradient was computed already."""
        return self._backward is not None

    def is_of_loss(self, row: Row, node: Node) -> bool:
        """Whether it is a gradient that arrives at the first module: the loss alone has made it, of results."""
        if not (node.is_backward and row.state == "input") or self._hides_some_behind(node):
            return False
        return (node.is_module and not self._met_module) or not self.met_gradients

    def bound(self, row: Row, node: Node) -> float | None:
        """The deviation that what ``row`` is computed from explains; None where the first step does not tell."""
        if row.state == "parameters" or (row.state == "input" and not node.is_backward):
            return None  # what calls are given is judged as what others gave, or as what the module around gives
        if node.is_backward and not node.is_module and row.state != "input":
            return None  # of terms that cancel in a function's gradient the module around it tells more
        first = self.first(row)
        if first is None or (row.state == "output" and node.takes_in_fills) or _is_of_one_element(row):
            return None
        was_equal = row.state == "input" and not first
        if was_equal and self.met_gradients:
            return None
        growth = self._before(node, of_input=row.state == "input")
        if growth is None or math.isinf(growth):
            return None
        hides_parameters = self._hides_parameters(node) if row.state != "input" else self._hides_some_behind(node)
        if hides_parameters or was_equal:  # the loss may weigh its parts by parameters
            growth = max(growth, self._drift / _rounding(row))
        margin = _MARGIN_BACKWARD if node.is_backward and not self.is_of_loss(row, node) else _MARGIN
        margin = max(margin, _less_by_chance(row))
        own = margin * max(first, _rounding(row))
        grown = max(own * max(1.0, growth), _by_condition(node) if row.state == "output" else 0.0)
        is_known = not hides_parameters and self._stood_beside_counterparts(node)
        at_most = set_apart_at_most(row, node, self._small) if is_known else None
        up_to = (row.held_to or 0.0) + grown
        return up_to if at_most is None else min(up_to, own + at_most)

    def _stood_beside_counterparts(self, node: Node) -> bool:
        """Whether each tensor that a call takes in is equal on both sides, or is known to have agreed at first."""
        taken = [row for row in node.rows("input") if row.is_tensor(TARGET) or row.is_tensor(GOLDEN)]
        return all(row.deviation == 0 or self.first(row) is not None for row in taken)

    def of_updates(self, row: Row) -> float:
        """The deviation that updates explain of a value: the first step's, as many times as they exceed rounding."""
        first = self.first(row)
        return 0.0 if first is None else _MARGIN * max(first, _rounding(row)) * self._drift / _rounding(row)

    def _hides_parameters(self, node: Node) -> bool:
        """Whether parameters that no pair shows may be at work: of calls without a counterpart, or never called."""
        if not node.is_module_call:
            return False
        may_hold_some = bool(node.children) or node.kind is Kind.OTHER
        return (may_hold_some and not self._shows_parameters(node)) or self._unrecorded.runs_inside(node.pair)

    def _hides_some_behind(self, node: Node) -> bool:
        """The same of what the gradient that reaches a module has come through: of calls without a counterpart."""
        return node.is_module and self._unrecorded.stands_before(node.pair)

    def first(self, row: Row) -> float | None:
        """The deviation of the same value in the first step; None where that was more than drift or is not known."""
        if row not in self._first:
            self._first[row] = self._find_first(row)
        return self._first[row]

    def _find_first(self, row: Row) -> float | None:
        if row.target is None or row.golden is None or row.tolerance is None or not _rounding(row):
            return None
        target, golden = same_item(self._target, row.target), same_item(self._golden, row.golden)
        if target is None or golden is None or not have_sketches(target, golden):
            return None
        deviation = statistic_deviation(target, golden)
        # Beyond its tolerance it may have drifted, as in a deep network.
        return deviation if deviation is not None and deviation <= DRIFTED * row.tolerance else None

    def _before(self, node: Node, *, of_input: bool) -> float | None:
        """How many times further apart than in the first step is what values are computed from; None: nothing tells."""
        key = node, of_input
        if key not in self._taken:
            self._taken[key] = self._find_before(node, of_input=of_input)
        return self._taken[key]

    def _find_before(self, node: Node, *, of_input: bool) -> float | None:
        if of_input:
            results = _largest(self._growth([*each.rows("output")]) for each in node.context)
            alone = results is not None and node.is_module and not self._met_module
            return results if alone else _largest([results, self._backward])
        taken = [self._growth([*node.rows("input", "parameters")]), self._inside_of(node)]
        for each in node.context:
            taken += [self._growth(each.pair.rows), self._inside.get(each)]
        return _largest(taken)

    def _inside_of(self, node: Node) -> float | None:
        return _largest(map(self._passed_on, node.children))

    def _passed_on(self, inner: Node) -> float | None:
        """The same of a call inside: its results show what its parameters, and calls inside it, did to them."""
        results = [*inner.rows("output")]
        if results and all(self.first(row) is not None for row in results if row.is_tensor(GOLDEN)):
            return self._growth(results)
        return _largest([self._growth([*inner.rows("output", "parameters")]), self._inside.get(inner)])

    def _shows_parameters(self, node: Node) -> bool:
        return any(node.rows("parameters")) or not self._with_parameters.isdisjoint(node.children)

    def _given(self, node: Node) -> float | None:
        """The same of what a call gave out, but for what is known to have no effect on what comes later."""
        rows = [row for row in node.rows("output") if not _is_without_effect(row)]
        return math.inf if any(map(self._may_lead_to_anything, rows)) else self._growth(rows)

    def _growth(self, rows: Sequence[Row]) -> float | None:
        """How many times further apart than in the first step one of these values is; None where none tells.

        What was equal then, as parameters are, adds to the error of what it is computed with.
        """
        known = [(row, self.first(row)) for row in rows if row.deviation is not None]
        beside = max((first for _, first in known if first is not None), default=0.0)
        found = []
        for row, first in known:
            deviation = row.deviation or 0.0
            if first is not None:
                # Where most elements are equal, or far larger than those that tell, less than a rounding is seen.
                least = max(first, beside) if row.state == "parameters" else first or beside
                found.append(deviation / max(least, _rounding(row) / _SEEN))
            elif row.state == "input" and self._may_lead_to_anything(row):
                found.append(math.inf)
        return max(found, default=None)

    def _may_lead_to_anything(self, row: Row) -> bool:
        """Whether it differs and the first step does not tell of it, as of an index."""
        return (row.deviation or 0.0) > (row.tolerance or 0.0) and self.first(row) is None


def _by_condition(node: Node) -> float:
    """The deviation that a call of known condition makes of its inputs.

    Terms that cancel may cancel more now; and error that they share cancels less than the rounding of the first step.
    """
    known = None if node.is_backward else condition_of_shared_error(node)
    taken = [row.deviation for row in node.rows("input") if row.deviation is not None and math.isfinite(row.deviation)]
    return MARGIN * known * max(taken, default=0.0) if known is not None else 0.0


def _is_without_effect(row: Row) -> bool:
    return row.explained is not None and row.explained.effect in (Effect.NO_ERROR, Effect.NO_EFFECT)


def _is_of_one_element(row: Row) -> bool:
    """Whether a mask has filled it, so that Max alone tells: one element may have been equal by chance at first."""
    ends = None if is_measured(row) else row.extremes(GOLDEN)
    return ends is not None and is_filled(*ends)


def _less_by_chance(row: Row) -> float:
    """How many times less apart than is usual a few elements were at first, but in one of a hundred cases.

    80 times for a single number, as a loss is, 10 for two.
    """
    count = element_count(row.golden) if row.golden is not None else 0
    return math.sqrt(count / least_sum_of_squares(count, _SELDOM)) if 1 <= count <= _FEW else 1.0


def _rounding(row: Row) -> float:
    """The relative rounding of a tensor of floats; 0 of anything else."""
    golden = row.golden
    return parse_dtype(golden.dtype).epsilon / 2 if golden is not None and golden.kind == "tensor" else 0.0


def _largest(found: Iterable[float | None]) -> float | None:
    return max((each for each in found if each is not None), default=None)
