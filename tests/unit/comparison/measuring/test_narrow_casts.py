"""A cast to a narrower float is told from two figures."""

from __future__ import annotations

import numpy as np
import pytest

from msprobe_ms.comparison.measuring.narrow_casts import rounded_on_one_side

_RANDOM = np.random.default_rng(5)


def ends(count: int = 2000) -> np.ndarray:
    """Max and Min of float32 tensors."""
    return (np.array([[3.0, -3.0]]) + _RANDOM.standard_normal((count, 2))).astype(np.float32).astype(np.float64)


def through_bfloat16(values: np.ndarray) -> np.ndarray:
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def test_float32_beside_float32_is_not() -> None:
    assert not rounded_on_one_side(ends(), ends()).any()


def test_what_went_through_float16_is_on_either_side() -> None:
    golden = ends()
    target = golden.astype(np.float16).astype(np.float64)
    assert rounded_on_one_side(target, golden).mean() > 0.9
    assert rounded_on_one_side(golden, target).mean() > 0.9
    assert not rounded_on_one_side(target, target).any()


def test_what_went_through_bfloat16_is() -> None:
    golden = ends()
    assert rounded_on_one_side(through_bfloat16(golden), golden).mean() > 0.6


def test_the_zero_of_a_relu_does_not_hide_it() -> None:
    golden = ends() * [1.0, 0.0]
    assert rounded_on_one_side(golden.astype(np.float16).astype(np.float64), golden).mean() > 0.9


@pytest.mark.parametrize("round_ends", [(1.0, -1.0), (6.0, 0.0), (0.5, -0.25), (np.inf, -np.inf), (np.nan,) * 2])
def test_round_numbers_are_none(round_ends: tuple[float, float]) -> None:
    golden = np.array([[0.99987, -0.99991]])
    assert not rounded_on_one_side(np.array([round_ends], np.float64), golden).any()
