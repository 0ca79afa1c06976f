"""Every metric equals plain numpy's on the same tensors, whatever their dtype, shape and non-finite places."""

from __future__ import annotations

import math

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.compare.metrics import (
    COSINE,
    EUCLIDEAN,
    FIVE_THOUSANDTHS,
    MAX_ABSOLUTE,
    MAX_RELATIVE,
    ONE_THOUSANDTH,
    TENSOR_METRICS,
    Missing,
    tensor_difference,
)

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool", "complex64", "complex128"]


def plain(target: np.ndarray, golden: np.ndarray) -> dict[str, float]:
    """The definitions, written once more without blocks; all places finite."""
    epsilon = np.finfo(golden.dtype if golden.dtype.kind in "fc" else np.float64).eps
    wide = np.complex128 if golden.dtype.kind == "c" else np.float64
    t, g = target.astype(wide).ravel(), golden.astype(wide).ravel()
    error = np.abs(t - g)
    ratio = error / np.where(g == 0, epsilon, np.abs(g))
    return {
        COSINE: float(np.vdot(g, t).real / np.linalg.norm(t) / np.linalg.norm(g)),
        EUCLIDEAN: float(np.linalg.norm(t - g)),
        MAX_ABSOLUTE: float(error.max()),
        MAX_RELATIVE: float(ratio.max()),
        ONE_THOUSANDTH: float((ratio < 0.001).mean()),
        FIVE_THOUSANDTHS: float((ratio < 0.005).mean()),
    }


def random(dtype: str, shape: tuple[int, ...], scale: float = 3.0) -> np.ndarray:
    values = np.random.standard_normal(shape) * scale
    if dtype.startswith("complex"):
        values = values + 1j * np.random.standard_normal(shape)
    return (
        (values > 0) if dtype == "bool" else np.abs(values).astype(dtype) if dtype[0] == "u" else values.astype(dtype)
    )


@pytest.mark.parametrize("shape", [(7,), (300, 401), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_metrics_equal_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    golden = random(dtype, shape)
    target = (
        random(dtype, shape) if dtype[0] in "iub" else (golden * (1 + 3e-3 * random("float32", shape))).astype(dtype)
    )
    difference = tensor_difference(target, golden)
    assert difference.metrics == pytest.approx(plain(target, golden), rel=1e-12)
    wide = golden.astype(np.complex128)
    assert difference.relative_l2 == pytest.approx(
        np.linalg.norm(target.astype(np.complex128) - wide) / np.linalg.norm(wide), rel=1e-12
    )
    assert difference.golden_rms == pytest.approx(math.sqrt(np.mean(np.abs(wide) ** 2)), rel=1e-12)


def test_two_dtypes_and_strides() -> None:
    golden = random("float32", (64, 33))
    target = np.asfortranarray(golden.astype(np.float16))[::2]
    assert tensor_difference(target, golden[::2]).metrics == pytest.approx(plain(target, golden[::2]), rel=1e-12)


@given(
    arrays.arrays(np.float32, st.integers(1, 40), elements=st.floats(-1e6, 1e6, width=32)),
    st.lists(st.sampled_from([0.0, 1.0, -1.0, 1e-3, float("nan"), float("inf"), float("-inf")]), max_size=40),
)
def test_equal_arrays_differ_by_nothing(values: np.ndarray, odd: list[float]) -> None:
    """Also with the same NaN and infinities on both sides."""
    values[: len(odd)] = odd[: len(values)]
    difference = tensor_difference(values, values.copy())
    metrics = dict(difference.metrics)
    cosine = metrics.pop(COSINE)
    assert cosine is Missing.SINGLE if values.size == 1 else cosine == pytest.approx(1.0, abs=1e-12)
    assert metrics == {EUCLIDEAN: 0, MAX_ABSOLUTE: 0, MAX_RELATIVE: 0, ONE_THOUSANDTH: 1, FIVE_THOUSANDTHS: 1}
    assert difference.relative_l2 == 0


def test_shared_non_finite_places_count_as_zeros_and_inputs_stay() -> None:
    golden = random("float32", (50,))
    target = golden + np.float32(0.01)
    for array in (golden, target):
        array[[3, 4, 5]] = np.nan, np.inf, -np.inf
    kept = golden.copy(), target.copy()
    golden.flags.writeable = target.flags.writeable = False
    found = tensor_difference(target, golden).metrics
    zeroed = [np.where(np.isfinite(array), array, 0) for array in (target, golden)]
    assert found == pytest.approx(plain(*zeroed), rel=1e-12)
    np.testing.assert_array_equal(golden, kept[0])
    np.testing.assert_array_equal(target, kept[1])


@pytest.mark.parametrize(
    ("target", "golden"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (np.inf, -np.inf), (np.nan, np.inf)]
)
@pytest.mark.parametrize("place", [0, 20_000])
def test_one_sided_non_finite_places_cannot_be_measured(target: float, golden: float, place: int) -> None:
    one, other = np.ones(30_000, np.float32), np.ones(30_000, np.float32)
    one[place], other[place] = target, golden
    difference = tensor_difference(one, other)
    assert set(difference.metrics.values()) == {Missing.NON_FINITE}
    assert difference.relative_l2 == math.inf


def test_other_shapes_and_empty() -> None:
    shaped = tensor_difference(np.ones((2, 3)), np.ones((3, 2)))
    assert set(shaped.metrics.values()) == {Missing.SHAPE}
    assert shaped.relative_l2 == math.inf
    empty = tensor_difference(np.ones((0, 3)), np.ones((0, 3)))
    assert set(empty.metrics.values()) == {Missing.EMPTY}
    assert empty.relative_l2 == 0
    assert list(empty.metrics) == list(TENSOR_METRICS)


def test_scalars_have_only_absolute_and_relative_error() -> None:
    scalar = tensor_difference(np.float32(2.5).reshape(()), np.float32(2.0).reshape(()))
    assert scalar.metrics == {
        COSINE: Missing.SCALAR,
        EUCLIDEAN: Missing.SCALAR,
        MAX_ABSOLUTE: 0.5,
        MAX_RELATIVE: 0.25,
        ONE_THOUSANDTH: Missing.SCALAR,
        FIVE_THOUSANDTHS: Missing.SCALAR,
    }
    assert scalar.relative_l2 == 0.25
    assert tensor_difference(np.array([2.5]), np.array([2.0])).metrics[COSINE] is Missing.SINGLE


def test_cosine_of_zeros() -> None:
    zeros, ones = np.zeros(4, np.float32), np.ones(4, np.float32)
    assert tensor_difference(zeros, zeros).metrics[COSINE] == 1.0
    one_zero = tensor_difference(ones, zeros)
    assert one_zero.metrics[COSINE] is Missing.ZERO_VECTOR
    assert one_zero.relative_l2 == math.inf
    # golden == 0: both get the epsilon of the golden's dtype, so |1| / eps.
    assert one_zero.metrics[MAX_RELATIVE] == 1 / np.finfo(np.float32).eps
