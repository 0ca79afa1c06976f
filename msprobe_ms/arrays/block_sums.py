"""Figures of whole arrays that take more than adding up what their blocks give: a divergence, and a spread."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


class Divergence:
    """KL(P‖Q) = Σ P ln(P/Q) in nats, P = softmax(g) of the golden, Q = softmax(t) of the target, over all elements.

    Source: Kullback & Leibler, On Information and Sufficiency (1951); softmax, as tensors of a net are no
    distributions: any finite numbers will do, and for logits P and Q are what the net says.

    With Z the sum of exponentials, KL = Σ P (g − t) − ln Z(g) + ln Z(t). The three sums are kept relative to the
    largest element so far, and rescaled when a larger one comes (as in online softmax), so one pass is enough and no
    exponential overflows. Costs two exponentials an element.
    """

    def __init__(self) -> None:
        self._golden_top = self._target_top = -math.inf
        self._golden_sum = self._target_sum = self._weighted = 0.0

    def add(self, target: Doubles, golden: Doubles, difference: Doubles, finite: npt.NDArray[np.bool_] | None) -> None:
        """Add a block: doubles and their target − golden, all 1-d of one length, or a mask of them in ``finite``.

        Where ``finite`` is False both hold the same NaN or infinity. Those places take no part: a masked logit of −inf
        has no probability on either side.
        """
        if finite is not None:
            target, golden, difference = target[finite], golden[finite], difference[finite]
            if not target.size:
                return
        weights, self._golden_top, shrink = _exponentials(golden, self._golden_top)
        self._golden_sum = self._golden_sum * shrink + float(weights.sum())
        self._weighted = self._weighted * shrink - _weighted(weights, difference)
        weights, self._target_top, shrink = _exponentials(target, self._target_top)
        self._target_sum = self._target_sum * shrink + float(weights.sum())

    def value(self) -> float:
        """Return the divergence, at least 0 (rounding may leave it a few 1e-16 below); inf beyond double precision."""
        if not self._golden_sum:
            return 0.0
        tops = self._target_top - self._golden_top
        divergence = self._weighted / self._golden_sum + tops + math.log(self._target_sum / self._golden_sum)
        return max(0.0, divergence) if divergence == divergence else math.inf


def _exponentials(block: Doubles, top: float) -> tuple[Doubles, float, float]:
    """exp(block − top) with the new largest element as top, and what earlier sums are to be multiplied by."""
    new = max(top, float(block.max()))
    shrink = math.exp(top - new) if top > -math.inf else 0.0
    shifted: npt.NDArray[Any] = block - new
    return np.exp(shifted, out=shifted), new, shrink


def _weighted(weights: Doubles, difference: Doubles) -> float:
    total = float(np.dot(weights, difference))
    if total == total:
        return total
    likely = weights > 0  # a difference that overflows counts only where it has a weight
    return float(np.dot(weights[likely], difference[likely]))


class Spread:
    """Squares of how far numbers are from their mean, summed block by block without cancellation.

    Source: Chan, Golub & LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances (1979).
    """

    def __init__(self) -> None:
        self._size = 0
        self._mean: Any = 0.0
        #: Σ |x − mean|² over all that was added.
        self.squares: Any = 0.0

    def add(self, block: npt.NDArray[Any]) -> None:
        """Add a block: 1-d, real or complex, not empty."""
        mean = block.mean()
        apart = block - mean
        shift, size = mean - self._mean, self._size + block.size
        self.squares = self.squares + np.vdot(apart, apart).real + abs(shift) ** 2 * self._size * block.size / size
        self._mean, self._size = self._mean + shift * block.size / size, size
