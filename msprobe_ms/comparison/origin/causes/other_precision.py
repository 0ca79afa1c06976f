"""Single calls that compute in another width of float than their counterpart: rounding explains it, nobody meant it.

In mixed precision many calls narrow what they take in, and all is as it should be. Where few do, each is told, but
for those that lose nothing by it: a mask of zeros and ones is the same in any width. It needs no measuring, so that no
drift hides it. A layer that holds its parameters in another width computes in it, though it may cast what it gives out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.measuring.tolerances import EXCEPTION, of_several_widths
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.protocols import Found
from msprobe_ms.comparison.origin.sentences import describe_caller, describe_difference, origin_at
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk

#: The same among calls of one kind: mixed precision narrows by kind (all matrix products, no normalisation).
_FEW_OF_A_KIND = 0.5


class OtherPrecision:
    """A call that gives out floats of another width than its counterpart, where hardly any other does."""

    def __init__(self, evidence: Evidence) -> None:
        self._names = exceptional_widths(evidence.nodes)
        self._first_step = evidence.first_step if self._names else None

    def find(self, node: Node, unexplained: Sequence[Row], walk: Walk) -> Found | None:
        """Its first output, or parameter, of another width."""
        if node.name not in self._names or not walk.may_begin_at(node):
            return None
        held = (*node.rows("output"), *node.rows("parameters"))
        row = next((row for row in held if row.deviation != 0 and is_of_two_widths(row)), None)
        if row is None or (self._first_step is not None and were_of_one_width(row, *self._first_step)):
            return None  # what changed since the first step is told as that
        return Found(node, _origin(row, node))


def _origin(row: Row, node: Node) -> Origin:
    assert row.target is not None and row.golden is not None
    item, taken = row.target, tr("its inputs have the same dtype on both sides")
    if any(map(is_of_two_widths, node.rows("input"))):
        taken = tr("the inputs of the enclosing call have the same dtype on both sides")
    reason = tr(
        "its {suffix} is {dtype} against {other_dtype}, unlike almost every other call: look for a cast at this call",
        suffix=item.suffix,
        dtype=item.dtype,
        other_dtype=row.golden.dtype,
    )
    details = [
        describe_caller(node),
        tr("only this call computes in another precision: {taken}", taken=taken),
        describe_difference(row),
    ]
    return origin_at(row, reason, details, OriginKind.PRECISION)


def exceptional_widths(nodes: list[Node]) -> set[str]:
    """Return the calls that make or hold floats of another width than their counterpart; none if no exception."""
    if not hold_several_widths(nodes):
        return set()
    calls = [node for node in nodes if not (node.is_backward or node.is_save or node.is_update)]
    narrowed = [node for node in calls if not _are_equal(node, "output", "parameters")]
    # What one call narrowed others may hand on, as the layers of a convolutional network in mixed precision do. A layer
    # and the functions that it is made of are one.
    around = set(narrowed)
    if sum(node.parent not in around for node in narrowed) > max(1.0, EXCEPTION * len(calls)):
        return set()
    found = [node for node in narrowed if _takes_in_one_width(node)]
    together, changed = Counter(map(_what, calls)), Counter(map(_what, found))
    return {node.name for node in found if changed[_what(node)] <= max(1.0, _FEW_OF_A_KIND * together[_what(node)])}


def hold_several_widths(nodes: Sequence[Node]) -> bool:
    """Whether the dumps may hold floats of several widths, so that rows are worth a look."""
    first = next((row.numbers for node in nodes for row in node.pair.rows if row.numbers), None)
    return first is None or of_several_widths(first[0])


def _what(node: Node) -> str:
    """The class or function called."""
    parsed = node.parsed
    return node.name if parsed is None else parsed.class_name if parsed.is_module else parsed.name


def _takes_in_one_width(node: Node) -> bool:
    """Whether what it takes in, or what the call around it does, has one width on both sides.

    Casts are not always recorded: then a call inside a layer takes in other widths than the layer.
    """
    around = node.parent
    if around is not None and around.parsed is not None and around.parsed.is_root:
        around = None  # the model takes in data, and what runs in it what it has cast
    return _are_equal(node, "input") or (around is not None and _are_equal(around, "input"))


def _are_equal(node: Node, *states: str) -> bool:
    return not any(map(is_of_two_widths, node.rows(*states)))


def is_of_two_widths(row: Row) -> bool:
    """Whether both sides are floats and one of them is the narrower."""
    mine, other = widths(row.target, row.golden)
    return mine != other


def were_of_one_width(row: Row, target: Dump, golden: Dump) -> bool:
    """Whether both sides held floats of one width there in an earlier step."""
    if row.target is None or row.golden is None:
        return False
    mine, other = widths(same_item(target, row.target), same_item(golden, row.golden))
    return mine == other != 0


def widths(target: Item | None, golden: Item | None) -> tuple[float, float]:
    """Return the epsilons of both; zeros where one is no float."""
    mine = parse_dtype(target.dtype).epsilon if target is not None and target.kind == "tensor" else 0.0
    other = parse_dtype(golden.dtype).epsilon if golden is not None and golden.kind == "tensor" else 0.0
    return (mine, other) if mine and other else (0.0, 0.0)
