"""Parts of joined parameters that one side leaves alone: a frozen query beside a fused projection that is trained.

Of what was joined only statistics are compared, in which updates hide one that is missing. But each part has a sketch
of its own, and so has the whole on the other side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msprobe_ms.arrays import sketch
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.updates import KNOWN, ROUNDING, Place, gradients_of, sketched
from msprobe_ms.comparison.pairing.fused_tensors import holds_joined, parts_of
from msprobe_ms.comparison.statistics import element_count, magnitude
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.names import parse_entry


class PartLeftAlone(NamedTuple):
    """A part of the joined parameter of ``row`` that ``side`` did not update, though the other side did the whole."""

    row: Row
    part: Item
    side: Side


def parts_left_alone(
    nodes: Sequence[Node], now: tuple[Dump, Dump], before: tuple[Dump, Dump]
) -> Iterator[PartLeftAlone]:
    """Yield the parts that did not move, where the other side's update and the part's own gradient say how far to."""
    gradients = {side: gradients_of(before[side]) for side in (TARGET, GOLDEN) if holds_joined(now[side])}
    for node in nodes if gradients else ():
        for row in node.rows("parameters") if node.is_module_call else ():
            for side in gradients:
                joined, whole = (row.golden, row.target) if side == GOLDEN else (row.target, row.golden)
                parts = parts_of(now[side], joined) if joined is not None else ()
                if joined is None or whole is None or not parts:
                    continue
                moved, pasts = _moved(whole, before[1 - side]), _parts_before(joined, before[side])
                gradient = gradients[side].get(_place(joined))
                slopes = parts_of(before[side], gradient) if gradient is not None else ()
                for part, was, slope in zip(parts, pasts, slopes, strict=False):
                    if _is_still(part, was, moved * _share(part, joined, slope, gradient)):
                        yield PartLeftAlone(row, part, side)


def _place(item: Item) -> Place:
    """Whose parameter an item of a forward call is."""
    parsed = parse_entry(item.entry)
    return parsed.name if parsed is not None else "", item.path


def _parts_before(joined: Item, before: Dump) -> Sequence[Item]:
    past = same_item(before, joined)
    return parts_of(before, past) if past is not None else ()


def _share(part: Item, joined: Item, slope: Item, gradient: Item | None) -> float:
    """The least part of the norm of a joined update that is this part's: in proportion to the gradient, or of one size.

    Optimizers make steps of either kind.
    """
    by_gradient = magnitude(slope.norm) / (magnitude(gradient.norm if gradient else None) or math.inf)
    return min(by_gradient, math.sqrt(element_count(part) / max(1, element_count(joined))))


def _moved(whole: Item, before: Dump) -> float:
    """The norm of the update of a parameter; 0 where it is not known."""
    now, was = sketched(whole), sketched(same_item(before, whole))
    return sketch.distance(now, was) if now is not None and was is not None else 0.0


def _is_still(part: Item, was: Item, expected: float) -> bool:
    """Whether a part is as it was but for rounding, though a step of the norm ``expected`` would show."""
    now, past = sketched(part), sketched(was)
    if now is None or past is None or part.name != was.name:
        return False
    rounding = ROUNDING * parse_dtype(part.dtype).epsilon * max(map(sketch.norm, (now, past)))
    return sketch.distance(now, past) <= rounding and expected > KNOWN * rounding
