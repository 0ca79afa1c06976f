"""Deviations of many rows are those of single ones; tensors that a mask has filled, and casts to a narrower float.

Scores that a mask has filled: beside -1e9 all else is rounding, and yet a fault in it is seen. A cast to a narrower
float is told from two figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_parts import dump, tensor
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.deviation import (
    StatisticColumns,
    is_filled,
    rounded_on_one_side,
    statistic_deviation,
)
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.comparison.statistics import is_broadcast
from msprobe_ms.dump.columns import ItemSlice, ItemTable
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.reading.reader import read_dump

FIGURES = st.floats() | st.integers() | st.booleans() | st.text(max_size=3) | st.none()
SORTS = st.tuples(
    st.sampled_from(["tensor", "value", "null"]), st.text(max_size=3), st.sampled_from(["Float32", "Int64", None]),
    st.none() | st.lists(st.integers(0, 5), max_size=3).map(tuple) | st.text(max_size=3), st.none() | st.booleans(),
)  # fmt: skip
PLACES = st.tuples(
    st.sampled_from(["input", "output"]), st.lists(st.text(max_size=2), max_size=2).map(tuple), st.booleans()
)
ITEMS = st.tuples(
    PLACES, SORTS, st.tuples(FIGURES, FIGURES, FIGURES, FIGURES), st.none() | st.text(max_size=3),
    st.none() | st.text(max_size=3),
)  # fmt: skip


@given(st.lists(ITEMS, max_size=12))
def test_items_come_out_as_they_went_in(added: list) -> None:
    table = ItemTable()
    for number, (place, sort, figures, checksum, file) in enumerate(added):
        table.begin(f"entry{number}")
        table.add(place, sort, figures, checksum, file)
    for number, (place, sort, figures, checksum, file) in enumerate(added):
        expected = Item(f"entry{number}", *place, *sort[:4], *figures, sort[4], checksum, file)
        assert repr(table.item(number)) == repr(expected)
        assert repr(table.item(number)) == repr(expected)  # once more, kept
        assert (table.state(number), table.sort(number)) == (place[0], sort)
    assert len(table) == len(added)


def test_more_items_than_are_kept_at_hand() -> None:
    table = ItemTable()
    table.begin("entry")
    for number in range(2000):
        table.add(("output", (str(number),), False), ("tensor", "t", "Float32", (number,), None), (float(number),) * 4)
    items = ItemSlice(table, 100, 1900)
    assert [item.maximum for item in items] == [float(number) for number in range(100, 1900)]
    assert [items[place].maximum for place in (0, 300, 0, -1)] == [100.0, 400.0, 100.0, 1899.0]
    assert [item.maximum for item in items[1::600]] == [101.0, 701.0, 1301.0]


#: Of a few tensors, float32 and float64.
SKETCHES = [
    encode(sketch(np.full(40, size, dtype)), np.dtype(dtype))
    for dtype, size in [(np.float32, 1.0), (np.float64, 1.0), (np.float32, 1.00001), (np.float32, 1e29)]
]

WIDE = st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1e300, 5e-324])


@given(
    st.lists(
        st.tuples(
            *[WIDE] * 8, st.sampled_from([(), (0,), (3,), (4, 5), "text"]),
            st.sampled_from(["Float32", "Int64", "torch.float16"]), st.sampled_from([0.0, 1e-3, 10.0]),
            st.tuples(*[st.sampled_from([None, "damaged", *SKETCHES])] * 2),
            st.booleans(),
        ),
        min_size=1, max_size=8,
    )
)  # fmt: skip
def test_deviations_by_column_are_those_one_by_one(rows: list) -> None:
    tables = ItemTable(), ItemTable()
    for table in tables:
        table.begin("entry")
    floors = []
    for *figures, shape, dtype, floor, sketches, reshaped in rows:
        for side, table in enumerate(tables):
            other = (*shape[::-1], 1) if reshaped and side and isinstance(shape, tuple) else shape
            sort = ("tensor", "t", dtype, other, None)
            own = tuple(figures[4 * side : 4 * side + 4])
            table.add(("output", (), False), sort, own, sketch=sketches[side])
        floors.append(floor)
    numbers = range(len(rows))
    found = StatisticColumns(*tables).deviations(numbers, numbers, floors)
    expected = [
        statistic_deviation(tables[0].item(number), tables[1].item(number), floor)
        for number, floor in zip(numbers, floors, strict=True)
    ]
    assert found == pytest.approx(expected, rel=1e-14, nan_ok=True)
    assert not np.isnan(found).any()


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("figures", ["sketch", "statistics", "elements"])
def test_values_below_the_smallest_normal_number_may_be_some_of_its_steps_apart(
    tmp_path: Path, figures: str, steps: int
) -> None:
    """As gradients of float16 that nobody scaled are: a few steps of 2^-24 large, each rounded to one of them."""
    draw = np.random.default_rng(4)
    gradient = (draw.integers(-4, 5, 256) * 2.0**-24).astype(np.float16)
    other = (gradient + steps * draw.choice([-1, 0, 1], 256) * 2.0**-24).astype(np.float16)
    name = "Cell.fc.Dense.parameters_grad.0"

    def one(values: np.ndarray, side: str) -> Dump:
        item = tensor("parameters_grad.weight", values, name)
        if figures == "sketch":
            item = item._replace(sketch=encode(sketch(values), values.dtype))
        if figures == "elements":
            (tmp_path / side / "dump_tensor_data").mkdir(parents=True)
            np.save(tmp_path / side / "dump_tensor_data" / f"{item.data_name}", values)
        return dump([item], folder=tmp_path / side)

    mode = "tensor" if figures == "elements" else "statistics"
    target, golden = one(other, "target"), one(gradient, "golden")
    (row,) = compare_dumps(replace(target, mode=mode), replace(golden, mode=mode), Options()).rows
    expected = np.linalg.norm(other.astype(float) - gradient.astype(float)) / 16 / 2.0**-14
    assert row.deviation is not None and row.tolerance is not None and row.deviation <= row.tolerance
    if figures != "statistics":
        assert expected / 2 <= row.deviation <= (2 if figures == "sketch" else 1.001) * expected


def test_what_one_side_alone_loses_by_being_narrow_counts_whole() -> None:
    lost = tensor("output.0", np.zeros(64, np.float16))
    kept = tensor("output.0", np.full(64, 1e-8, np.float32))
    assert statistic_deviation(lost, kept) == pytest.approx(1.0)


def sketched(values: np.ndarray, **changed: Any) -> Item:
    return tensor("output.0", values, sketch=encode(sketch(values), values.dtype), **changed)


@pytest.mark.parametrize("change", [lambda x: np.roll(x, 1), lambda x: x[::-1], lambda x: x.reshape(32, 32).T.ravel()])
def test_an_order_that_no_statistic_shows_is_measured(change: Callable[[np.ndarray], np.ndarray]) -> None:
    golden = np.random.randn(1024).astype(np.float32)
    target = np.ascontiguousarray(change(golden))
    exact = np.linalg.norm(target - golden) / np.linalg.norm(golden)
    assert statistic_deviation(tensor("output.0", target), tensor("output.0", golden)) < 1e-6
    assert statistic_deviation(sketched(target), sketched(golden)) == pytest.approx(exact, rel=0.5)


def test_elements_of_another_shape_are_taken_for_those_of_another_order() -> None:
    golden = np.random.randn(6, 4).astype(np.float32)
    turned = np.ascontiguousarray(golden.T)
    assert statistic_deviation(sketched(turned), sketched(golden)) < 1e-6
    assert statistic_deviation(sketched(turned), sketched(golden.reshape(4, 6))) > 0.1
    assert statistic_deviation(sketched(turned), sketched(golden.reshape(4, 1, 6))) > 0.1


def written(folder: Path, values: np.ndarray, mode: str) -> Dump:
    name = "Cell.bias.Bias.forward.0"
    folder.mkdir(parents=True)
    made = dump([tensor("output.0", values, name, data_name="0.npy")], folder=folder)
    (folder / "dump_tensor_data").mkdir()
    np.save(folder / "dump_tensor_data" / "0.npy", values)
    made.mode = mode
    return made


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
@pytest.mark.parametrize(("small", "large"), [((1, 5, 3), (4, 5, 3)), ((5, 3), (4, 5, 3)), ((4, 1, 3), (4, 5, 3))])
@pytest.mark.parametrize("exchanged", [False, True])
def test_a_tensor_beside_the_one_it_is_broadcast_to(
    tmp_path: Path, mode: str, small: tuple[int, ...], large: tuple[int, ...], exchanged: bool
) -> None:
    golden = np.random.randn(*small).astype(np.float32)
    for number, factor in enumerate((1.0, 1.01)):
        both = [golden * np.float32(factor), np.ascontiguousarray(np.broadcast_to(golden, large))]
        folders = [tmp_path / str(number) / each for each in ("target", "golden")]
        sides = [
            written(folder, array, mode) for folder, array in zip(folders, both[:: -1 if exchanged else 1], strict=True)
        ]
        comparison = compare_dumps(*sides, Options())
        (row,) = comparison.rows
        assert row.deviation == pytest.approx(factor - 1, abs=2e-4)
        assert comparison.verdict == ("consistent" if factor == 1 else "divergent")


@pytest.mark.parametrize(("shape", "other"), [((2, 3), (4, 3)), ((1,), (4, 3)), ((4,), (4, 3)), ((2, 6), (3, 4))])
def test_other_shapes_are_not_broadcast(shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    assert not is_broadcast(shape, other)


def test_a_sketch_of_a_gradient_that_cancels_is_held_against_its_floor() -> None:
    golden = np.random.randn(100).astype(np.float32)
    target, rms = golden + np.float32(1e-3), float(np.sqrt((golden.astype(float) ** 2).mean()))
    found = statistic_deviation(sketched(target), sketched(golden), floor=100 * rms)
    assert found == pytest.approx(1e-3 / (100 * rms), rel=0.5)


FILLS = [-1e9, -1e4, -65504.0, float(np.finfo(np.float32).min)]


def scores(fill: float, scale: float = 1.0) -> np.ndarray:
    values = scale * np.random.default_rng(0).standard_normal((4, 16, 16))
    return np.where(np.tri(16, dtype=bool), values, fill).astype(np.float32)


def softmax(array: np.ndarray) -> np.ndarray:
    powers = np.exp(array.astype(np.float64) - array.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


def write_dump(folder: Path, mode: str, filled: np.ndarray) -> Path:
    """Scores, a softmax of them, and what comes before: equal on both sides."""
    tensors = folder / "dump_tensor_data"
    tensors.mkdir(parents=True)

    def leaf(name: str, array: np.ndarray) -> dict[str, object]:
        wide = array.astype(np.float64)
        figures = wide.max(), wide.min(), wide.mean(), np.sqrt((wide**2).sum())
        found: dict[str, object] = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": list(array.shape)}
        found |= dict(zip(("Max", "Min", "Mean", "Norm"), map(float, figures), strict=True))
        if mode == "tensor":
            np.save(tensors / f"{name}.npy", array)
            found["data_name"] = f"{name}.npy"
        return found

    before = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    name, call = "Cell.attention.Attention.forward.0", "Functional.softmax.0.forward"
    data = {
        name: {"input_args": [leaf(f"{name}.input.0", before)], "input_kwargs": {}, "output": []},
        call: {
            "input_args": [leaf(f"{call}.input.0", filled)],
            "input_kwargs": {},
            "output": [leaf(f"{call}.output.0", softmax(filled))],
        },
    }
    content = {"task": mode, "level": "mix", "framework": "mindspore", "data": data}
    (folder / "dump.json").write_text(json.dumps(content))
    (folder / "construct.json").write_text(json.dumps({name: None, call: name}))
    return folder


def compared(tmp_path: Path, mode: str, target: np.ndarray, golden: np.ndarray) -> Comparison:
    sides = [write_dump(tmp_path / side, mode, array) for side, array in (("target", target), ("golden", golden))]
    return compare_dumps(*map(read_dump, sides), Options())


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
@pytest.mark.parametrize("fill", FILLS)
def test_a_missing_scale_before_a_softmax_is_not_the_softmaxs(tmp_path: Path, mode: str, fill: float) -> None:
    comparison = compared(tmp_path, mode, scores(fill, 2.0), scores(fill))
    (origin,) = comparison.origins
    assert origin.target == "Functional.softmax.0.forward.input.0"


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
@pytest.mark.parametrize("fill", FILLS)
def test_rounding_beside_a_fill_is_no_difference(tmp_path: Path, mode: str, fill: float) -> None:
    golden = scores(fill)
    rounding = 1e-7 * np.random.default_rng(2).standard_normal(golden.shape)
    target = (golden * np.where(golden == np.float32(fill), 1, 1 + rounding)).astype(np.float32)
    assert compared(tmp_path, mode, target, golden).origins == []


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
def test_another_mask_is_seen(tmp_path: Path, mode: str) -> None:
    golden = scores(-1e9)
    target = golden.copy()
    target[:, -1, :4] = -1e9
    (origin,) = compared(tmp_path, mode, target, golden).origins
    assert origin.target == "Functional.softmax.0.forward.input.0"


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
@pytest.mark.parametrize("fill", [-3e38, -6e8, -9.9e8])
def test_another_fill_is_seen_and_has_no_effect_where_what_is_computed_from_it_agrees(
    tmp_path: Path, mode: str, fill: float
) -> None:
    comparison = compared(tmp_path, mode, scores(fill), scores(-1e9))
    name = "Functional.softmax.0.forward.input.0"
    row = next(row for row in comparison.rows if row.target is not None and row.target.name == name)
    assert row.explained_by == "results agree"
    assert row.deviation is not None and row.tolerance is not None and row.deviation > row.tolerance
    assert comparison.verdict == "consistent"


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
@pytest.mark.parametrize("fills", [(-np.inf, -1e9), (-1e9, -np.inf)])
def test_infinity_fills_as_a_large_number_does(tmp_path: Path, mode: str, fills: tuple[float, float]) -> None:
    target, golden = map(scores, fills)
    right = compared(tmp_path / "right", mode, target, golden)
    row = next(row for row in right.rows if row.target and row.target.name == "Functional.softmax.0.forward.input.0")
    assert (right.verdict, row.deviation) == ("consistent", 0)
    (origin,) = compared(tmp_path / "wrong", mode, np.where(target > -1e8, 1.1 * target, target), golden).origins
    assert origin.target == "Functional.softmax.0.forward.input.0"


@pytest.mark.parametrize("exchanged", [False, True])
def test_statistics_filled_with_infinity_beside_a_large_number_are_told_by_the_largest_element(exchanged: bool) -> None:
    both = [tensor("input.0", scores(fill).astype(np.float32)) for fill in (-np.inf, -1e9)]
    target, golden = both[::-1] if exchanged else both
    assert statistic_deviation(target, golden) == 0
    assert statistic_deviation(target._replace(maximum=1.01 * target.maximum), golden) == pytest.approx(0.01, rel=1e-3)
    tables = ItemTable(), ItemTable()
    for table, item in zip(tables, (target, golden), strict=True):
        table.begin("entry")
        for factor in (1.0, 1.01 if item is target else 1.0):
            figures = (factor * item.maximum, item.minimum, item.mean, item.norm)
            table.add(("input", ("0",), False), ("tensor", "t", "Float32", item.shape, None), figures)
    found = StatisticColumns(*tables).deviations([0, 1], [0, 1], [0.0, 0.0])
    assert found == [0.0, pytest.approx(0.01, rel=1e-3)]


@pytest.mark.parametrize(
    "extremes",
    [(3.0, -3.0), (1.0, 1e-9), (0.0, -1e9), (50.0, -1e3), (float("nan"), -1e9), (3.0, -np.inf), (None, None)],
)
def test_what_is_no_fill(extremes: tuple[float | None, float | None]) -> None:
    assert not is_filled(*extremes)


def test_filled_scores_beside_a_tensor_of_another_shape_are_told_by_their_shapes(tmp_path: Path) -> None:
    (origin,) = compared(tmp_path, "tensor", scores(-1e9)[:, :, :8], scores(-1e9)).origins
    assert "has shape [4, 16, 8] against [4, 16, 16]" in origin.reason


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
