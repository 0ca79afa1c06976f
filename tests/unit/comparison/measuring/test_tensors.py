"""Tensors measured by processes: what one process finds, whatever becomes of the files and of the workers."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from large_files import LARGE, large_npy

from msprobe_ms.comparison.measuring import tensors as real_data
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.pairing.rules.files import load_mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.reading.reader import read_dump

TENSORS = 12


def write_dump(folder: Path, scale: float) -> Path:
    tensors = folder / "dump_tensor_data"
    tensors.mkdir(parents=True)
    data = {}
    for number in range(TENSORS):
        array = np.random.default_rng(number).standard_normal((7, 11)).astype(np.float32)
        array *= scale if number > TENSORS // 2 else 1
        name = f"Functional.relu.{number}.forward"
        figures = array.max(), array.min(), array.mean(), np.linalg.norm(array)
        leaf = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [7, 11], "data_name": f"{name}.output.0.npy"}
        leaf |= dict(zip(("Max", "Min", "Mean", "Norm"), map(float, figures), strict=True))
        data[name] = {"input_args": [], "input_kwargs": {}, "output": [leaf]}
        np.save(tensors / str(leaf["data_name"]), array)
    (folder / "dump.json").write_text(
        json.dumps({"task": "tensor", "level": "L1", "framework": "mindspore", "data": data})
    )
    return folder


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few tensors are many here."""
    monkeypatch.setattr(real_data, "_WORTH_PROCESSES", 1)
    monkeypatch.setattr(real_data, "_AT_A_TIME", 200)


def rows(target: Path, golden: Path, *, one_of_many: bool) -> list[Row]:
    return list(compare_dumps(read_dump(target), read_dump(golden), Options(), one_of_many=one_of_many).rows)


def pids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where tensors are measured in this process: in others a change of it does not show."""
    seen: list[int] = []
    plain = real_data.RealData.of

    def of(self: real_data.RealData, pair: real_data.TensorPair) -> real_data.Measured:
        seen.append(os.getpid())
        return plain(self, pair)

    monkeypatch.setattr(real_data.RealData, "of", of)
    return seen


@pytest.mark.processes
def test_processes_find_what_one_finds(tmp_path: Path, many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    target, golden = write_dump(tmp_path / "target", 1.5), write_dump(tmp_path / "golden", 1.0)
    (target / "dump_tensor_data" / "Functional.relu.3.forward.output.0.npy").write_bytes(b"\x93NUMPY")
    (golden / "dump_tensor_data" / "Functional.relu.9.forward.output.0.npy").unlink()
    here = pids(monkeypatch)
    spread = rows(target, golden, one_of_many=False)
    assert not here, "measured elsewhere"
    together = rows(target, golden, one_of_many=True)
    assert len(here) == TENSORS
    assert [(row.measured, row.deviation, row.tolerance, row.result, row.reason) for row in spread] == [
        (row.measured, row.deviation, row.tolerance, row.result, row.reason) for row in together
    ]
    notes = {number: str((row.measured or {}).get(real_data.NOTE)) for number, row in enumerate(spread)}
    assert "the .npy header is damaged" in notes.pop(3)
    assert "no such file" in notes.pop(9)
    assert set(notes.values()) == {"None"}


def test_a_few_tensors_are_not_worth_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = write_dump(tmp_path / "dump", 1.0)
    here = pids(monkeypatch)
    rows(dump, dump, one_of_many=False)
    assert len(here) == TENSORS


def test_single_values_that_a_mapping_puts_beside_each_other_are_measured(tmp_path: Path) -> None:
    """Of calls that have no counterpart as a whole."""
    target, golden = write_dump(tmp_path / "target", 1.5), write_dump(tmp_path / "golden", 1.0)
    text = (golden / "dump.json").read_text()
    (golden / "dump.json").write_text(text.replace('"Functional.relu.', '"Functional.selu.', TENSORS // 2))
    rules = tmp_path / "data.yaml"
    rules.write_text("Functional.relu.1.forward.output.0: Functional.selu.1.forward.output.0\n")
    comparison = compare_dumps(read_dump(target), read_dump(golden), Options(load_mappings(data=rules)))
    measured = [row.target.name for row in comparison.rows if row.target and row.deviation is not None]
    assert "Functional.relu.1.forward.output.0" in measured


def test_weights_of_which_no_shape_is_known_are_told_apart_by_their_files(tmp_path: Path) -> None:
    for side, shape in (("target", (4, 3)), ("golden", (2, 2))):
        folder = tmp_path / side
        (folder / "dump_tensor_data").mkdir(parents=True)
        np.save(folder / "dump_tensor_data" / "w.npy", np.ones(shape, np.float32))
        leaf = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": None, "data_name": "w.npy"}
        body = {"input_args": [], "input_kwargs": {}, "output": [], "parameters": {"weight": leaf}}
        content = {"task": "tensor", "level": "L0", "framework": "mindspore" if side == "target" else "pytorch"}
        prefix = "Cell" if side == "target" else "Module"
        (folder / "dump.json").write_text(json.dumps({**content, "data": {f"{prefix}.conv.Conv.forward.0": body}}))
    comparison = compare_dumps(
        read_dump(tmp_path / "target"), read_dump(tmp_path / "golden"), Options(load_mappings(cell=True))
    )
    assert [row.deviation for row in comparison.rows] == [math.inf]


def test_tensors_are_taken_in_any_order() -> None:
    rows = [Row(None, None) for _ in range(3)]
    measured = [real_data.Measured({"place": number}) for number in range(3)]
    tensors = real_data.MeasuredTensors(zip(rows, measured, strict=True))
    assert [tensors.take(rows[place]) for place in (1, 0, 2)] == [measured[1], measured[0], measured[2]]
    with pytest.raises(KeyError):
        tensors.take(rows[0])


@pytest.mark.processes
def test_a_tensor_larger_than_the_memory_costs_only_itself(tmp_path: Path) -> None:
    folders = [write_dump(tmp_path / side, scale) for side, scale in (("target", 1.5), ("golden", 1.0))]
    for folder in folders:
        content = json.loads((folder / "dump.json").read_text())
        leaf = content["data"]["Functional.relu.0.forward"]["output"][0]
        leaf["shape"] = [LARGE]
        (folder / "dump.json").write_text(json.dumps(content))
        large_npy(folder / "dump_tensor_data" / leaf["data_name"])
    first, *others = [row for row in rows(*folders, one_of_many=False) if row.matched]
    assert "not enough memory" in str(first.metrics[real_data.NOTE])
    assert len(others) == TENSORS - 1 and not any(real_data.NOTE in row.metrics for row in others)
