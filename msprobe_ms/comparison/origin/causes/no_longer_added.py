"""A value that was the sum of others in the first step on both sides, and no longer is on one of them.

So are residual connections: code that adds adds in every step, whatever a training makes of the values. Sketches are
linear, so that the sketch of a sum is the sum of sketches, on each side by itself: no drift between the sides counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays import sketch
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.fingerprints import fingerprints
from msprobe_ms.comparison.model import Origin, Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.sentences import describe_caller, describe_difference, origin_at
from msprobe_ms.comparison.statistics import element_count
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.support.translation import tr, tr_join

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk

Vectors = npt.NDArray[np.float64]

#: Epsilons, of the norms of its terms, that a sum may be off as sketches show it: 2 were seen. And times of this from
#: which on it is no sum.
_ROUNDING, _CLEARLY = 16.0, 4.0
#: Values right before a sum that may be its terms, and how many of them it has at most.
_NEAR, _TERMS = 16, 3


class NoLongerAdded:
    """Results of modules, and what calls inside them take in, that code between recorded calls added up."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def find(self, walk: Walk, found: Sequence[tuple[float, Origin]]) -> list[tuple[float, Origin]]:
        """The first that is such, unless it is told already."""
        if (first := self._evidence.first_step) is None:
            return []
        for node in self._evidence.nodes:
            if node.is_module_call and node.children:
                for inner, row, terms, side in _changed(node, first):
                    return [(inner.order, _origin(inner, row, terms, side))] if walk.is_untold(inner) else []
        return []


class _Value(NamedTuple):
    """A row with its sketches, (4, 16): of the target and the golden in the first step, and of both now."""

    row: Row
    sketches: Vectors
    epsilon: float


def _changed(node: Node, first: tuple[Dump, Dump]) -> Iterator[tuple[Node, Row, Sequence[Row], str]]:
    """Calls, what they take in or give out, the terms that made it up, and the side on which they no longer do."""
    known = [value for row in node.rows("input") if (value := _value(row, first)) is not None]
    passed = {fingerprints(each.row) for each in known}
    calls = ((child, row) for child in node.children for row in child.rows("input", "output"))
    for inner, row in (*calls, *((node, row) for row in node.rows("output"))):
        both = fingerprints(row)
        if both in passed or None in both or (value := _value(row, first)) is None:
            continue
        if row.differs and (inner is node or row.state == "input"):
            terms, side = _no_longer(value, known)
            if side:
                yield inner, row, terms, side
        passed.add(both)
        known.append(value)


def _no_longer(value: _Value, known: Sequence[_Value]) -> tuple[Sequence[Row], str]:
    """The terms whose sum it was on both sides, and the side on which it no longer is; "" for neither or both."""
    alike = [each for each in known if _count(each.row) == _count(value.row)][-_NEAR:]
    for many in range(2, _TERMS + 1):
        if many > len(alike):
            break
        off = _off(value, alike, many)
        were_sums = np.flatnonzero((off[:, :2] <= 1).all(axis=1))
        if were_sums.size:
            target, golden = off[were_sums[0], 2:]
            side = (
                "target" if golden <= 1 and target > _CLEARLY else "golden" if target <= 1 < _CLEARLY < golden else ""
            )
            return [alike[place].row for place in _choices(len(alike), many)[were_sums[0]]], side
    return (), ""


def _off(value: _Value, terms: Sequence[_Value], many: int) -> Vectors:
    """How far it is off the sums of so many of the terms, over what rounding may be, (choices, 4)."""
    sketches, choices = np.stack([each.sketches for each in terms]), _choices(len(terms), many)
    sizes = np.linalg.norm(sketches, axis=-1)[choices].sum(axis=1)
    apart = np.linalg.norm(value.sketches - sketches[choices].sum(axis=1), axis=-1)
    epsilon = max(each.epsilon for each in (value, *terms))
    with np.errstate(all="ignore"):
        found: Vectors = np.where(sizes > 0, apart / (_ROUNDING * epsilon * sizes), np.inf)
    return found


@lru_cache(maxsize=64)
def _choices(count: int, many: int) -> npt.NDArray[np.intp]:
    return np.array(list(combinations(range(count), many)), np.intp)


def _count(row: Row) -> int:
    return element_count(row.golden) if row.golden is not None else 0


def _value(row: Row, first: tuple[Dump, Dump]) -> _Value | None:
    if row.target is None or row.golden is None:
        return None
    items = (same_item(first[0], row.target), same_item(first[1], row.golden), row.target, row.golden)
    vectors = [_sketched(item) for item in items]
    epsilon = max(parse_dtype(item.dtype).epsilon for item in (row.target, row.golden))
    known = [each for each in vectors if each is not None]
    return _Value(row, np.stack(known), epsilon) if epsilon and len(known) == len(items) else None


def _sketched(item: Item | None) -> Vectors | None:
    return sketch.decode(item.sketch) if item is not None and item.sketch else None


def _origin(node: Node, row: Row, terms: Sequence[Row], side: str) -> Origin:
    names = [each.target.name for each in terms if each.target is not None]
    reason = tr(
        "the {side} no longer adds {names} here, as both sides did in the first step: look at its code",
        side=tr(side),
        names=tr_join(tr(" and "), names),
    )
    return origin_at(row, reason, [describe_difference(row), describe_caller(node)])
