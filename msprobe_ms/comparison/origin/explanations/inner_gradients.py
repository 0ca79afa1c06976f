"""Dumps that record of a function's backward what its last inner step hands on, not what reaches its inputs.

So does msprobe's PyTorch side: of ``linear`` the gradients of bias, input and transposed weight, of ``cross_entropy``
that of its log-softmax. Shapes give it away: a gradient has the shape of its input. Where one has not, no function's
gradients of that dump can be held against another's; modules' can, and what the next call takes in on both sides just
as it was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.terms import GOLDEN, TARGET
from msprobe_ms.dump.dialects import DIALECTS
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import BACKWARD, FORWARD

#: What types of tensors begin with in dumps of the frameworks whose dumps were seen to be such.
_TENSOR = tuple(f"{dialect.package}." for dialect in DIALECTS if dialect.inner_gradients)
if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence


class InnerGradients(Surveyed):
    """What functions hand on in backward where one of the dumps records the gradient of an inner step by it."""

    name: ClassVar[str] = "inner gradients"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        pairs = evidence.pairs
        sides = ([pair.target for pair in pairs], [pair.golden for pair in pairs])
        if not any(_records_inner_gradients([entry for entry in side if entry is not None]) for side in sides):
            return
        taken = _taken(pairs)
        for node in evidence.nodes:
            if node.pair.target is not None and _is_functions_backward(node.pair.target):
                for row in node.rows("output"):
                    if row.differs and _on_both_sides(row) not in taken:
                        self.let_pass(row, node)


def _taken(pairs: Sequence[Pair]) -> set[object]:
    """The gradients that one call takes in on both sides: what hands these very tensors on was recorded rightly."""
    backwards = [pair for pair in pairs if pair.matched and pair.target is not None and _is_backward(pair.target)]
    rows = (row for pair in backwards for row in pair.rows if row.state == "input" and row.matched)
    return {found for row in rows if (found := _on_both_sides(row)) is not None}


def _on_both_sides(row: Row) -> object:
    """The statistics on both sides, which reshaping leaves as they are; None: shapes differ or they tell little."""
    mine, theirs = fingerprint(row, TARGET), fingerprint(row, GOLDEN)
    if mine is None or theirs is None or mine[0] != theirs[0]:
        return None
    return mine[1:], theirs[1:]


def _records_inner_gradients(entries: Sequence[Entry]) -> bool:
    backwards = [entry for entry in entries if _is_functions_backward(entry)]
    by_name = {entry.name: entry for entry in entries} if backwards else {}
    for entry in backwards:
        if entry.parsed is not None:
            forward = by_name.get(str(entry.parsed.in_direction(FORWARD)))
            if forward is not None and not _fits(entry, forward):
                return True
    return False


def _is_backward(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.direction == BACKWARD


def _is_functions_backward(entry: Entry) -> bool:
    return _is_backward(entry) and entry.parsed is not None and not entry.parsed.is_module


def _fits(backward: Entry, forward: Entry) -> bool:
    """Whether every gradient has the shape of one of the inputs that it may belong to: the one in its place."""
    shapes = [item.shape for item in forward.in_state("input") if item.type.startswith(_TENSOR)]
    gradients = [item for item in backward.in_state("output") if item.kind == "null" or item.type.startswith(_TENSOR)]
    if len(gradients) > len(shapes):
        return False
    return all(item.kind == "null" or item.shape == shape for item, shape in zip(gradients, shapes, strict=False))
