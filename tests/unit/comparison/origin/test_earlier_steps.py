"""Earlier steps of both dumps, found in the folders beside them and read once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps, same_item
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump

CALL = "Cell.fc.Dense.forward.0"


def recorded(folder: Path, *steps: int) -> Dump:
    """Steps of one side, each with one call; returns the last."""
    for step in steps:
        rank = folder / f"step{step}" / "rank0"
        rank.mkdir(parents=True)
        output = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": step, "Min": 0.0, "Mean": 0.0}
        calls = {CALL: {"input_args": [], "input_kwargs": {}, "output": [{**output, "Norm": float(step)}]}}
        content = {"task": "statistics", "level": "L0", "framework": "mindspore", "dump_data_dir": None, "data": calls}
        (rank / "dump.json").write_text(json.dumps(content))
    return read_dump(rank / "dump.json")


def norms(both: tuple[Dump, Dump] | None) -> list[object]:
    return [next(iter(each.entries[CALL].items)).norm for each in both or ()]


def test_the_step_before_and_the_first_that_both_recorded(tmp_path: Path) -> None:
    target, golden = recorded(tmp_path / "t", 1, 2, 4, 10), recorded(tmp_path / "g", 2, 4, 9, 10)
    earlier = EarlierSteps.of(target, golden)
    assert earlier.before is None  # the target has no step 9
    assert norms(earlier.first) == [2.0, 2.0]
    assert norms(EarlierSteps.of(recorded(tmp_path / "m", 3, 4), recorded(tmp_path / "n", 4)).first) == []
    beside = EarlierSteps.of(recorded(tmp_path / "v", 3, 4), recorded(tmp_path / "w", 3, 4))
    assert norms(beside.before) == [3.0, 3.0]
    assert beside.first is beside.before


def test_figures_of_the_first_step_tell_which_module_is_which_where_the_same_ran(tmp_path: Path) -> None:
    target, golden = recorded(tmp_path / "t", 1, 2), recorded(tmp_path / "g", 1, 2)
    assert norms(EarlierSteps.of(target, golden).of_same_modules(target, golden)) == [1.0, 1.0]
    alone = recorded(tmp_path / "m", 2)
    assert EarlierSteps.of(target, alone).of_same_modules(target, alone) == (target, alone)
    later = dump([tensor("output.0", np.ones(3), "Cell.added.Dense.forward.0")])
    more = replace(golden, entries={**golden.entries, **later.entries})
    assert EarlierSteps.of(target, more).of_same_modules(target, more) == (target, more)


def test_a_step_that_cannot_be_read_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    target, golden = recorded(tmp_path / "t", 0, 1), recorded(tmp_path / "g", 0, 1)
    (tmp_path / "g" / "step0" / "rank0" / "dump.json").write_text("{")
    with caplog.at_level("INFO"):
        assert EarlierSteps.of(target, golden).first is None
    assert "an earlier step is left out: " in caplog.text


def test_a_dump_outside_of_step_folders_has_none() -> None:
    alone = dump([tensor("output.0", np.ones(3), CALL)])
    assert EarlierSteps.of(alone, alone).first is None


def test_the_same_item_of_another_step() -> None:
    one, other = (dump([tensor("output.0", np.full(3, size), CALL)]) for size in (1.0, 2.0))
    (item,) = one.entries[CALL].items
    assert same_item(other, item) is other.entries[CALL].items[0]
    assert same_item(dump([tensor("output.1", np.ones(3), CALL)]), item) is None
    assert same_item(dump([]), item) is None
