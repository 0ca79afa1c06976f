"""A result that differs though what it is computed from agrees."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.arrays.dtypes import EPSILON, same_dtype
from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.measuring.deviation import rounded_side
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, error_ratio, is_of_all_elements, is_of_another_form, worst
from msprobe_ms.comparison.origin.protocols import Found
from msprobe_ms.comparison.origin.sentences import (
    describe_briefly,
    describe_caller,
    describe_difference,
    describe_factor,
    describe_order,
    describe_setting,
    describe_values,
    fitting,
    origin_at,
)
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_count, tr_join

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk


#: The deviation up to which a cast explains a difference: four roundings of bfloat16, as its tolerance.
_ROUNDING = 4 * EPSILON["bfloat16"]


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
            kept = tr("the graph keeps another value, though all its kernels agree")
            return origin_at(
                row,
                fitting(
                    tr("{kept}: {difference}", kept=kept, difference=difference),
                    tr("{kept}: {briefly}", kept=kept, briefly=describe_briefly(row)),
                ),
            )
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
            agrees = tr("though the input of this rank agrees: the input of another rank differs, look there")
            reason = fitting(
                tr("{difference}, {agrees}", difference=difference, agrees=agrees),
                tr("{briefly}, {agrees}", briefly=describe_briefly(row), agrees=agrees),
            )
            return origin_at(row, reason, [describe_caller(node), *doubts], OriginKind.COLLECTIVE)
        look, inside = self._inside(node)
        order, rounded = describe_order(row), _rounded_by(row)
        settings = list(map(describe_setting, walk.settings.of(node)))
        if settings and not inside:
            look = tr("its argument {setting}", setting=settings[0])
        elif order and not inside:
            look, order = tr("look at the order of its elements"), tr("its Max, Min, Mean and Norm agree")
        elif rounded and not inside:
            look = rounded
        brief = describe_briefly(row)
        roughly = tr("its inputs agree") if node.ratio_in_of_one_form <= 1 else tr("its inputs differ less")
        reason = fitting(
            tr("{difference}, though {agree}: {look}", difference=difference, agree=agree, look=look),
            tr("{difference}, though {roughly}: {look}", difference=difference, roughly=roughly, look=look),
            tr("{brief}, though {roughly}: {look}", brief=brief, roughly=roughly, look=look),
        )
        return origin_at(
            row,
            reason,
            [
                *map(describe_difference, _of_another_form(node)), describe_caller(node), inside, order, *doubts,
                *self._reordered(node), _alone(node),
                *(tr("another setting differs: {setting}", setting=each) for each in settings[1:]),
            ],
            OriginKind.PRECISION if look == rounded else OriginKind.COMPUTATION,
        )  # fmt: skip

    def _of_loss(self, node: Node, row: Row) -> Origin:
        """The origin that a loss is."""
        differs, look = tr("the loss differs, {values}", values=describe_values(row)), tr("compare the loss functions")
        agree = tr("though the model's outputs agree: {look}", look=look)
        before = tr("what was recorded before it agrees")
        if calls := self._unrecorded.calls(node.pair):
            look = tr("look at the calls without a counterpart right before it, and compare the loss functions")
            agree = tr("though what was compared before it agrees: {look}", look=look)
        return origin_at(
            row,
            fitting(
                tr("{differs}, {agree}", differs=differs, agree=agree), tr("the loss differs {agree}", agree=agree)
            ),
            [
                before,
                calls and tr("calls without a counterpart run right before it: {calls}", calls=calls),
                describe_factor(row),
            ],
        )

    def _reordered(self, node: Node) -> Iterator[str]:
        """That statistics do not show the order of elements, where it decides what comes out."""
        inputs = list(node.rows("input"))
        if node.kind is not Kind.LINEAR or not inputs or is_of_all_elements(inputs[0]):
            return
        weight = next(filter(_is_matrix, (*node.rows("parameters"), *inputs[1:])), None)
        places = self._unrecorded.made(node, inputs[0])
        hidden = tr("statistics do not show the order of elements: look")
        if weight is not None and weight.target is not None:
            yield tr(
                "{hidden} at that of {suffix} (transposed, permuted) as well",
                hidden=hidden,
                suffix=weight.target.name_in(node.name),
            )
        if places and inputs[0].golden is not None:
            yield tr(
                "{hidden} at that of {suffix} as well, made {places}",
                hidden=hidden,
                suffix=inputs[0].golden.suffix,
                places=places,
            )

    def _inside(self, node: Node) -> tuple[str, str]:
        """Where to look, and what the calls recorded inside an origin say: that all agree, or where it enters."""
        for child in node.children:
            row = worst(child.rows("input"))
            if row is not None and error_ratio(row) > 1 and row.target is not None:
                shows = tr("inside it the difference shows first at {name}", name=row.target.name)
                if calls := self._unrecorded.calls(child.pair):
                    look = tr("look at the calls without a counterpart before {module}", module=child.module)
                    return look, tr(
                        "{shows}, right after calls without a counterpart: {calls}", shows=shows, calls=calls
                    )
                places = self._unrecorded.places(child, row)
                return tr("look at its code before {module}", module=child.module), tr_join(
                    ": ", filter(None, (shows, places))
                )
        number = len(node.children)
        if number and (calls := self._unrecorded.calls_inside(node.pair)):
            agree = tr_count(
                "the 1 call with a counterpart agrees", "{count} calls with a counterpart agree", count=number
            )
            look = tr("look at the calls inside it without a counterpart, or map them")
            return look, tr("inside it {agree}; calls without a counterpart: {calls}", agree=agree, calls=calls)
        if number == 1:
            return tr("look at its code before and after the call inside it"), tr(
                "the 1 call recorded inside it agrees"
            )
        if number:
            told = tr("the {number} calls recorded inside it agree", number=number)
            return tr("look at its code between and after the calls inside it"), told
        return tr("look at its backward") if node.is_backward else tr("look at its settings and its code"), ""


def _rounded_by(row: Row) -> str:
    """Say that one side alone computed a float32 result in a narrower float, where its numbers show it; "" else."""
    if row.target is None or row.golden is None or not same_dtype(row.target.dtype, row.golden.dtype):
        return ""
    side = rounded_side(row.target, row.golden) if (row.deviation or 0.0) <= _ROUNDING else None
    return "" if side is None else tr("the {side} rounded it to a narrower float, look for a cast", side=tr(str(side)))


def _is_matrix(row: Row) -> bool:
    """Whether both sides hold a matrix, or more, whose statistics agree."""
    shape = row.golden.shape if row.golden is not None else None
    return row.matched and not row.differs and isinstance(shape, tuple) and len(shape) > 1


def _what_agrees(node: Node) -> str:
    if node.is_parameter_gradient:
        return tr("the layer's inputs and the gradients that reach it agree")
    but = (
        tr(" but {names}", names=listed(names, 1))
        if (names := [_suffix(row) for row in _of_another_form(node)])
        else ""
    )
    ratio = node.ratio_in_of_one_form
    if ratio > 1:
        furthest = worst(row for row in node.rows("input") if not is_of_another_form(row))
        by = furthest.deviation if furthest is not None else None
        return tr("its inputs{but} deviate by only {by:.2g} times their size", but=but, by=by or 0.0)
    if ratio == 0 and any(row.misrecorded and row.deviation for row in node.rows("input")):
        return tr("its inputs agree as far as they were compared")
    return tr("its inputs{but} agree exactly", but=but) if ratio == 0 else tr("its inputs{but} agree", but=but)


def _of_another_form(node: Node) -> list[Row]:
    return [row for row in node.rows("input") if row.deviation == math.inf and is_of_another_form(row)]


def _suffix(row: Row) -> str:
    return row.target.suffix if row.target is not None else ""


def _of_save(node: Node, row: Row) -> Origin:
    """The origin that a saved value is."""
    reason = tr("the saved value differs: {difference}", difference=describe_difference(row))
    if node.before is None:
        return origin_at(row, reason, [tr("nothing was saved before it"), describe_order(row)])
    before = tr("what was saved before it agrees")
    look = tr("look at the code after {name} was saved", name=node.before.name)
    reason = fitting(
        tr("{reason}; {look}", reason=reason, look=look),
        tr("the saved value differs, {briefly}; {look}", briefly=describe_briefly(row), look=look),
    )
    return origin_at(row, reason, [before, describe_order(row)])


def _alone(node: Node) -> str:
    """Parameters of one side only, which no statistics tell of."""
    for name, rows in (
        (tr("target"), [row.target for row in node.rows("parameters") if row.golden is None]),
        (tr("golden"), [row.golden for row in node.rows("parameters") if row.target is None]),
    ):
        if rows:
            names = listed(item.suffix for item in rows if item is not None)
            return tr("{names} of the {name} had no counterpart and could not be compared", names=names, name=name)
    return ""
