"""Every metric equals plain numpy's on the same tensors, whatever their dtype, shape and non-finite places."""

from __future__ import annotations

import math

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from array_metrics import plain_divergence
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.arrays.metrics import (
    ACCUMULATED_RELATIVE,
    COSINE,
    EUCLIDEAN,
    FIVE_THOUSANDTHS,
    KL_DIVERGENCE,
    MAX_ABSOLUTE,
    MAX_RELATIVE,
    MEAN_ABSOLUTE,
    MEAN_RELATIVE,
    MORE_METRICS,
    ONE_THOUSANDTH,
    RELATIVE_EUCLIDEAN,
    ROOT_MEAN_SQUARE,
    STANDARD_DEVIATION,
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


# The metrics beyond those of msprobe -------------------------------------------------------------------------------


def plain_more(target: np.ndarray, golden: np.ndarray) -> dict[str, float]:
    """The same for the others; ``np.longdouble`` where the formula cancels."""
    epsilon = np.finfo(golden.dtype if golden.dtype.kind in "fc" else np.float64).eps
    wide = np.complex128 if golden.dtype.kind == "c" else np.float64
    t, g = target.astype(wide).ravel(), golden.astype(wide).ravel()
    error, size = np.abs(t - g), np.abs(g)
    return {
        ACCUMULATED_RELATIVE: float(error.sum() / size.sum()),
        RELATIVE_EUCLIDEAN: float(np.linalg.norm(t - g) / np.linalg.norm(g)),
        MEAN_ABSOLUTE: float(error.mean()),
        ROOT_MEAN_SQUARE: float(np.sqrt((error**2).mean())),
        MEAN_RELATIVE: float((error / np.where(g == 0, epsilon, size)).mean()),
        STANDARD_DEVIATION: float(np.std(t - g)),
    }


@pytest.mark.parametrize("shape", [(7,), (300, 401), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_more_metrics_equal_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    golden = random(dtype, shape)
    target = (
        random(dtype, shape) if dtype[0] in "iub" else (golden * (1 + 3e-3 * random("float32", shape))).astype(dtype)
    )
    found = tensor_difference(target, golden, more=True).metrics
    assert list(found) == [*TENSOR_METRICS, *MORE_METRICS]
    assert {name: found[name] for name in TENSOR_METRICS} == tensor_difference(target, golden).metrics
    divergence = found.pop(KL_DIVERGENCE)
    assert {name: found[name] for name in found if name in MORE_METRICS} == pytest.approx(
        plain_more(target, golden), rel=1e-12
    )
    if dtype.startswith("complex"):
        assert divergence is Missing.COMPLEX
    else:
        assert divergence == pytest.approx(plain_divergence(target, golden), rel=1e-10, abs=1e-14)


_ANY = st.one_of(st.floats(-1e3, 1e3), st.floats(-1e200, 1e200), st.sampled_from([0.0, 5e-324, 1e-200, -1e-310]))


@given(arrays.arrays(np.float64, 24, elements=_ANY), arrays.arrays(np.float64, 24, elements=_ANY))
def test_every_metric_of_any_doubles(golden: np.ndarray, target: np.ndarray) -> None:
    """Against the formulas in long doubles, which neither overflow nor underflow here."""
    found = tensor_difference(target, golden, more=True).metrics
    t, g = target.astype(np.longdouble), golden.astype(np.longdouble)
    error, size = np.abs(t - g), np.abs(g)
    norms = np.sqrt((t**2).sum()), np.sqrt((g**2).sum())
    ratio = error / np.where(g == 0, np.finfo(np.float64).eps, size)
    expected = {
        EUCLIDEAN: np.sqrt((error**2).sum()),
        MAX_ABSOLUTE: error.max(),
        MEAN_ABSOLUTE: error.mean(),
        ROOT_MEAN_SQUARE: np.sqrt((error**2).mean()),
    }
    if size.any():
        expected |= {RELATIVE_EUCLIDEAN: expected[EUCLIDEAN] / norms[1], ACCUMULATED_RELATIVE: error.sum() / size.sum()}
    if ratio.max() < 1e300:
        expected |= {MAX_RELATIVE: ratio.max(), MEAN_RELATIVE: ratio.mean()}
    if min(norms) > 1e-15:
        assert found[COSINE] == pytest.approx(float((t * g).sum() / norms[0] / norms[1]), abs=1e-9)
    # Beside 1e200 the smallest numbers vanish from sums, as they do from numpy's.
    largest = max(float(error.max()), float(size.max()))
    for name, value in expected.items():
        if float(value) > 1e-290 * largest or value == 0:
            assert found[name] == pytest.approx(float(value), rel=1e-6, abs=0), name
    assert found[ONE_THOUSANDTH] == float((ratio < 0.001).mean())
    assert found[FIVE_THOUSANDTHS] == float((ratio < 0.005).mean())


@given(arrays.arrays(np.float32, st.integers(2, 40), elements=st.floats(-1e6, 1e6, width=32)))
def test_equal_arrays_have_no_error_of_any_kind(values: np.ndarray) -> None:
    found = tensor_difference(values, values.copy(), more=True).metrics
    assert [found[name] for name in MORE_METRICS] == pytest.approx([0] * len(MORE_METRICS), abs=1e-12)


def test_more_metrics_where_there_is_nothing_to_sum() -> None:
    zeros, ones = np.zeros(4, np.float32), np.ones(4, np.float32)
    found = tensor_difference(ones, zeros, more=True).metrics
    assert found[ACCUMULATED_RELATIVE] == found[RELATIVE_EUCLIDEAN] == math.inf
    assert set(tensor_difference(ones[:0], zeros[:0], more=True).metrics.values()) == {Missing.EMPTY}
    assert set(tensor_difference(ones, zeros[:2], more=True).metrics.values()) == {Missing.SHAPE}
    scalar = tensor_difference(np.float32(2.5).reshape(()), np.float32(2.0).reshape(()), more=True).metrics
    assert [scalar[name] for name in MORE_METRICS] == [0.25, 0.25, Missing.SCALAR, 0.5, 0.5, 0.25, 0.0]


# The ends of the number line ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e-310, 1.7e308])
def test_squares_beyond_double_precision(scale: float) -> None:
    """Squares of 1e200 overflow, those of 1e-200 vanish; the metrics are those of the same numbers near 1."""
    golden = np.linspace(0.25, 1, 10_000) * scale
    target = golden * (1 + 1e-3 * np.cos(np.arange(10_000)))
    found, near_one = (
        tensor_difference(target / by, golden / by, more=True) for by in (1, 1e-310 if scale < 1e-300 else scale)
    )
    rel = 1e-9 if scale > 1e-300 else 1e-3
    for name in (EUCLIDEAN, MAX_ABSOLUTE, MEAN_ABSOLUTE, ROOT_MEAN_SQUARE):
        assert found.metrics[name] == pytest.approx(near_one.metrics[name] * scale, rel=rel, abs=0)
    for name in (RELATIVE_EUCLIDEAN, ACCUMULATED_RELATIVE):
        assert found.metrics[name] == pytest.approx(near_one.metrics[name], rel=rel, abs=0)
    assert found.relative_l2 == pytest.approx(near_one.relative_l2, rel=rel, abs=0)
    assert found.metrics[COSINE] == 1.0 if scale < 1 else found.metrics[COSINE] == pytest.approx(1.0, abs=1e-6)


def test_opposite_ends_of_double_precision() -> None:
    golden = np.full(3, 1.7e308)
    found = tensor_difference(-golden, golden, more=True)
    assert found.relative_l2 == found.metrics[ACCUMULATED_RELATIVE] == 2
    assert found.metrics[COSINE] == -1
    assert found.metrics[MAX_ABSOLUTE] == math.inf  # 3.4e308 has no double


def test_denormal_halves_and_infinities_at_one_place() -> None:
    golden = np.array([6e-8, 6e-8, np.inf, -np.inf, 1], np.float16)
    target = np.array([6e-8, 1.2e-7, np.inf, -np.inf, 1], np.float16)
    found = tensor_difference(target, golden, more=True).metrics
    assert found[MAX_ABSOLUTE] == 2.0**-24
    assert found[MAX_RELATIVE] == 1
    assert found[ONE_THOUSANDTH] == 0.8


@pytest.mark.parametrize(
    ("dtype", "golden", "target", "error"),
    [
        ("int64", 2**53, 2**53 + 1, 1),
        ("int64", 2**62, 2**62 - 3, 3),
        ("int64", -(2**63), 2**63 - 1, 2.0**64),
        ("uint64", 2**64 - 1, 2**64 - 2, 1),
        ("uint64", 0, 2**64 - 1, 2.0**64),
    ],
)
def test_whole_numbers_without_a_double_of_their_own(dtype: str, golden: int, target: int, error: float) -> None:
    one, other = (np.array([number, 5], dtype) for number in (target, golden))
    found = tensor_difference(one, other, more=True)
    assert found.metrics[MAX_ABSOLUTE] == error and found.relative_l2 > 0
    assert tensor_difference(one, one.copy()).relative_l2 == 0


def test_signed_beside_unsigned() -> None:
    found = tensor_difference(np.array([2**63 - 1, -1]), np.array([2**63, 2**64 - 1], np.uint64))
    assert found.metrics[MAX_ABSOLUTE] == 2.0**64


def test_complex_nan_is_nan_whatever_its_parts() -> None:
    golden = np.array([complex(np.nan, 1), complex(np.inf, 2), 1 + 1j, 2])
    target = np.array([complex(2, np.nan), complex(np.inf, 2), 1 + 1j, 2 + 1e-3j])
    found = tensor_difference(target, golden, more=True)
    assert found.metrics[MAX_ABSOLUTE] == 1e-3
    target[1] = complex(2, np.inf)
    assert set(tensor_difference(target, golden).metrics.values()) == {Missing.NON_FINITE}
