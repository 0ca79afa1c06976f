"""Values that have gone through a narrower float since the first step: their dtype hides it, their numbers show it.

Of float32 numbers one in 2^13 is a number of float16 too, one in 2^16 of bfloat16. Where all of a tensor are, on one
side and not in the first step, code in between has cast them, however little that changes beside a drift. All elements
tell where they were recorded; of statistics Max and Min, where both are no round numbers, as those of a softmax with a
mask are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.measuring.deviation import Floats, fits_narrow, is_round
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.nodes import error_ratio, is_measured
from msprobe_ms.comparison.origin.sentences import describe_caller, describe_difference, origin_at
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk

#: So many of the elements must be no round numbers for all to tell; and of those of the other side most must be wider.
_FEW, _MOST = 4, 0.5


class RoundedValues:
    """Inputs and results of forward calls that one side alone has cast since the first step."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def find(self, walk: Walk, found: Sequence[tuple[float, Origin]]) -> list[tuple[float, Origin]]:
        """The first that is beyond its tolerance, unless it is told already, or something before it."""
        if (first := self._evidence.first_step) is None:
            return []
        earliest = min((place for place, _ in found), default=None)
        for node, row in self._beyond():
            if earliest is not None and node.order >= earliest:
                return []
            if side := self._cast_by(row, first):
                return [(node.order, _origin(node, row, side))] if walk.is_untold(node) else []
        return []

    def _beyond(self) -> Iterator[tuple[Node, Row]]:
        for node in self._evidence.nodes:
            if not (node.is_backward or node.is_save or node.is_update) and max(node.ratio_in, node.ratio_out) > 1:
                yield from ((node, row) for row in node.rows("input", "output") if error_ratio(row) > 1)

    def _cast_by(self, row: Row, first: tuple[Dump, Dump]) -> str:
        """The side that has cast it since the first step; "" for neither, or where it cannot be told."""
        both = _of_float32(row.target), _of_float32(row.golden)
        if both[0] is None or both[1] is None or not any(fits_narrow(_ends(each)).all() for each in both if each):
            return ""
        past = same_item(first[0], both[0]), same_item(first[1], both[1])
        loaded = self._evidence.load(row) if self._evidence.load is not None and is_measured(row) else None
        if loaded is None:
            now, before = [_ends_were_cast(each) for each in both], [_ends_were_cast(each) for each in past]
        else:
            now = [_were_cast(each) for each in loaded]
            before = [_was_cast(*each) for each in zip(first, past, strict=True)] if True in now else [None]
        if sorted(map(str, now)) != ["False", "True"] or any(each is not False for each in before):
            return ""
        return "target" if now[0] else "golden"


def _of_float32(item: Item | None) -> Item | None:
    is_tensor = item is not None and item.kind == "tensor" and parse_dtype(item.dtype).name == "float32"
    return item if is_tensor else None


def _ends(item: Item) -> Floats:
    ends = (item.maximum, item.minimum)
    return np.array([end if isinstance(end, float) else np.nan for end in ends], np.float64)


def _ends_were_cast(item: Item | None) -> bool | None:
    """Whether Max and Min are numbers of a narrower float; None where they do not tell."""
    if item is None:
        return None
    ends = _ends(item)
    if is_round(ends).any() or not np.isfinite(ends).all():
        return None
    found = fits_narrow(ends)
    return bool(found[0]) if found[0] == found[1] else False


def _were_cast(array: npt.NDArray[np.generic]) -> bool | None:
    """Whether all elements that are not round are numbers of a narrower float; None where most are, or few are told."""
    values = array.astype(np.float64).ravel()
    fit = fits_narrow(values[~is_round(values)])
    if fit.size < _FEW:
        return None
    return True if fit.all() else None if fit.mean() > _MOST else False


def _was_cast(dump: Dump, item: Item | None) -> bool | None:
    """The same of a tensor of the first step; None where it cannot be read."""
    if item is None or item.data_name is None:
        return None
    try:
        return _were_cast(dump.tensors.load(item))
    except (MsprobeError, OSError, MemoryError):
        return None


def _origin(node: Node, row: Row, side: str) -> Origin:
    assert row.target is not None
    reason = tr(
        "the {side}'s {suffix} was rounded to a narrower float, and was not in the first step: look for a cast since",
        side=tr(side),
        suffix=row.target.suffix,
    )
    return origin_at(row, reason, [describe_difference(row), describe_caller(node)], OriginKind.PRECISION)
