"""A result that differs though what it is computed from agrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.layer_kinds import Kind
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, error_ratio, is_of_all_elements, worst
from msprobe_ms.comparison.origin.protocols import Found
from msprobe_ms.comparison.origin.sentences import describe_caller, describe_difference, origin_at

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.search import Walk

_COLLECTIVE = "what this rank hands in agrees, so another rank's share differs: look there"


class WrongResult:
    """A node that gives out more error than what it takes in explains."""

    def __init__(self, evidence: Evidence) -> None:
        self._unrecorded = evidence.unrecorded

    def find(self, node: Node, unexplained: Sequence[Row], walk: Walk) -> Found | None:
        """The result that differs most; a framework's own part of a layer is told as the layer."""
        if all(row.state in ("input", "parameters") for row in unexplained):
            return None
        if node.is_part:
            return Found(None)
        if not walk.is_untold(node):
            return Found(node)
        walk.hold_to_negligible(node)
        return Found(node, self.origin(node, walk))

    def origin(self, node: Node, walk: Walk) -> Origin:
        """Make the origin that the worst result of ``node`` is."""
        row = worst(node.rows(*RESULTS))
        assert row is not None
        difference = describe_difference(row)
        if node.is_kept:
            return origin_at(row, f"the graph keeps another value, though all its kernels agree: {difference}")
        if node.is_save:
            return origin_at(row, f"the saved value differs: {difference}; {_what_was_saved_before(node)}")
        reason = f"{_what_agrees(node)}, {difference}"
        if (chance := walk.explained_by_chance(row, node)) is not None and chance.up_to:
            return origin_at(row, f"{reason}; {chance.because}", OriginKind.RANDOM)
        if node.kind is Kind.COLLECTIVE:
            return origin_at(row, f"{reason}; {_COLLECTIVE}{describe_caller(node)}", OriginKind.COLLECTIVE)
        reason += f"{_alone(node)}{self._reordered(node)}{self._inside(node)}{describe_caller(node)}"
        return origin_at(row, f"{reason}; {chance.because}" if chance is not None else reason)

    def _reordered(self, node: Node) -> str:
        """That statistics do not show the order of elements, where it decides what comes out."""
        inputs = list(node.rows("input"))
        if node.kind is not Kind.LINEAR or not inputs or is_of_all_elements(inputs[0]):
            return ""
        weight = next(filter(_is_matrix, (*node.rows("parameters"), *inputs[1:])), None)
        places = self._unrecorded.made(node, inputs[0])
        looks = [
            f"at that of {weight.golden.suffix} (transposed, permuted)" if weight and weight.golden else "",
            f"at that of {inputs[0].golden.suffix}, made {places}" if places and inputs[0].golden else "",
        ]
        look = " and ".join(filter(None, looks))
        return f"; statistics do not show the order of elements: look {look} as well" if look else ""

    def _inside(self, node: Node) -> str:
        """What the calls recorded inside an origin say: that all agree, or where the difference enters."""
        for child in node.children:
            row = worst(child.rows("input"))
            if row is not None and error_ratio(row) > 1 and row.target is not None:
                calls = self._unrecorded.calls(child.pair)
                after = f", right after calls without a twin: {calls}" if calls else ""
                places = "" if calls else self._unrecorded.places(child, row)
                return f"; inside it the difference shows first at {row.target.name}{after}{places and f': {places}'}"
        number = len(node.children)
        if number and (calls := self._unrecorded.calls_inside(node.pair)):
            agree = (
                "1 call with a twin inside it agrees" if number == 1 else f"{number} calls with a twin inside it agree"
            )
            return f"; the {agree}; without one stand {calls}: look there first, or map them"
        if number == 1:
            return "; the 1 call recorded inside it agrees: look at the code before and after it"
        if number:
            return f"; the {number} calls recorded inside it agree: look at the code between and after them"
        return ""


def _is_matrix(row: Row) -> bool:
    """Whether both sides hold a matrix, or more, whose statistics agree."""
    shape = row.golden.shape if row.golden is not None else None
    return row.matched and not row.differs and isinstance(shape, tuple) and len(shape) > 1


def _what_agrees(node: Node) -> str:
    if node.is_parameter_gradient:
        return "the layer's inputs and the gradients that reach it agree, its parameter gradient does not"
    margin = "exactly" if node.ratio_in == 0 else f"to {node.ratio_in:.2g} of the tolerance"
    return f"its inputs agree {margin}, its output does not"


def _what_was_saved_before(node: Node) -> str:
    if node.before is None:
        return "nothing was saved before it"
    margin = "exactly" if node.ratio_in == 0 else f"to {node.ratio_in:.2g} of the tolerance"
    return f"what was saved before it agrees {margin}: look at the code after {node.before.name} was saved"


def _alone(node: Node) -> str:
    """Parameters of one side only, which no statistics tell of."""
    for name, rows in (
        ("target", [row.target for row in node.rows("parameters") if row.golden is None]),
        ("golden", [row.golden for row in node.rows("parameters") if row.target is None]),
    ):
        if rows:
            names = ", ".join(item.suffix for item in rows if item is not None)
            return f"; {names} of the {name} stood beside nothing and could not be compared"
    return ""
