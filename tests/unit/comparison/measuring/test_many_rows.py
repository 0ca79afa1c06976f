"""Tests that rows measured many at once are what each of them is alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.comparison.measuring import many_rows
from msprobe_ms.comparison.measuring.many_rows import ManyRows
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump


def leaf(figure: float, shape: list[int] | None = None, dtype: str = "torch.float32") -> dict[str, Any]:
    figures = {"Max": figure, "Min": -figure, "Mean": figure / 3, "Norm": 4 * figure}
    return {"type": "torch.Tensor", "dtype": dtype, "shape": [2, 8] if shape is None else shape, **figures}


def written(folder: Path, factor: float, shape: list[int]) -> Dump:
    plain = {"type": "int", "value": int(factor)}
    entries = {
        "Tensor.add.0.forward": {"input_args": [leaf(1.0), plain], "output": [leaf(factor)]},
        "Tensor.mul.0.forward": {"input_args": [leaf(1.0, shape)], "output": [leaf(factor, dtype="torch.int64")]},
        "Tensor.add.0.backward": {"input": [leaf(factor)], "output": [leaf(1.0, shape), leaf(0.5, [3])]},
        "Tensor.sub.0.forward": {"input_args": [plain], "output": [None]},
        f"Tensor.pow.{shape[0]}.forward": {"input_args": [leaf(1.0)], "output": [leaf(factor)]},
    }
    folder.mkdir()
    content = {"task": "statistics", "level": "L1", "framework": "pytorch", "data": entries}
    (folder / "dump.json").write_text(json.dumps(content))
    return read_dump(folder)


@pytest.fixture
def dumps(tmp_path: Path) -> tuple[Dump, Dump]:
    return written(tmp_path / "target", 2.0, [2, 8]), written(tmp_path / "golden", 3.0, [1, 16])


def of_items(pairs: list[Pair]) -> list[Pair]:
    """The same pairs, whose rows hold items of their own, which no columns hold."""
    return [
        Pair(each.target, each.golden, [Row(row.target, row.golden) for row in each.rows], each.how) for each in pairs
    ]


def told(pairs: list[Pair]) -> list[list[Any]]:
    return [
        [each for row in pair.rows for each in (pytest.approx(row.deviation), row.tolerance, row.unread)]
        for pair in pairs
    ]


@pytest.mark.parametrize("at_once", [1, 8192])
def test_rows_are_measured_as_if_each_were_alone(
    dumps: tuple[Dump, Dump], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(many_rows, "_AT_ONCE", at_once)
    many = pair(*dumps, Mappings())
    alone = of_items(many)
    assert measure(many, *dumps, "statistics") is not None
    measure(alone, *dumps, "statistics")
    assert told(many) == told(alone)
    assert sum(row.tolerance is not None for pair in many for row in pair.rows) > 4


def test_pairs_with_other_values_are_left(dumps: tuple[Dump, Dump]) -> None:
    pairs = pair(*dumps, Mappings())
    left = ManyRows(pairs).left().tolist()
    whole = {each.target.name for each, other in zip(pairs, left, strict=True) if each.target and not other}
    assert whole == {"Tensor.mul.0.forward"}
