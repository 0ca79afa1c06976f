"""Pictures of two tensors: a difference stands in its tile, a value in its cell, and none is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msprobe_ms.arrays import pictures
from msprobe_ms.arrays.pictures import difference_map, scatter

SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=150)


def test_one_element_that_differs_is_one_tile() -> None:
    golden = np.zeros((2, 100, 640), np.float32)
    target = golden.copy()
    target[1, 30, 500] = -3.0
    found = difference_map(target, golden)
    assert found.tiles.shape == (64, 64)
    ((row, column),) = np.argwhere(found.tiles)
    assert (row, column) == (130 * 64 // 200, 50)
    assert (found.low, found.high) == (3.0, 3.0)


def test_sizes_are_steps_of_a_logarithm() -> None:
    golden = np.zeros((1, 4))
    found = difference_map(np.array([[0.0, 1.0, 10.0, 100.0]]), golden)
    assert found.tiles.tolist() == [[0, 1, 128, 254]] or found.tiles.tolist() == [[0, 1, 127, 254]]
    assert (found.low, found.high) == (1.0, 100.0)


@pytest.mark.parametrize(
    ("target", "golden", "tile"),
    [(np.nan, 1.0, 255), (np.inf, 1.0, 255), (np.nan, np.nan, 0), (np.inf, np.inf, 0), (np.inf, -np.inf, 255)],
)
def test_what_is_not_finite_on_one_side_has_no_size(target: float, golden: float, tile: int) -> None:
    assert difference_map(np.array([target]), np.array([golden])).tiles.tolist() == [[tile]]


@given(st.data(), SHAPES)
def test_a_map_is_the_largest_difference_of_each_tile(data: st.DataObject, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    target, golden = generator.standard_normal((2, *shape))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "_BLOCK", 256)
        found = difference_map(target, golden)
    error = np.abs(target - golden).reshape(-1, shape[-1] if shape else 1)
    assert found.high == error.max()
    highest = np.unravel_index(found.tiles.argmax(), found.tiles.shape)
    rows, columns = error.shape
    place = np.unravel_index(error.argmax(), error.shape)
    edges = [np.linspace(0, n, min(n, 64) + 1).astype(int) for n in (rows, columns)]
    tile = tuple(int(np.searchsorted(edge, at, "right")) - 1 for edge, at in zip(edges, place, strict=True))
    assert found.tiles[tile] == found.tiles[highest] == 254


@given(arrays.arrays(np.float32, st.integers(1, 200)), st.integers(0, 9))
def test_every_pair_of_finite_values_is_counted_once(golden: np.ndarray, seed: int) -> None:
    target = np.random.default_rng(seed).permutation(golden)
    finite = np.isfinite(golden) & np.isfinite(target)
    found = scatter(target, golden)
    if found is None:
        assert not finite.any()
        return
    assert found.golden.sum() == found.target.sum() == finite.sum()
    assert found.low == min(target[finite].min(), golden[finite].min())
    assert found.high == max(target[finite].max(), golden[finite].max())


def test_a_value_is_in_the_bin_that_begins_at_or_below_it() -> None:
    edges = np.linspace(-3.1, 7.3, pictures.SIDE + 1)
    values = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), [-9.0, 9.0]])
    bins = np.clip(np.searchsorted(edges, values, "right") - 1, 0, pictures.SIDE - 1)
    np.testing.assert_array_equal(pictures._bins(values, edges), bins)


def test_equal_values_lie_on_the_diagonal() -> None:
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float16)
    found = scatter(values, values)
    assert found is not None
    assert not (found.counts - np.diag(np.diag(found.counts))).any()


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16])
def test_tensors_of_every_real_dtype(dtype: type) -> None:
    golden, target = np.ones((3, 3), dtype), np.zeros((3, 3), dtype)
    assert difference_map(target, golden).high == 1.0
    assert scatter(target, golden) is not None
