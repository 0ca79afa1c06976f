"""One tensor given to a call in several places: ``attention(x, memory, memory)``.

Some tools record its whole gradient at each of the places, others the part that came by way of each. Where the parts
of one side make up the whole of the other, the records differ and the computations agree.

A function that gives out what it took in (a cast to the dtype that is there) may give out the very tensor or a copy of
it. So the gradients that are recorded by it are the whole of that tensor's or a part, and say nothing: what is computed
of them is judged where it is used.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import BACKWARD, FORWARD

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node

#: Means of parts add up to the mean of the whole within this part of the tolerance of the tensors' own size: a mean
#: rounds far less than the elements that the tolerance is for.
_ROUNDED = 0.25


class PartialGradients(Surveyed):
    """Gradients of tensors given in several places where one side has the parts of the other's whole."""

    name: ClassVar[str] = "partial gradients"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        forwards = {node.name: node for node in evidence.nodes}
        for node in evidence.nodes:
            if node.parsed is None or node.parsed.direction != BACKWARD:
                continue
            forward = forwards.get(str(node.parsed.in_direction(FORWARD)))
            for row in () if forward is None else self._partial(node, forward):
                if row.differs:
                    self.let_pass(row, node)

    def _partial(self, node: Node, forward: Node) -> Iterator[Row]:
        """The gradients of which the two sides may have recorded different parts."""
        if not node.is_module and forward.kind is Kind.OTHER and forward.passes_on:
            yield from node.pair.rows
            return
        given = [row for row in forward.pair.rows if _is(row, "input")]
        gradients = _gradients(node, len(given))
        for places in _same(given) if gradients else ():
            rows = [gradients[place] for place in places]
            if all(_is(row, "output") for row in rows) and _are_parts_and_whole(rows):
                yield from rows


def _gradients(node: Node, count: int) -> list[Row]:
    """Its gradients of ``count`` tensors, in their order: with those that are none (of a mask), or without; else []."""
    every = [row for row in node.rows("output") if row.matched]
    return next((rows for rows in (every, [row for row in every if _is(row, "output")]) if len(rows) == count), [])


def _is(row: Row, state: str) -> bool:
    """Whether both sides of the row are tensors of this side of their call."""
    return all(item is not None and item.state == state and item.kind == "tensor" for item in (row.target, row.golden))


def _same(rows: Sequence[Row]) -> list[list[int]]:
    """Places at which both sides have one and the same tensor."""
    places: dict[object, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[_statistics(row.target), _statistics(row.golden)].append(place)
    return [each for each in places.values() if len(each) > 1]


def _statistics(item: Item | None) -> object:
    return None if item is None else (item.dtype, item.shape, item.maximum, item.minimum, item.mean, item.norm)


def _are_parts_and_whole(rows: Sequence[Row]) -> bool:
    """Whether one side has the parts of what the other has whole, at all of these places."""
    targets = [row.target for row in rows if row.target is not None]
    goldens = [row.golden for row in rows if row.golden is not None]
    tolerance = max((row.held_to or 0.0 for row in rows), default=0.0)
    return _make_up(goldens, targets, tolerance) or _make_up(targets, goldens, tolerance)


def _make_up(parts: Sequence[Item], whole: Sequence[Item], tolerance: float) -> bool:
    """Whether ``parts`` may be summands of the tensor that ``whole`` has at every place.

    Means are additive; norms obey the triangle inequality, from both sides.
    """
    if len({_statistics(item) for item in whole}) > 1 or len({item.shape for item in (*parts, *whole)}) > 1:
        return False
    norms = [_number(item.norm) for item in (*parts, whole[0])]
    means = [_number(item.mean) for item in (*parts, whole[0])]
    if not all(map(math.isfinite, (*norms, *means))):
        return False
    shape = whole[0].shape
    count = max(1, math.prod(shape)) if isinstance(shape, tuple) else 1
    size = sum(norms) / math.sqrt(count)
    if abs(sum(means[:-1]) - means[-1]) > _ROUNDED * tolerance * size:
        return False
    return 2 * max(norms) <= sum(norms) * (1 + _ROUNDED * tolerance)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan
