"""A result that differs though what it is computed from agrees."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.layer_kinds import Kind
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, error_ratio, is_of_all_elements, is_of_another_form, worst
from msprobe_ms.comparison.origin.protocols import Found
from msprobe_ms.comparison.origin.sentences import (
    describe_briefly,
    describe_caller,
    describe_difference,
    describe_factor,
    describe_order,
    describe_values,
    fitting,
    origin_at,
)
from msprobe_ms.support.text import listed

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.search import Walk


class WrongResult:
    """A node that gives out more error than what it takes in explains."""

    def __init__(self, evidence: Evidence) -> None:
        self._unrecorded = evidence.unrecorded

    def find(self, node: Node, unexplained: Sequence[Row], walk: Walk) -> Found | None:
        """The result that differs most; a framework's own part of a layer is told as the layer."""
        results = [row for row in unexplained if row.state not in ("input", "parameters")]
        if not results:
            return None
        if node.is_part:
            return Found(None)
        if not node.is_backward and all(row.deviation == math.inf and is_of_another_form(row) for row in results):
            # It may well be cut, or cut out, before it is used: it is told only where nothing else stands on its own.
            walk.doubt(node, self.origin(node, walk))
            return Found(None)
        if not walk.is_untold(node):
            return Found(node)
        walk.hold_to_negligible(node)
        return Found(node, self.origin(node, walk))

    def origin(self, node: Node, walk: Walk) -> Origin:
        """Make the origin that the worst result of ``node`` is."""
        row = worst(node.rows(*RESULTS))
        assert row is not None
        difference, agree = describe_difference(row), _what_agrees(node)
        if node.is_kept:
            kept = "the graph keeps another value, though all its kernels agree"
            return origin_at(row, fitting(f"{kept}: {difference}", f"{kept}: {describe_briefly(row)}"))
        if node.is_loss:
            return self._of_loss(node, row)
        if node.is_save:
            return _of_save(node, row)
        chance = walk.explained_by_chance(row, node)
        if chance is not None and chance.up_to:
            reason, *details = chance.because
            return origin_at(row, reason, [difference, agree, *details], OriginKind.RANDOM)
        doubts = chance.because if chance is not None else ()
        if node.kind is Kind.COLLECTIVE:
            agrees = "though what this rank hands in agrees: another rank's share differs, look there"
            reason = fitting(f"{difference}, {agrees}", f"{describe_briefly(row)}, {agrees}")
            return origin_at(row, reason, [describe_caller(node), *doubts], OriginKind.COLLECTIVE)
        look, inside = self._inside(node)
        order = describe_order(row)
        if order and not inside:
            look, order = "look at the order of its elements", "its Max, Min, Mean and Norm agree"
        brief = describe_briefly(row)
        roughly = "its inputs agree" if node.ratio_in_of_one_form <= 1 else "its inputs differ less"
        reason = fitting(
            f"{difference}, though {agree}: {look}",
            f"{difference}, though {roughly}: {look}",
            f"{brief}, though {roughly}: {look}",
        )
        return origin_at(
            row,
            reason,
            [
                *map(describe_difference, _of_another_form(node)), describe_caller(node), inside, order, *doubts,
                *self._reordered(node), _alone(node),
            ],
        )  # fmt: skip

    def _of_loss(self, node: Node, row: Row) -> Origin:
        """The origin that a loss is."""
        differs, look = f"the loss differs, {describe_values(row)}", "compare the loss functions"
        agree = f"though the model's outputs agree: {look}"
        before = f"what was recorded before it agrees {_margin(node)}"
        calls = self._unrecorded.calls(node.pair)
        return origin_at(
            row,
            fitting(f"{differs}, {agree}", f"the loss differs {agree}"),
            [before, calls and f"right before it stand calls without a counterpart: {calls}", describe_factor(row)],
        )

    def _reordered(self, node: Node) -> Iterator[str]:
        """That statistics do not show the order of elements, where it decides what comes out."""
        inputs = list(node.rows("input"))
        if node.kind is not Kind.LINEAR or not inputs or is_of_all_elements(inputs[0]):
            return
        weight = next(filter(_is_matrix, (*node.rows("parameters"), *inputs[1:])), None)
        places = self._unrecorded.made(node, inputs[0])
        hidden = "statistics do not show the order of elements: look"
        if weight is not None and weight.golden is not None:
            yield f"{hidden} at that of {weight.golden.suffix} (transposed, permuted) as well"
        if places and inputs[0].golden is not None:
            yield f"{hidden} at that of {inputs[0].golden.suffix} as well, made {places}"

    def _inside(self, node: Node) -> tuple[str, str]:
        """Where to look, and what the calls recorded inside an origin say: that all agree, or where it enters."""
        for child in node.children:
            row = worst(child.rows("input"))
            if row is not None and error_ratio(row) > 1 and row.target is not None:
                shows = f"inside it the difference shows first at {row.target.name}"
                if calls := self._unrecorded.calls(child.pair):
                    look = f"look at the calls without a counterpart before {child.module}"
                    return look, f"{shows}, right after calls without a counterpart: {calls}"
                places = self._unrecorded.places(child, row)
                return f"look at its code before {child.module}", f"{shows}{places and f': {places}'}"
        number = len(node.children)
        if number and (calls := self._unrecorded.calls_inside(node.pair)):
            agree = (
                "the 1 call with a counterpart agrees" if number == 1 else f"{number} calls with a counterpart agree"
            )
            look = "look at the calls inside it without a counterpart, or map them"
            return look, f"inside it {agree}, without one stand {calls}"
        if number == 1:
            return "look at its code before and after the call inside it", "the 1 call recorded inside it agrees"
        if number:
            told = f"the {number} calls recorded inside it agree"
            return "look at its code between and after the calls inside it", told
        return "look at its backward" if node.is_backward else "look at its settings and its code", ""


