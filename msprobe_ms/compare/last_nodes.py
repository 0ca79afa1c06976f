"""Dumps that record of a function's backward what its last inner step hands on, not what reaches its inputs.

So does msprobe's PyTorch side: of ``linear`` the gradients of bias, input and transposed weight, of ``cross_entropy``
that of its log-softmax. Shapes give it away: a gradient has the shape of its input. Where one has not, no function's
gradients of that dump can be held against another's; modules' can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msprobe_ms.compare.model import Pair
from msprobe_ms.names import BACKWARD, FORWARD
from msprobe_ms.store.model import Entry

#: The only framework whose dumps were seen to be such.
_TENSOR = "torch."


def refute_last_nodes(pairs: Sequence[Pair]) -> None:
    """Mark what functions hand on in backward where one of the dumps records another thing by it."""
    sides = ([pair.target for pair in pairs], [pair.golden for pair in pairs])
    if not any(_records_last_nodes([entry for entry in side if entry is not None]) for side in sides):
        return
    for pair in pairs:
        if pair.target is not None and _is_functions_backward(pair.target):
            for row in pair.rows:
                item = row.target or row.golden
                if item is not None and item.state == "output":
                    row.refuted |= row.differs


def _records_last_nodes(entries: Iterable[Entry]) -> bool:
    by_name = {entry.name: entry for entry in entries}
    for entry in by_name.values():
        if _is_functions_backward(entry) and entry.parsed is not None:
            forward = by_name.get(str(entry.parsed.in_direction(FORWARD)))
            if forward is not None and not _fits(entry, forward):
                return True
    return False


def _is_functions_backward(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.direction == BACKWARD and not entry.parsed.is_module


def _fits(backward: Entry, forward: Entry) -> bool:
    """Whether every gradient has the shape of one of the inputs that it may belong to: the one in its place."""
    shapes = [item.shape for item in forward.in_state("input") if item.type.startswith(_TENSOR)]
    gradients = [item for item in backward.in_state("output") if item.kind == "null" or item.type.startswith(_TENSOR)]
    if len(gradients) > len(shapes):
        return False
    return all(item.kind == "null" or item.shape == shape for item, shape in zip(gradients, shapes, strict=False))
