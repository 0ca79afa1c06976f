"""A tensor met again is told by what was found before, and never when it has changed."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msprobe_ms.arrays.statistics import StatisticsCache, statistics


@given(st.data())
def test_what_is_told_is_what_there_is(data: st.DataObject) -> None:
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
        figures, checksum = cache.statistics((start, array.nbytes), array)
        assert str(figures) == str(statistics(array))
        assert checksum == zlib.crc32(array.ravel("K").tobytes())


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