def _is_matrix(row: Row) -> bool:
    """Whether both sides hold a matrix, or more, whose statistics agree."""
    shape = row.golden.shape if row.golden is not None else None
    return row.matched and not row.differs and isinstance(shape, tuple) and len(shape) > 1


def _what_agrees(node: Node) -> str:
    if node.is_parameter_gradient:
        return "the layer's inputs and the gradients that reach it agree"
    but = f" but {listed(names, 1)}" if (names := [_suffix(row) for row in _of_another_form(node)]) else ""
    ratio = node.ratio_in_of_one_form
    if ratio > 1:
        return f"its inputs{but} are only {float(f'{ratio:.2g}'):g} tolerances apart"
    if ratio == 0 and any(row.misrecorded and row.deviation for row in node.rows("input")):
        return "its inputs agree as far as they were compared"
    return f"its inputs{but} agree {_margin(node)}"


def _margin(node: Node) -> str:
    ratio = node.ratio_in_of_one_form
    return "exactly" if ratio == 0 else f"within {ratio:.2g} of the tolerance"


def _of_another_form(node: Node) -> list[Row]:
    return [row for row in node.rows("input") if row.deviation == math.inf and is_of_another_form(row)]


def _suffix(row: Row) -> str:
    return row.target.suffix if row.target is not None else ""


def _of_save(node: Node, row: Row) -> Origin:
    """The origin that a saved value is."""
    reason = f"the saved value differs: {describe_difference(row)}"
    if node.before is None:
        return origin_at(row, reason, ["nothing was saved before it", describe_order(row)])
    before = f"what was saved before it agrees {_margin(node)}"
    look = f"look at the code after {node.before.name} was saved"
    reason = fitting(f"{reason}; {look}", f"the saved value differs, {describe_briefly(row)}; {look}")
    return origin_at(row, reason, [before, describe_order(row)])


def _alone(node: Node) -> str:
    """Parameters of one side only, which no statistics tell of."""
    for name, rows in (
        ("target", [row.target for row in node.rows("parameters") if row.golden is None]),
        ("golden", [row.golden for row in node.rows("parameters") if row.target is None]),
    ):
        if rows:
            names = listed(item.suffix for item in rows if item is not None)
            return f"{names} of the {name} had no counterpart and could not be compared"
    return ""
