"""Weights that hold what another parameter should, and numbers that are none."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msprobe_ms.cli.main import main
from msprobe_ms.weights.model import Weight
from msprobe_ms.weights.swapped import Holders

Tensors = dict[str, np.ndarray]


def net() -> Tensors:
    random = np.random.default_rng(5)
    made = {
        f"layers.{layer}.{part}.weight": random.standard_normal((16, 16), np.float32)
        for layer in range(3)
        for part in ("q", "k", "v")
    }
    return {**made, "head.bias": np.zeros(16, np.float32), "head.scale": np.ones(16, np.float32)}


def compared(folder: Path, target: Tensors, golden: Tensors, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """The table by parameter, and what was printed."""
    for name, tensors in (("target", target), ("golden", golden)):
        np.savez(folder / f"{name}.npz", **tensors)
    sides = [str(folder / f"{name}.npz") for name in ("target", "golden")]
    assert main(["compare_weights", *sides, "-o", str(folder / "out"), "--csv", "--exit-code"]) == 1
    (table,) = (folder / "out").glob("compare_weights_*.csv")
    with table.open(newline="") as file:
        return {row["Target Name"]: row for row in csv.DictReader(file)}, capsys.readouterr().out


def test_two_that_were_exchanged_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden, target = net(), net()
    one, other = "layers.1.q.weight", "layers.2.q.weight"
    target[one], target[other] = golden[other].astype(np.float16), golden[one]
    rows, text = compared(tmp_path, target, golden, capsys)
    assert rows[one]["Note"] == f"float16 against float32; exchanged with {other}"
    assert rows[other]["Note"] == f"exchanged with {one}"
    assert f"these look exchanged: {one} and {other}\n" in text
    assert text.count("exchanged with") == 3, "of the first that differs, and of both that are furthest apart"


def test_three_that_went_round_and_one_that_was_loaded_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden, target = net(), net()
    q, k, v = (f"layers.0.{part}.weight" for part in "qkv")
    target[q], target[k], target[v] = golden[k], golden[v], golden[q]
    target["layers.2.k.weight"] = golden["layers.1.k.weight"]
    rows, text = compared(tmp_path, target, golden, capsys)
    assert [rows[name]["Note"] for name in (q, k, v)] == [f"holds what the golden has as {name}" for name in (k, v, q)]
    assert rows["layers.2.k.weight"]["Note"] == "holds what the golden has as layers.1.k.weight"
    assert f"these look exchanged: {q} and {k} and {v}\n" in text


def test_constants_and_what_only_resembles_are_nobody_elses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden, target = net(), net()
    target["head.bias"], target["head.scale"] = golden["head.scale"], golden["head.bias"]
    target["layers.0.q.weight"] = golden["layers.1.q.weight"] * np.float32(1.001)
    rows, text = compared(tmp_path, target, golden, capsys)
    assert "exchanged" not in text and "holds what" not in json.dumps(rows)


def test_nan_is_called_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden, target = net(), net()
    golden["head.scale"][2] = np.inf
    target["layers.0.q.weight"][0, :3] = np.nan
    rows, text = compared(tmp_path, target, golden, capsys)
    told = "NaN in 3 elements of the target and 0 of the golden, of 256"
    assert rows["layers.0.q.weight"]["Note"] == told
    assert f"  layers.0.q.weight: no relative deviation; {told}\n" in text
    assert rows["head.scale"]["Note"] == "infinity in 0 elements of the target and 1 of the golden, of 16"


def test_no_column_is_always_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden, target = net(), net()
    target["layers.0.q.weight"] *= np.float32(1.5)
    rows, _ = compared(tmp_path, target, golden, capsys)
    row = rows["layers.0.q.weight"]
    assert [*row][9:-2] == [
        "Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio",
    ]  # fmt: skip
    assert all(row.values())


def test_many_of_one_shape_that_all_differ_are_found_each_by_its_own() -> None:
    count = 1_000
    golden = np.random.default_rng(7).standard_normal((count, 16))
    golden[:, 0] = 0.0  # as padding is in all of them
    target = np.roll(golden, 1, axis=0)
    target[::3] *= 1.5
    names = [f"layers.{number}.weight" for number in range(count)]
    holders = Holders()
    for name, mine, theirs in zip(names, target, golden, strict=True):
        weights = (Weight(name, "float64", array.shape, lambda array=array: array) for array in (mine, theirs))
        holders.note(*weights, mine, theirs)
    found = holders.find(names)
    assert found == {name: names[number - 1] for number, name in enumerate(names) if number % 3}
