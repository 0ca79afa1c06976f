"""Whether there is memory for the tensors of a call, asked before any of them is made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from msprobe_ms.accuracy.calls import RecordedTensor
from msprobe_ms.support.workers import free_memory

#: What a check or a proof holds at most of arguments and results, as float64: sets of arguments, two sides, copies.
_COPIES = 16
#: Bytes that there are, whatever the system says.
_SMALL = 64 << 20


def missing_memory(leaves: Iterable[Any]) -> int:
    """Return how many bytes the recorded tensors among ``leaves`` need here, if that is more than is free; else 0."""
    elements = sum(math.prod(leaf.shape) for leaf in leaves if isinstance(leaf, RecordedTensor))
    need = elements * 8 * _COPIES
    return need if need > _SMALL and need > free_memory() else 0
