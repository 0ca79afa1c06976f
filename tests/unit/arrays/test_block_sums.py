"""Divergence and spread, summed block by block, equal their definitions, also where plain sums lose all digits."""

from __future__ import annotations

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from array_metrics import plain_divergence
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.arrays.metrics import KL_DIVERGENCE, STANDARD_DEVIATION, tensor_difference


@given(
    arrays.arrays(np.float64, st.integers(2, 60), elements=st.floats(-700, 700)),
    arrays.arrays(np.float64, 60, elements=st.floats(-3, 3)),
    st.booleans(),
)
def test_divergence_of_any_logits(golden: np.ndarray, change: np.ndarray, sorted_up: bool) -> None:
    """Also where each block brings a larger element: several blocks, rising."""
    golden = np.repeat(np.sort(golden) if sorted_up else golden, 700)
    target = golden + np.resize(change, golden.size)
    found = tensor_difference(target, golden, more=True).metrics[KL_DIVERGENCE]
    assert found == pytest.approx(plain_divergence(target, golden), rel=1e-8, abs=1e-12)


def test_the_standard_deviation_of_a_nearly_constant_error() -> None:
    """Far smaller than the error itself, which a difference of two sums of squares would lose."""
    golden = np.zeros(30_000)
    target = 1e6 + 1e-6 * np.sin(np.arange(golden.size))
    found = tensor_difference(target, golden, more=True).metrics[STANDARD_DEVIATION]
    assert found == pytest.approx(float(np.std(target.astype(np.longdouble))), rel=1e-6)


def test_divergence_leaves_masked_logits_out() -> None:
    golden = np.linspace(-1, 1, 20_000)
    target = golden**2
    found = tensor_difference(target, golden, more=True).metrics[KL_DIVERGENCE]
    masked = [np.insert(array, [0, 9000, 20_000], -np.inf) for array in (target, golden)]
    assert tensor_difference(*masked, more=True).metrics[KL_DIVERGENCE] == pytest.approx(found, rel=1e-12)
    nothing = np.full(3, -np.inf)
    assert tensor_difference(nothing, nothing, more=True).metrics[KL_DIVERGENCE] == 0


def test_a_difference_that_overflows_counts_only_where_it_has_a_weight() -> None:
    golden, target = np.array([-1.7e308, 0.0]), np.array([1.7e308, 0.0])
    found = tensor_difference(target, golden, more=True).metrics[KL_DIVERGENCE]
    assert found == pytest.approx(1.7e308)
