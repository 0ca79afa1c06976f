"""Sketches: the same for the same elements in the same order, and how near their distance comes to that of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msprobe_ms.arrays import sketch as sketches
from msprobe_ms.arrays.sketch import cosine, decode, distance, encode, inner_product, sketch
from msprobe_ms.arrays.sketch_map import BLOCK, LENGTH
from msprobe_ms.arrays.statistics import ChunkedStatistics, statistics, statistics_and_sketch, summary

#: Rounding of a float32 sketch, relative to the norm of the tensor.
ROUNDING = 1e-6

#: Where the map of elements to numbers changes its form.
SIZES = (1, 16, 17, 511, 512, 513, 8191, 8192, 8704, 40000, BLOCK, BLOCK + 1, 2 * BLOCK + 8192 + 512 + 3)

#: The sketch of ``arange(2 * BLOCK + 8192 + 700) % 251 - 125``.
MAP = [
    -1049.0411, 5424.3039, -5614.2224, -11665.7164, 6183.4458, -2943.1006, -17512.3579, -589.9373,
    8434.8806, 446.9348, -1346.0046, 4183.1510, -9836.2675, 14910.7536, -3003.1157, 4690.4453,
]  # fmt: skip

generator = np.random.default_rng(20240811)


def known(array: np.ndarray) -> np.ndarray:
    found = sketch(array)
    assert found is not None
    return found


def near(one: np.ndarray, other: np.ndarray, norm: float, rounding: float = ROUNDING) -> bool:
    return distance(one, other) <= rounding * norm


# The map -------------------------------------------------------------------------------------------------------------


def test_the_map_is_the_one_of_all_releases() -> None:
    """Dumps of other machines and releases are compared by it: whoever changes it has to change the key."""
    assert known(np.arange(2 * BLOCK + 8192 + 700) % 251 - 125.0) == pytest.approx(MAP, abs=1e-4)


@pytest.mark.parametrize("size", SIZES)
def test_a_sketch_is_linear(size: int) -> None:
    one, other = generator.normal(size=(2, size))
    both = 2 * known(one) - 3 * known(other)
    assert near(known(2 * one - 3 * other), both, float(np.linalg.norm(both)), 1e-12)


@given(st.sampled_from(SIZES), st.data())
@settings(max_examples=40, deadline=None)
def test_a_single_element_keeps_its_size(size: int, data: st.DataObject) -> None:
    array = np.zeros(size)
    array[data.draw(st.integers(0, size - 1))] = -2.5
    assert distance(known(array), np.zeros(LENGTH)) == pytest.approx(2.5, rel=1e-12)


@given(hnp.arrays(np.float64, st.integers(1, LENGTH), elements=st.floats(-1e9, 1e9)))
def test_few_elements_are_their_own_sketch(array: np.ndarray) -> None:
    assert distance(known(array), np.zeros(LENGTH)) == pytest.approx(float(np.linalg.norm(array)))


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int32, np.bool_, np.complex64]),
        hnp.array_shapes(max_dims=4, max_side=12),
        elements={"allow_nan": False, "allow_infinity": False},
    )
)
@settings(deadline=None)
def test_neither_shape_nor_strides_matter(array: np.ndarray) -> None:
    expected = sketch(array)
    strided = np.asfortranarray(array)
    backwards = array[::-1].copy()[::-1]
    for same in (array.reshape(-1), strided, backwards, np.repeat(array, 2, axis=-1)[..., ::2]):
        assert np.array_equal(sketch(same), expected)
        assert summary(same)[1] == summary(array)[1]


@pytest.mark.parametrize("size", [3, 100, 5000, 40000, 200_000])
def test_the_order_matters(size: int) -> None:
    array = generator.normal(size=size)
    norm = float(np.linalg.norm(array))
    assert distance(known(array), known(np.roll(array, 1))) > 0.5 * norm
    assert distance(known(array), known(array[::-1])) > 0.2 * norm
    assert statistics(array)[:2] == statistics(np.roll(array, 1))[:2]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "?", "c8"])
@given(st.lists(st.integers(1, 90_000), min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_parts_have_the_sketch_of_the_whole(dtype: str, sizes: list[int]) -> None:
    whole = (np.random.default_rng(sum(sizes)).normal(size=sum(sizes)) * 3).astype(dtype)
    cut = np.split(whole, np.cumsum(sizes)[:-1])
    found = ChunkedStatistics(iter(cut), md5=True, sketch=True)
    assert found.sketch is not None
    one, other = decode(found.sketch), known(whole)
    assert one is not None and near(one, other, float(np.linalg.norm(whole.astype("c16"))))
    assert ChunkedStatistics(iter(cut), md5=False, sketch=False).sketch is None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [1.0, 1e-20, 3e38, 1e-30])
def test_float32_rounds_far_below_any_tolerance(size: int, scale: float) -> None:
    array = (generator.uniform(-1, 1, size) * scale).astype(np.float32)
    exact = array.astype(np.float64)
    norm = float(np.linalg.norm(exact))
    statistic, numbers = statistics_and_sketch(array)
    assert numbers is not None and near(numbers, known(exact), norm)
    assert statistic.mean == pytest.approx(exact.mean(), abs=ROUNDING * norm / math.sqrt(size))
    decoded = decode(encode(numbers, array.dtype))
    assert decoded is not None and near(decoded, known(exact), norm)


@pytest.mark.parametrize("size", SIZES)
def test_integers_are_exact(size: int) -> None:
    """One token of thousands that is off by one."""
    array = generator.integers(0, 150_000, size)
    other = array.copy()
    other[size // 2] += 1
    found = [decode(summary(each)[1] or "") for each in (array, other)]
    assert found[0] is not None and found[1] is not None
    assert distance(found[0], found[1]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(0), np.array([1, np.nan]), np.full(9000, np.inf), np.r_[np.zeros(70_000), -np.inf],
        np.array([1, np.nan], np.complex64), np.array(np.nan, np.float32), np.array(["a"]),
    ],
)  # fmt: skip
def test_what_has_no_distance_has_no_sketch(array: np.ndarray, recwarn: pytest.WarningsRecorder) -> None:
    assert sketch(array) is None
    assert summary(array)[1] is None
    assert str(summary(array)[0]) == str(statistics(array))
    assert not recwarn.list


# The text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "length"), [("f2", 88), ("f4", 88), ("?", 88), ("c8", 88), ("f8", 172), ("i8", 172)])
def test_the_text_holds_sixteen_numbers(dtype: str, length: int) -> None:
    array = generator.normal(size=900).astype(dtype)
    text = encode(known(array), array.dtype)
    assert len(text) == length
    decoded = decode(text)
    assert decoded is not None and near(decoded, known(array), float(np.linalg.norm(known(array))), 1e-7)


@pytest.mark.parametrize("text", ["", "AAAA", "=", "ä" * 88, "A" * 87, encode(np.full(LENGTH, np.nan), np.dtype("f4"))])
def test_a_text_that_is_none_is_told(text: str) -> None:
    assert decode(text) is None


# The estimate --------------------------------------------------------------------------------------------------------


def ratio(one: np.ndarray, other: np.ndarray) -> float:
    return distance(known(one), known(other)) / float(np.linalg.norm(one - other))


def within(draw: Callable[[], float], draws: int = 60) -> float:
    """The share of draws in which the estimate is 0.4 to 1.9 of the distance."""
    return sum(0.4 < draw() < 1.9 for _ in range(draws)) / draws


def changed(shape: tuple[int, ...], change: Callable[[np.ndarray], np.ndarray]) -> Callable[[], float]:
    def draw() -> float:
        array = generator.normal(size=shape)
        return ratio(array, change(array.copy()))

    return draw


def at_one(axis: int, amount: Callable[[tuple[int, ...]], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Something added where one index of an axis is."""

    def change(array: np.ndarray) -> np.ndarray:
        part = np.moveaxis(array, axis, 0)[generator.integers(array.shape[axis])]
        part += amount(part.shape)
        return array

    return change


