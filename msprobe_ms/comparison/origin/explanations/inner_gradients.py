"""Dumps that record of a function's backward what its last inner step hands on, not what reaches its inputs.

So does msprobe's PyTorch side: of ``linear`` the gradients of bias, input and transposed weight, of ``cross_entropy``
that of its log-softmax. Shapes give it away: a gradient has the shape of its input. Where one has not, no function's
gradients of that dump can be held against another's; modules' can, and what the next call takes in on both sides just
as it was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.tensor_identity import GOLDEN, TARGET, fingerprint
from msprobe_ms.dump.dialects import DIALECTS
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import BACKWARD, FORWARD

#: What types of tensors begin with in dumps of the frameworks whose dumps were seen to be such.
_TENSOR = tuple(f"{dialect.package}." for dialect in DIALECTS if dialect.inner_gradients)


def refute_last_nodes(pairs: Sequence[Pair]) -> None:
    """Mark what functions hand on in backward where one of the dumps records another thing by it."""
    sides = ([pair.target for pair in pairs], [pair.golden for pair in pairs])
    if not any(_records_last_nodes([entry for entry in side if entry is not None]) for side in sides):
        return
    taken = _taken(pairs)
    for pair in pairs:
        if pair.target is not None and _is_functions_backward(pair.target):
            for row in pair.rows:
                if row.state == "output" and row.differs and _on_both_sides(row) not in taken:
                    row.refuted = True


def _taken(pairs: Sequence[Pair]) -> set[object]:
    """The gradients that one call takes in on both sides: what hands these very tensors on was recorded rightly."""
    backwards = [pair for pair in pairs if pair.matched and pair.target is not None and _is_backward(pair.target)]
    rows = (row for pair in backwards for row in pair.rows if row.state == "input" and row.matched)
    return {found for row in rows if (found := _on_both_sides(row)) is not None}


def _on_both_sides(row: Row) -> object:
    """The figures on both sides, which reshaping leaves as they are; None: shapes differ or figures tell little."""
    mine, theirs = fingerprint(row, TARGET), fingerprint(row, GOLDEN)
    if mine is None or theirs is None or mine[0] != theirs[0]:
        return None
    return mine[1:], theirs[1:]


def _records_last_nodes(entries: Iterable[Entry]) -> bool:
    by_name = {entry.name: entry for entry in entries}
    for entry in by_name.values():
        if _is_functions_backward(entry) and entry.parsed is not None:
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
