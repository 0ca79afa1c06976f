"""Tensors that show more elements than they hold: expanded and overlapping views, sparse tensors.

``torch.ones(1).expand(10**11)`` takes four bytes of memory. What is computed of such a tensor must take no more time
than what it holds, and its file no more room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from msprobe_ms.arrays.statistics import Statistics, statistics, together

#: Up to so many elements are read as often as they are shown: a quarter of a second, and the tensor has a sketch.
MOST_READ = 1 << 26

#: How often a view may show an element of its memory and still be read element by element.
_MOST_TIMES = 4


class Distinct(NamedTuple):
    """What the statistics of a tensor follow from.

    ``elements``  a tensor of the same kind; None where only reading all that is shown would tell
    ``times``     how often the tensor shows each of them
    ``zeros``     how many zeros it shows besides
    ``compact``   whether its file holds each of them only once
    """

    elements: Any
    times: int = 1
    zeros: int = 0
    compact: bool = False

    def statistics(self, found: Statistics, size: int) -> Statistics:
        """Return the statistics of a tensor of ``size`` elements from those ``found`` of its distinct elements."""
        norm = found.norm
        if isinstance(norm, float):
            norm *= math.sqrt(self.times)
        zeros = statistics(np.zeros(1, bool if isinstance(found.maximum, bool) else np.float32))
        return together(
            [(size - self.zeros, found._replace(norm=norm)), *([(self.zeros, zeros)] if self.zeros else ())]
        )


def distinct(tensor: Any, shape: Sequence[int], strides: Sequence[int], least: int = MOST_READ) -> Distinct:
    """Find the elements that a tensor of more than ``least`` elements shows; of any other they are the tensor itself.

    ``tensor`` is indexed with one slice for each dimension; ``strides`` are of any unit.
    """
    if math.prod(shape) <= least:
        return Distinct(tensor)
    moved = [(size, abs(stride)) for size, stride in zip(shape, strides, strict=True) if size > 1 and stride]
    once = math.prod(size for size, _ in moved)
    if once > least:
        held = 1 + sum((size - 1) * stride for size, stride in moved) // min(stride for _, stride in moved)
        if once > _MOST_TIMES * held:
            return Distinct(None)
    times = math.prod(shape) // once
    if times == 1:
        return Distinct(tensor)
    return Distinct(tensor[tuple(slice(None) if stride else slice(0, 1) for stride in strides)], times)