def halves(array: np.ndarray) -> np.ndarray:
    first, second = np.split(array, 2, axis=-1)
    return np.concatenate((second, first), axis=-1)


def shift(_: tuple[int, ...]) -> np.ndarray:
    return np.array(0.3)


def noise(shape: tuple[int, ...]) -> np.ndarray:
    return generator.normal(size=shape)


STRUCTURES = {
    "all of random size": lambda: changed((int(generator.integers(17, 200_000)),), lambda array: array + 0.3)(),
    "one feature of 256": changed((4, 16, 256), at_one(-1, shift)),
    "one feature of 768": changed((2, 128, 768), at_one(-1, shift)),
    "one feature of 4096": changed((16, 4096), at_one(-1, shift)),
    "features of 256": changed((32, 256), lambda array: array + noise((256,))),
    "features of 768": changed((2, 128, 768), lambda array: array + noise((768,))),
    "features of 4096": changed((32, 4096), lambda array: array + noise((4096,))),
    "channels": changed((8, 64, 14, 14), lambda array: array + noise((64, 1, 1))),
    "one channel of few": changed((2, 64, 8, 8), at_one(1, shift)),
    "one channel of many": changed((4, 256, 16, 16), at_one(1, shift)),
    "one sample": changed((8, 64, 14, 14), at_one(0, noise)),
    "one sample, shifted": changed((8, 128, 64), at_one(0, shift)),
    "one token of 768": changed((2, 128, 768), at_one(1, noise)),
    "roll by one": changed((4, 128, 256), lambda array: np.roll(array, 1)),
    "roll by a row": changed((128, 768), lambda array: np.roll(array, 1, axis=0)),
    "swapped halves of heads": changed((2, 12, 64, 64), halves),
    "permuted heads": changed((2, 12, 64, 64), lambda array: array[:, generator.permutation(12)]),
    "transposed": changed((256, 256), np.transpose),
    "smooth and rolled": lambda: ratio(*((walk := noise((64, 512)).cumsum(-1)), np.roll(walk, 1, axis=-1))),
    "noise of small tensors": lambda: changed((int(generator.integers(17, 9000)),), lambda array: array * 1.01)(),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structured_differences_are_estimated(name: str) -> None:
    assert within(STRUCTURES[name]) >= 0.95


def test_a_difference_within_one_row_is_estimated_more_coarsely() -> None:
    """Three numbers instead of sixteen: 92 of 100 draws."""
    assert within(changed((64, 512), at_one(0, noise)), 200) >= 0.85


@pytest.mark.parametrize("size", [600, 8192, 50_000, 300_000])
def test_the_standard_error_is_the_one_told(size: int) -> None:
    squares = np.array([changed((size,), lambda array: array + noise(array.shape))() ** 2 for _ in range(150)])
    assert squares.mean() == pytest.approx(1, abs=0.12)
    assert squares.std() == pytest.approx(math.sqrt(2 / LENGTH), rel=0.3)


def test_cosine_and_inner_product() -> None:
    array = generator.normal(size=30_000)
    other = array + 0.05 * generator.normal(size=array.size)
    one, two = known(array), known(other)
    true = float(array.dot(other)) / float(np.linalg.norm(array)) / float(np.linalg.norm(other))
    assert cosine(one, two) == pytest.approx(true, abs=(1 - true**2))
    assert cosine(one, one) == pytest.approx(1)
    assert cosine(one, -one) == pytest.approx(-1)
    assert math.isnan(cosine(one, np.zeros(LENGTH)))
    assert inner_product(one, two) == pytest.approx(float(array.dot(other)), rel=1)


# What a device makes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_products_and_sums_give_the_same(size: int) -> None:
    """As `Steps` tells it, here by numpy."""
    array = generator.normal(size=size)
    steps, whole = sketches.steps(), sketches.groups(size)
    sums: list[np.ndarray] = []
    if size <= LENGTH:
        sums.append(array)
    else:
        rows = array[:whole].reshape(-1, *steps.vectors.shape[1:])
        products = np.stack([(rows * vector).sum(-1) for vector in steps.vectors], -1).reshape(-1)
        width = steps.folding.shape[1]
        for start in range(0, products.size, width):
            block = products[start : start + width]
            sums.append((block * steps.folding[:, : block.size]).sum(-1))
        for start in range(whole, size, steps.rest.shape[1]):
            row = array[start : start + steps.rest.shape[1]]
            sums.append((row * steps.rest[:, : row.size]).sum(-1))
    found = decode(sketches.finished_text(np.concatenate(sums), size, array.dtype) or "")
    assert found is not None and near(found, known(array), float(np.linalg.norm(array)), 1e-12)
    assert sketches.finished_text(np.r_[sums[0], np.nan], size, array.dtype) is None
