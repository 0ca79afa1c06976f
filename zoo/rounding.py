"""When two sides of a pair compute the same up to rounding: each is held against the golden side computed in float64.

How far float32 may be off grows with the depth of a network and with its condition. PyTorch's own error shows both, and
so does what becomes of the result if parameters move by rounding: the target's error is measured in the larger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: By so much float32 may be off in every array, whatever PyTorch's error there: about eight epsilons of its norm.
LEAST = 1e-6
#: A gradient smaller than this part of the step's largest is noise, as of a bias before a norm.
NOISE = 1e-5
#: So many times as much the target may be off. Of the pairs worked with most are off by up to 5 times as much, and by
#: 27 where MindSpore's exponential function on a CPU, 25 times less exact than PyTorch's, makes times, or where one sum
#: cancels; another formula stands out by orders.
TIMES = 50.0

LOSS, GRADIENT, PARAMETER = "loss", "gradient", "parameter"


@dataclass(frozen=True)
class Errors:
    """How far both sides are off in one array of one step: norms of the differences, and of the array itself.

    ``moved``: how far it moves if parameters do by `LEAST`.
    """

    step: int
    what: str
    path: str
    norm: float
    golden: float
    target: float
    moved: float = 0.0


def errors(
    step: int, what: str, path: str, golden: tuple[Any, Any], target: tuple[Any, Any], moved: Any = 0.0
) -> Errors:
    """The errors of both sides; of each, what it computed and what it ought to have."""
    off = [_norm(np.subtract(*each, dtype=np.float64)) for each in (golden, target)]
    return Errors(step, what, path, _norm(target[1]), off[0], off[1], _norm(moved))


def _norm(values: Any) -> float:
    return float(np.linalg.norm(np.asarray(values, np.float64).ravel()))


def beyond_rounding(found: Sequence[Errors]) -> list[tuple[float, Errors]]:
    """Where the target is off by more than rounding, and how many times as much as may be; the worst first."""
    largest: dict[int, float] = defaultdict(float)
    for each in found:
        if each.what == GRADIENT:
            largest[each.step] = max(largest[each.step], each.norm)
    judged = [(each.target / _bound(each, largest[each.step]), each) for each in found]
    return sorted((each for each in judged if not each[0] <= 1), key=lambda each: -each[0])


def _bound(each: Errors, largest: float) -> float:
    """How far the target may be off; ``largest``: the norm of the step's largest gradient."""
    norm = max(each.norm, NOISE * largest) if each.what == GRADIENT else each.norm
    return TIMES * max(each.golden, each.moved, LEAST * norm)
