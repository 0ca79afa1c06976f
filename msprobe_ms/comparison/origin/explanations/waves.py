"""Sines and cosines that code outside of modules makes of a time or of places: as far apart as their arguments round.

The absolute error of an argument is the error of its sine, so that waves of a time of some hundred steps are apart by
some hundred roundings. Where a layer makes them, or calls were recorded, its condition says so (``conditions``). What
the script or the net itself computes shows in the values alone: sines and cosines of the same angles lie within 1, and
the mean of their squares is one half (sin² + cos² = 1) to within rounding, as that of nothing else is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.propagation import set_apart_by_waves
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.statistics import element_count, magnitude, square
from msprobe_ms.dump.model import Item

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk

#: Roundings that the mean of squares of waves may be off one half by, and the fewest elements that tell waves.
_ROUNDINGS, _FEWEST = 32, 8


class Waves:
    """An input that is waves on both sides."""

    name: ClassVar[str] = "waves"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        pass

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """What rounding makes of arguments of which nothing is known but how many rows there are.

        Behind an origin, which all may follow from, nobody asks.
        """
        if walk.origins or row.state != "input" or node.is_backward or row.target is None or row.golden is None:
            return None
        if not (_are_waves(row.target) and _are_waves(row.golden)):
            return None
        return Allowance(self.name, set_apart_by_waves(row, _places(row.golden)))


def _are_waves(item: Item) -> bool:
    epsilon, count = parse_dtype(item.dtype).epsilon if item.kind == "tensor" else 0.0, element_count(item)
    if not epsilon or count < _FEWEST or not isinstance(item.norm, float):
        return False
    largest = max(magnitude(item.maximum), magnitude(item.minimum))
    apart = abs(square(magnitude(item.norm)) / count - 0.5)
    return largest <= 1 + epsilon and apart <= _ROUNDINGS * epsilon


def _places(item: Item) -> float:
    """How many places waves may count: their rows."""
    return float(math.prod(item.shape[:-1])) if isinstance(item.shape, tuple) else 1.0
