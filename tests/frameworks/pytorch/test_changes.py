"""Changes of results, against what NumPy says; numbers a few units in the last place away."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from msprobe_ms.arrays.changes import last_bit_flipped, measure, nearby

_INTEGERS = {"float16": np.int16, "float32": np.int32, "float64": np.int64}


@pytest.mark.parametrize("dtype", _INTEGERS)
def test_numbers_move_by_as_many_units_as_asked_for(dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal(4000).astype(dtype)
    bits = x.view(_INTEGERS[dtype])
    for ulps in (1, 2):
        moved = nearby(bits, dtype, 7, ulps).view(dtype)
        steps = np.abs(moved.view(_INTEGERS[dtype]).astype(np.int64) - bits.astype(np.int64))
        assert (steps == ulps).all()
        assert 0.4 < np.mean(moved > x) < 0.6
    assert (last_bit_flipped(bits, dtype) == bits ^ 1).all()


@pytest.mark.parametrize("dtype", _INTEGERS)
def test_what_is_no_normal_number_stays(dtype: str) -> None:
    limits = np.finfo(dtype)
    x = np.array([0, -0.0, limits.tiny / 4, limits.max, -limits.max, np.inf, -np.inf, np.nan], dtype)
    bits = x.view(_INTEGERS[dtype])
    assert (nearby(bits, dtype, 3, 2) == bits).all() and (last_bit_flipped(bits, dtype) == bits).all()


def test_equal_numbers_stay_equal_and_another_seed_is_another_noise() -> None:
    x = np.repeat(np.random.default_rng(0).standard_normal(50).astype(np.float32), 3).view(np.int32)
    one, other = nearby(x, "float32", 1, 2), nearby(x, "float32", 2, 2)
    assert (one.reshape(50, 3) == one.reshape(50, 3)[:, :1]).all()
    assert 0.2 < np.mean(one != other) < 0.8
    assert (nearby(torch.from_numpy(x), "float32", 1, 2).numpy() == one).all()


@pytest.mark.parametrize("xp", [np, torch])
def test_a_change_is_measured_beside_the_largest_element(xp: object) -> None:
    def array(*values: float) -> object:
        return np.array(values) if xp is np else torch.tensor(values, dtype=torch.float64)

    change = measure(xp, array(1, -4, 0), array(1.5, -4, 1e-9), 0.1, 0.0, 1e300)
    assert (change.elements, change.largest, change.scale, change.changed) == (3, 0.5, 4.0, 1)
    assert (change.relative, change.before, change.after) == (0.125, 1.0, 1.5)
    assert measure(xp, array(), array(), 0.1, 0.0, 1.0).relative == 0
    assert measure(xp, array(0, 0), array(0, 1), 0.1, 0.0, 1e300).relative == float("inf")
    inf, nan = float("inf"), float("nan")
    odd = measure(xp, array(inf, nan, nan, 1, inf, 2), array(inf, nan, 1, inf, -inf, 3), 0.1, 0.0, 1e300)
    assert (odd.nans, odd.infinities, odd.has_nan, odd.has_infinity, odd.relative) == (1, 2, True, True, 0.5)


def test_a_mask_near_the_largest_number_may_overflow() -> None:
    mask = np.array([-65504.0, 1.0])
    assert measure(np, mask, np.array([-np.inf, 1.0]), 0.1, 0.0, 65504.0).infinities == 0
    assert measure(np, mask, np.array([-np.inf, 1.0]), 0.1, 0.0, 1e30).infinities == 1


def test_many_small_elements_that_changed_are_counted_unless_it_is_noise() -> None:
    original = np.r_[1e4, np.full(99, 1e-2)]
    assert measure(np, original, original + 5e-3, 2e-4, 0.0, 1e30, 2e-7).changed == 0
    assert measure(np, original, original * 1.5, 2e-4, 0.0, 1e30, 2e-8).changed == 100
