"""A tensor file that is not what dump.json says of it is told, and what was recorded is compared in its place."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from compare_parts import dump, tensor
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msprobe_ms.comparison.measuring.tensors import load_both
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.reporting.terminal import verdict_lines
from msprobe_ms.comparison.run import Options, Outcome, compare_dumps
from msprobe_ms.comparison.statistics import contradiction
from msprobe_ms.dump.model import Dump

ENTRIES = [f"Cell.layer{number}.Dense.forward.0" for number in range(4)]
HELD = np.float32([[1, -2], [3, 4], [0, 0.5]])


def recorded(folder: Path, framework: str = "mindspore") -> Dump:
    (folder / "dump_tensor_data").mkdir(parents=True)
    items = [tensor("output.0", HELD + number, entry) for number, entry in enumerate(ENTRIES)]
    for number, item in enumerate(items):
        np.save(folder / "dump_tensor_data" / str(item.data_name), HELD + np.float32(number))
    made = dump(items, framework, folder)
    made.mode = "tensor"
    return made


def file_of(folder: Path, number: int) -> Path:
    return folder / "dump_tensor_data" / f"{ENTRIES[number]}.output.0.npy"


@pytest.mark.parametrize("side", ["target", "golden"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HELD[:1], "it has shape [1, 2], recorded is [3, 2]"),
        (HELD.T, "it has shape [2, 3], recorded is [3, 2]"),
        (np.where(HELD == 3, np.float32(np.nan), HELD), "it holds NaN, the recorded statistics are finite"),
        (np.where(HELD == 3, np.float32(-np.inf), HELD), "it holds infinity, the recorded statistics are finite"),
        (HELD + 3, "its Max is 7, recorded is 4"),
        (np.maximum(HELD, 0), "its Min is 0, recorded is -2"),
    ],
)
def test_a_file_that_contradicts_is_told_and_its_figures_stand_in(
    content: np.ndarray, said: str, side: str, tmp_path: Path
) -> None:
    target, golden = recorded(tmp_path / "target"), recorded(tmp_path / "golden")
    file = file_of(tmp_path / side, 0)
    np.save(file, content)
    comparison = compare_dumps(target, golden, Options())
    lines = list(verdict_lines(Outcome("", target, golden, comparison, [])))
    told = "1 of 4 tensors are not what dump.json says of them; their statistics were compared instead, which show less"
    assert lines[lines.index(told) + 1] == f"  the first: {file}: {said}"
    assert lines[0].startswith("CONSISTENT")
    rows = list(comparison.rows)
    reason = f"Real data not compared, as a file contradicts dump.json: {file}: {said}"
    assert [row.reason for row in rows] == [reason, "", "", ""]
    assert [row.result for row in rows] == ["agrees"] * 4
    assert load_both(target.tensors, golden.tensors, rows[0]) is None


def test_two_kinds_of_trouble_are_counted_apart(tmp_path: Path) -> None:
    target, golden = recorded(tmp_path / "target"), recorded(tmp_path / "golden")
    np.save(file_of(tmp_path / "target", 1), HELD[:1])
    file_of(tmp_path / "target", 2).unlink()
    lines = list(verdict_lines(Outcome("", target, golden, compare_dumps(target, golden, Options()), [])))
    assert lines[2].startswith("1 of 4 tensors could not be read; ")
    assert lines[4].startswith("1 of 4 tensors are not what dump.json says of them; ")


def test_a_fault_that_was_recorded_is_no_contradiction(tmp_path: Path) -> None:
    """The file holds what the figures say: it is measured."""
    target, golden = recorded(tmp_path / "target"), recorded(tmp_path / "golden")
    wrong = np.where(HELD == 3, np.float32(np.nan), HELD)
    np.save(file_of(tmp_path / "target", 0), wrong)
    entry = target.entries[ENTRIES[0]]
    (item,) = entry.items
    entry.items = [item._replace(maximum=math.nan, minimum=math.nan, mean=math.nan, norm=math.nan)]
    comparison = compare_dumps(target, golden, Options())
    assert comparison.verdict == "divergent"
    assert not any("dump.json" in line for line in verdict_lines(Outcome("", target, golden, comparison, [])))


def test_nan_that_a_device_left_out_of_max_and_min_is_no_contradiction() -> None:
    array = np.float32([1, np.nan, 3])
    left_out = tensor("output.0", array, maximum=3.0, minimum=1.0, mean=math.nan, norm=math.nan)
    assert contradiction(left_out, array) == ""


@given(
    arrays.arrays(
        st.sampled_from(["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
def test_what_was_recorded_never_contradicts_its_file(array: np.ndarray) -> None:
    if array.dtype.kind == "c":
        item = tensor("output.0", np.abs(array))._replace(dtype="Complex64")
    else:
        with np.errstate(all="ignore"):
            item = tensor("output.0", array)
    rounded = {
        name: float(np.float32(value))
        for name in ("maximum", "minimum", "mean", "norm")
        if isinstance(value := getattr(item, name), float) and abs(value) < 3e38
    }
    assert contradiction(item, array) == ""
    assert contradiction(item._replace(**rounded), array) == ""
    assert contradiction(item._replace(shape=(1, *array.shape)), array) == ""
    assert contradiction(item._replace(shape=None, maximum=None, minimum=None, mean=None, norm=None), array) == ""


def test_the_tensors_of_a_row_without_contradiction_are_loaded(tmp_path: Path) -> None:
    target, golden = recorded(tmp_path / "target"), recorded(tmp_path / "golden")
    row = Row(target.entries[ENTRIES[3]].items[0], golden.entries[ENTRIES[3]].items[0])
    loaded = load_both(target.tensors, golden.tensors, row)
    assert loaded is not None
    np.testing.assert_array_equal(loaded[0], HELD + 3)
