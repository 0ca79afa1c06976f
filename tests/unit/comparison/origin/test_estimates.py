"""How well sketches of sixteen numbers estimate a distance: what is let through for chance is what chance does."""

from __future__ import annotations

import numpy as np

from msprobe_ms.arrays.sketch import sketch
from msprobe_ms.comparison.origin.estimates import ESTIMATE, ESTIMATE_OF_BOTH


def ratios(count: int, size: int = 4096) -> np.ndarray:
    """Estimated norms of random tensors over their own."""
    random = np.random.default_rng(5)
    tensors = random.standard_normal((count, size)).astype(np.float32)
    estimated = np.array([np.linalg.norm(sketch(each)) for each in tensors])
    return estimated / np.linalg.norm(tensors, axis=1)


def test_an_estimate_is_within_its_bound_but_in_one_of_a_thousand_cases() -> None:
    found = ratios(4000)
    assert np.mean((found > ESTIMATE) | (found < 1 / ESTIMATE)) < 1e-3
    assert found.std() > 0.1  # it is no exact figure


def test_two_estimates_in_one_proportion_are_within_theirs() -> None:
    found = ratios(8000)
    both = found[::2] / found[1::2]
    assert max(both.max(), 1 / both.min()) < ESTIMATE_OF_BOTH
    assert max(both.max(), 1 / both.min()) > 1.5
