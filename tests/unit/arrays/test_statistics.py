"""Statistics of a tensor equal numpy's, whatever its dtype, shape, memory and values; a tensor met again is known."""

from __future__ import annotations

import tracemalloc
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msprobe_ms.arrays import one_pass
from msprobe_ms.arrays.statistics import StatisticsCache, checksum, statistics, summary

FLOATS = (np.float16, np.float32, np.float64)


def assert_equals_numpy(array: np.ndarray) -> None:
    """Relative to double precision; sums are compared to the sum of magnitudes, which their rounding follows."""
    found = statistics(array)
    exact = np.abs(array).astype(np.float64) if array.dtype.kind == "c" else array.astype(np.float64)
    with np.errstate(all="ignore"):
        assert found.maximum == pytest.approx(float(exact.max()), rel=1e-6, nan_ok=True)
        assert found.minimum == pytest.approx(float(exact.min()), rel=1e-6, nan_ok=True)
        mean, size = float(exact.mean()), float(np.abs(exact).mean())
        assert found.mean == pytest.approx(mean, rel=1e-6, abs=1e-6 * size if np.isfinite(size) else 0.0, nan_ok=True)
        norm = float(np.linalg.norm(exact.reshape(-1)))
        assert found.norm == pytest.approx(norm, rel=1e-6, nan_ok=True)


@given(hnp.arrays(st.sampled_from([*FLOATS, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.complex64]),
                  hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)))  # fmt: skip
def test_any_array(array: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        if array.dtype == np.float64 and np.abs(array).max() > 1e150:
            return  # the norm of such doubles overflows, in numpy as well
        if array.dtype.kind == "c" and not np.isfinite(np.abs(array)).all():
            return
    assert_equals_numpy(array)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 7, 1 << 16, (1 << 16) + 1, 1 << 20])
def test_large_arrays(dtype: type, size: int) -> None:
    assert_equals_numpy((np.random.standard_normal(size) * 3 + 0.5).astype(dtype))


@pytest.mark.parametrize("size", [7, 1000, 1024, 35904, (1 << 20) + 5])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_mean_is_exact_to_two_roundings_whatever_the_size(size: int, offset: float) -> None:
    """numpy's own is off by four where there are a million elements."""
    for seed in range(20):
        array = (np.random.default_rng(seed).standard_normal(size) + offset).astype(np.float32)
        magnitude = float(np.abs(array).mean(dtype=np.float64))
        assert statistics(array).mean == pytest.approx(float(array.mean(dtype=np.float64)), abs=2**-22 * magnitude)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.complex64, np.float32])
def test_no_copy_of_a_large_tensor_is_made(dtype: type) -> None:
    array = np.ones(1 << 24, dtype)
    tracemalloc.start()
    try:
        assert statistics(array) == (1.0, 1.0, 1.0, 4096.0)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_float16_that_overflows_in_float16() -> None:
    array = np.full(1000, 6e4, np.float16)
    found = statistics(array)
    assert found.norm == pytest.approx(float(array[0]) * 1000**0.5, rel=1e-6)
    assert found.mean == pytest.approx(float(array[0]), rel=1e-6)


def test_float32_whose_sums_overflow_in_float32() -> None:
    found = statistics(np.full(1000, 3e38, np.float32))
    assert found.norm == pytest.approx(3e38 * 1000**0.5, rel=1e-6)
    assert found.mean == pytest.approx(3e38, rel=1e-6)


def test_float64_whose_squares_overflow() -> None:
    assert statistics(np.full(1 << 17, 4.28e151)).norm == np.inf


@pytest.mark.parametrize("value", [1e-14, 1e-16, 1e-20, -3e-21, 1e-30, 1e-42])
@pytest.mark.parametrize("size", [3, 65536, 2_000_000])
def test_float32_whose_squares_underflow(value: float, size: int) -> None:
    array = np.full(size, value, np.float32)
    assert statistics(array).norm == pytest.approx(abs(float(array[0])) * size**0.5, rel=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity(dtype: type) -> None:
    nan = statistics(np.array([1, np.nan, 3], dtype))
    assert all(np.isnan(figure) for figure in nan)
    both = statistics(np.array([np.inf, 1, -np.inf], dtype))
    assert both[:2] == (np.inf, -np.inf)
    assert np.isnan(both.mean)
    assert both.norm == np.inf
    assert statistics(np.array([np.inf, 1], dtype)) == (np.inf, 1, np.inf, np.inf)


def test_special_cases_of_the_format() -> None:
    assert statistics(np.zeros((0, 3), np.float32)) == (None, None, None, None)
    assert statistics(np.zeros((), np.float32)) == (0.0, 0.0, 0.0, 0.0)
    assert statistics(np.array(-2, np.int32)) == (-2.0, -2.0, -2.0, -2.0)
    found = statistics(np.array([True, False]))
    assert found == (True, False, None, None)
    assert [type(figure) for figure in found[:2]] == [bool, bool]
    assert statistics(np.array(True)) == (True, True, None, None)
    assert statistics(np.array([3 + 4j, 0], np.complex64)) == (5.0, 0.0, 2.5, 5.0)
    assert statistics(np.array(3 + 4j, np.complex64)) == (5.0, 5.0, 5.0, 5.0)
    assert statistics(np.array([1, 2], np.uint8)) == (2.0, 1.0, 1.5, pytest.approx(5**0.5))
    assert statistics(np.array(["a"])) == (None, None, None, None)


def test_figures_are_plain_numbers() -> None:
    for array in (np.ones(3, np.float16), np.ones(3, np.int64), np.ones((), np.float32)):
        assert all(type(figure) is float for figure in statistics(array))


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T, lambda a: a[::2], lambda a: a[:, ::-1], lambda a: np.broadcast_to(a[0], (5, 8)),
        lambda a: np.asfortranarray(a), lambda a: a[1:-1, 1:-1],
    ],
)  # fmt: skip
def test_memory_layout_does_not_matter(view: object) -> None:
    array = view(np.random.standard_normal((6, 8)).astype(np.float32))  # type: ignore[operator]
    again = np.array(array, order="C", copy=True)
    assert statistics(array) == pytest.approx(tuple(statistics(again)), rel=1e-6)
    assert checksum(array) == checksum(again)
    assert_equals_numpy(array)


