"""An input that differs though nothing computed before it does: data, a weight, code that was not recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.fingerprints import fingerprint_of
from msprobe_ms.comparison.layer_kinds import Kind, kind_of
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.nodes import Node, error_ratio, is_of_all_elements, is_of_another_form, worst
from msprobe_ms.comparison.origin.protocols import Found
from msprobe_ms.comparison.origin.sentences import (
    describe_briefly,
    describe_caller,
    describe_difference,
    describe_order,
    fitting,
    origin_at,
)
from msprobe_ms.comparison.origin.stages import stage_of
from msprobe_ms.comparison.terms import Stage
from msprobe_ms.dump.model import Entry
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk


_SWITCH = tr("switch it off, or call seed_all with rm_dropout=True on both sides")
_EXTRA = tr("it draws random numbers and has no counterpart: {do}", do=_SWITCH)


class WrongInput:
    """A node that takes in more error than anything before it explains."""

    def __init__(self, evidence: Evidence) -> None:
        self._unrecorded = evidence.unrecorded

    def find(self, node: Node, unexplained: Sequence[Row], walk: Walk) -> Found | None:
        """The input of the outermost call that took it in; or, if that lies in one with an error of its own, that."""
        inputs = [row for row in unexplained if row.state == "input"]
        if not inputs:
            return None
        if all(map(is_of_another_form, inputs)):
            # A mask may well be made in two ways: it is told only where nothing else is.
            walk.doubt(node, self._origin(node, walk))
            return Found(None)
        if (random := self._after_random_call(node, worst(inputs))) is not None:
            walk.hold_to_negligible(node)
            return Found(node, random)
        # What encloses it took the difference in earlier, though its entry stands later; not by a mask in another form.
        outer = next((up for up in reversed([*node.ancestors()]) if _takes_in_more(up, walk)), node)
        around = outer.parent
        if around and (around.ratio_parameters > 1 or (_takes_in_tensors(around) and _gives_too_much(around, walk))):
            return walk.judge(around)  # now, as what differs inside of it will hide it
        walk.hold_to_negligible(outer)
        return Found(outer, self._origin(outer, walk))

    def _origin(self, node: Node, walk: Walk) -> Origin:
        differing = [row for row in node.rows("input") if error_ratio(row) > 1]
        row = next((row for row in differing if not is_of_another_form(row)), next(iter(differing), None))
        row = row or worst(node.rows("input"))
        assert row is not None
        difference, order = describe_difference(row), describe_order(row)
        chance = walk.explained_by_chance(row, node)
        if chance is not None and chance.up_to:
            reason, *details = chance.because
            nothing = tr("nothing before it that was compared differs")
            return origin_at(row, reason, [difference, nothing, *details], OriginKind.RANDOM)
        doubts = chance.because if chance is not None else ()
        if calls := self._unrecorded.calls(node.pair):
            before = tr("although no compared value before it deviates")
            look = tr("look at the calls without a counterpart right before it, or map them")
            places = tr("calls without a counterpart come right before it: {calls}", calls=calls)
        else:
            before, places = tr("although no recorded value before it deviates"), self._unrecorded.places(node, row)
            if node.is_backward:
                look = tr("the gradient that reaches this call differs, look at the loss and the later calls")
            elif places:
                look = tr("it comes from outside, look at the code that makes it")
            else:
                look = tr("it comes from outside, look at input data, arguments and unrecorded code")
            if not is_of_all_elements(row) and not node.is_backward and self._unrecorded.made(node, row):
                order = tr("statistics do not show the order of elements: earlier values may differ in order only")
        if walk.reached.before(node) > 1:
            before = tr("though values before it deviate far less")
        reason = fitting(
            tr("{difference}, {before}: {look}", difference=difference, before=before, look=look),
            tr("{difference}: {look}", difference=difference, look=look),
            tr("{briefly}: {look}", briefly=describe_briefly(row), look=look),
        )
        stage = stage_of(node.name, OriginKind.OUTSIDE)
        if stage is Stage.FORWARD and not places and row.target is not None and row.target.kind == "tensor":
            stage = Stage.DATA
        return origin_at(row, reason, [describe_caller(node), places, order, *doubts], OriginKind.OUTSIDE, stage)

    def _after_random_call(self, node: Node, row: Row | None) -> Origin | None:
        """The origin that a call is which draws random numbers on one side alone, right before what differs."""
        if node.is_backward or row is None:
            return None
        details = [describe_difference(row), describe_caller(node)]
        extra = next(filter(_draws, self._unrecorded.alone_before(node.pair)), None)
        if extra is not None:
            given = next(item for item in extra.in_state("output") if item.kind == "tensor")
            stage = stage_of(extra.name, OriginKind.NOT_COMPARED)
            taken = tr("{name}, which comes after it: {difference}", name=node.name, difference=details[0])
            return Origin(
                given.name,
                "",
                "output",
                _EXTRA,
                {},
                OriginKind.NOT_COMPARED,
                details=[taken, *details[1:]],
                stage=stage,
            )
        lacked = next(filter(_draws, self._unrecorded.alone_before_golden(node.pair)), None)
        if lacked is None:
            return None
        reason = tr("{name} before it draws random numbers in the golden alone: {do}", name=lacked.name, do=_SWITCH)
        return origin_at(row, reason, details, OriginKind.OUTSIDE, stage_of(node.name, OriginKind.OUTSIDE))


def _draws(entry: Entry) -> bool:
    """Whether a call draws random numbers, and so gives out something else than it took in."""
    if kind_of(entry.parsed) is not Kind.RANDOM:
        return False
    taken, given = (
        next((item for item in entry.in_state(state) if item.kind == "tensor"), None) for state in ("input", "output")
    )
    return given is not None and (taken is None or fingerprint_of(taken) != fingerprint_of(given))


def _takes_in_more(node: Node, walk: Walk) -> bool:
    """Whether an input differs that can be compared with its counterpart, by more than anything before it explains."""
    if not node.ratio_in_of_one_form > walk.reached.negligible(node):
        return False
    return any(row.state == "input" and not is_of_another_form(row) for row in walk.explain(node))


def _takes_in_tensors(node: Node) -> bool:
    """Whether inputs were compared; if not, nothing tells that what is inside did not come from there."""
    return any(row.golden is not None and row.golden.kind == "tensor" for row in node.rows("input") if row.matched)


def _gives_too_much(node: Node, walk: Walk) -> bool:
    return any(row.state not in ("input", "parameters") for row in walk.explain(node))