def test_the_tensor_is_left_alone() -> None:
    array = np.random.standard_normal(100).astype(np.float32)
    before = array.tobytes()
    array.flags.writeable = False
    statistics(array)
    checksum(array)
    assert array.tobytes() == before


def test_numpy_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    for array in (np.full(9, 6e4, np.float16), np.array([np.nan, np.inf], np.float32), np.full(9, 3e38, np.float32)):
        statistics(array)
    assert not recwarn.list


@given(hnp.arrays(st.sampled_from([*FLOATS, np.int8, np.int64, np.bool_]), hnp.array_shapes(min_dims=0, min_side=0)))
def test_checksum_is_crc32_of_the_bytes(array: np.ndarray) -> None:
    assert checksum(array) == f"{zlib.crc32(array.tobytes()):08x}"


def test_checksum_is_of_little_endian_bytes() -> None:
    array = np.arange(5, dtype=np.int32)
    assert checksum(array.astype(">i4")) == checksum(array)


@pytest.mark.parametrize("size", [1024, 5000, 8192, 20_000, 300_000])
@pytest.mark.parametrize(
    "values", [(np.inf, -np.inf), (3e38, -3e38), (1e-23, 0), (1e-160, 1), (1e305, 1e305), (np.nan, 1)]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numpy_tells_nobody_of_extremes(
    size: int, values: tuple[float, float], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a script has numpy do where numbers overflow, vanish or are none."""
    with np.errstate(all="ignore"):
        array = np.repeat(np.array(values).astype(dtype), size // 2)
    monkeypatch.setattr(one_pass, "_figures", None)
    expected = repr(summary(array))
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert repr(summary(array)) == expected
        assert repr(statistics(array)[:2]) == repr(summary(array)[0][:2])


# A tensor that is met again ------------------------------------------------------------------------------------------


@given(st.data())
def test_the_cache_tells_what_there_is(data: st.DataObject) -> None:
    """Whatever is written to a few places in memory, in whatever dtype, shape and order."""
    cache = StatisticsCache()
    memory = np.zeros(64, np.uint8)
    for _ in range(data.draw(st.integers(1, 12))):
        dtype = np.dtype(data.draw(st.sampled_from(["f4", "f2", "i4", "u1", "?", "f8"])))
        start, count = 8 * data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
        if data.draw(st.booleans()):
            place = data.draw(st.integers(0, 63))
            memory[place] ^= data.draw(st.integers(0, 255)) if dtype.kind != "b" else 0
        array = memory[start:].view("u1")[: count * dtype.itemsize]
        array = (array % 2).astype("?") if dtype.kind == "b" else array.view(dtype)
        if data.draw(st.booleans()):
            array = array.reshape(()) if count == 1 else array.reshape(count, 1).T
        found, text, crc = cache.statistics((start, array.nbytes), array)
        assert str(found) == str(statistics(array))
        assert text == summary(array)[1]
        assert crc == zlib.crc32(array.ravel("K").tobytes())


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=4, max_side=6)))
def test_a_view_of_other_axes_is_the_same(array: np.ndarray) -> None:
    cache = StatisticsCache()
    first = cache.statistics((0, array.nbytes), array)
    assert cache.statistics((0, array.nbytes), array.T) is not None
    assert cache.statistics((0, array.nbytes), array.T)[0] is first[0]
    assert cache.statistics((0, array.nbytes), array.reshape(-1))[0] is first[0]


@pytest.mark.parametrize("change", ["in place", "other memory at the same address"])
def test_a_tensor_that_changed_is_summarised_anew(change: str) -> None:
    cache, array = StatisticsCache(), np.ones((300, 400), np.float32)
    before = cache.statistics((7, array.nbytes), array)[0]
    if change == "in place":
        array[299, 399] = np.nextafter(np.float32(1), np.float32(2))
    else:
        array = np.full((300, 400), 2, np.float32)
    after = cache.statistics((7, array.nbytes), array)[0]
    assert after == statistics(array) != before


def test_a_scalar_is_not_the_array_of_one_that_views_it() -> None:
    cache, scalar = StatisticsCache(), np.array(-0.25, np.float32)
    assert cache.statistics((7, 4), scalar)[0].norm == -0.25
    assert cache.statistics((7, 4), scalar.reshape(1))[0].norm == 0.25
