"""Every kind of value, saved by the real frameworks, compared in every mode and profile: its cells and its reason."""

from __future__ import annotations

import csv
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from recording import step_folder, write_config

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.model import Comparison, Row
from msprobe_ms.comparison.reporting.profiles.base import blocks
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.pytorch import PrecisionDebugger as TorchDebugger

BASE = np.array([[0.5, -1.25], [2, 3]])
CHANGED = np.array([[0.5, -1.25], [2, -4]])
#: What numpy has, both frameworks write and no kernel is needed for.
PLAIN = (
    "float16", "float32", "float64", "complex64", "complex128",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint64",
)  # fmt: skip
NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
MODES = ("statistics", "md5", "tensor")
SIDES = ("mindspore", "pytorch")


def arrays(base: np.ndarray) -> dict[str, np.ndarray]:
    """The plain kinds and the odd places, as numpy holds them."""
    changed = base is CHANGED
    plain = {name: (base + 1j if "complex" in name else np.abs(base) if name[0] == "u" else base) for name in PLAIN}
    kinds = {name: array.astype(name) for name, array in plain.items()}
    kinds["bool"] = base > 1.75
    kinds["same_places"] = np.array([np.nan, np.inf, -np.inf, base[1, 1]], np.float16)
    kinds["other_places"] = np.array([np.nan, 1, 2] if changed else [1, np.nan, 2], np.float32)
    kinds["overflow"] = np.array([1, np.inf if changed else 6e4], np.float16)
    kinds["scalar"] = np.float32(base[1, 1]).reshape(())
    kinds["single"] = np.float32(base[1, 1]).reshape(1)
    kinds["empty"] = np.zeros((0, 3), np.float32)
    kinds["beyond_doubles"] = np.array([2**53 + changed, 5])
    kinds["huge"] = base * 1e200
    kinds["tiny"] = base * 1e-310
    kinds["zeros"] = np.zeros(3, np.float32) + changed
    kinds["other_shape"] = np.ones((2, 3) if changed else (3, 2), np.float32)
    kinds["wider"] = np.ones(3, np.float32 if changed else np.float16)
    kinds["other_kind"] = np.ones(3, np.float32 if changed else np.int32)
    return kinds


def values(side: str, base: np.ndarray) -> dict[str, Any]:
    if side == "mindspore":
        made: dict[str, Any] = {name: mindspore.Tensor(array) for name, array in arrays(base).items()}
        narrow = base.astype(np.float32)
        made |= {name: mindspore.Tensor(narrow, dtype=getattr(mindspore, name)) for name in NARROW}
    else:
        made = {name: torch.tensor(array) for name, array in arrays(base).items()}
        made |= {name: torch.tensor(base).to(getattr(torch, name)) for name in NARROW}
    changed = base is CHANGED
    made["whole"], made["real"], made["flag"] = 3 + changed, 1.5 + changed, changed
    made["text"], made["nothing"], made["several"] = "sum" if changed else "mean", None, [1, 2 + changed]
    return made


class Dumps:
    """Each side's dump of each mode, of the values and of the changed ones."""

    def __init__(self, folder: Path) -> None:
        self._read: dict[tuple[str, str, bool], Dump] = {}
        for side, mode, changed in product(SIDES, MODES, (False, True)):
            where = folder / f"{side}_{mode}_{changed}"
            task = "tensor" if mode == "tensor" else "statistics"
            section = {"summary_mode": "md5"} if mode == "md5" else {}
            maker = PrecisionDebugger if side == "mindspore" else TorchDebugger
            debugger = maker(write_config(where, task=task, level="debug", **section))
            for name, value in values(side, CHANGED if changed else BASE).items():
                debugger.save(value, name, save_backward=False)
            debugger.step()
            self._read[side, mode, changed] = read_dump(step_folder(where) / "debug.json")

    def compared(self, target: str, golden: str, mode: str, *, changed: bool, profile: str = "own") -> Comparison:
        sides = self._read[target, mode, changed], self._read[golden, mode, False]
        comparison = compare_dumps(*sides, Options(profile=profile))
        assert comparison.mode == mode
        return comparison


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Dumps:
    return Dumps(tmp_path_factory.mktemp("kinds"))


def rows(comparison: Comparison) -> dict[str, Row]:
    return {row.target.entry.partition(".")[0]: row for row in comparison.rows if row.target is not None}


@pytest.mark.parametrize("profile", ["own", "latest", "v110"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("target", "golden"), list(product(SIDES, SIDES)))
def test_equal_values_agree(dumps: Dumps, target: str, golden: str, mode: str, profile: str) -> None:
    comparison = dumps.compared(target, golden, mode, changed=False, profile=profile)
    assert comparison.verdict == "consistent"
    found = rows(comparison)
    assert len(found) == len(values(target, BASE))
    for name, row in found.items():
        assert not row.differs and row.colour in ("", "red" if profile == "v110" else ""), name
        assert row.result in ("agrees", "not compared", "pass", "", "Yes", "None"), name
    if profile == "own":
        # Empty tensors and nothing at all have no figures; a checksum or the file will do for the empty one.
        alone = {name for name, row in found.items() if row.result == "not compared"}
        assert alone == ({"nothing", "empty"} if mode == "statistics" else {"nothing"})
        assert found["empty"].reason == "Both are empty."
        where = "at the same places as the golden" if mode == "tensor" else "as the golden"
        assert found["same_places"].reason == f"It holds NaN, {where}."
        said = {name for name, row in found.items() if row.reason}
        assert said == {"nothing", "empty", "same_places", "other_places"}


#: What figures cannot tell: one place of a NaN from another, what stands beside it, 2^53 from 2^53 + 1, which are true.
_STATISTICS_ALIKE = {"other_places", "same_places", "beyond_doubles"}


@pytest.mark.parametrize("profile", ["own", "latest"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("target", "golden"), list(product(SIDES, SIDES)))
def test_changed_values_differ(dumps: Dumps, target: str, golden: str, mode: str, profile: str) -> None:
    across = target != golden
    comparison = dumps.compared(target, golden, mode, changed=True, profile=profile)
    assert comparison.verdict == "divergent"
    found = rows(comparison)
    agreeing = {"nothing", "empty", "wider", "other_shape"}
    if across:
        agreeing |= {"whole", "real", "flag", "text", "several"}  # plain arguments are not judged across frameworks
    if mode == "statistics" or (mode == "md5" and across):
        agreeing |= _STATISTICS_ALIKE
    assert {name for name, row in found.items() if not row.differs} == agreeing
    for name, row in found.items():
        if row.differs:
            assert row.reason and row.colour, name
            assert row.result in ("origin", "differs", "inherited", "error", "warning"), name
    if profile == "own":
        # A save that differs inherits from the one before it that does.
        reasons = {name: re.sub(", inherited from .*", ".", row.reason) for name, row in found.items()}
        assert reasons["other_shape"] == "The shapes differ: [2, 3] and [3, 2]."
        kinds = [dtype_text(golden_or, name) for golden_or, name in ((target, "float32"), (golden, "int32"))]
        assert reasons["other_kind"] == f"The dtypes differ in kind: {kinds[0]} and {kinds[1]}."
        assert reasons["overflow"] == "It holds infinity, the golden is finite."
        widths = [dtype_text(side, name) for side, name in ((target, "float32"), (golden, "float16"))]
        assert reasons["wider"] == f"The dtypes differ: {widths[0]} and {widths[1]}."
        if mode == "tensor":
            assert reasons["other_places"] == "NaN or infinity stand at other places than in the golden."
            assert reasons["zeros"] == "It differs from a golden of zeros."
        if not across:
            assert reasons["text"] == "It is sum here and mean in the golden."


def dtype_text(side: str, name: str) -> str:
    return f"torch.{name}" if side == "pytorch" else name.capitalize()


@pytest.mark.parametrize(("target", "golden"), list(product(SIDES, SIDES)))
def test_cells_of_real_data(dumps: Dumps, target: str, golden: str) -> None:
    """Metrics equal numpy's on what was saved, whatever wrote it."""
    comparison = dumps.compared(target, golden, "tensor", changed=True)
    columns = Options().report.columns("tensor", stack=False)
    cells = {
        block.lines[0].target.entry.partition(".")[0]: {column.title: column.cells(block)[0] for column in columns}
        for block in blocks(comparison, 1)
    }
    ours, theirs = arrays(CHANGED), arrays(BASE)
    for name in (*PLAIN, "bool", "huge"):
        wide = np.complex128 if "complex" in name else np.float64
        t, g = ours[name].astype(wide), theirs[name].astype(wide)
        assert cells[name]["MaxAbsErr"] == pytest.approx(np.abs(t - g).max(), rel=1e-12, abs=0), name
        assert cells[name]["AccumulatedRelativeError"] == pytest.approx(np.abs(t - g).sum() / np.abs(g).sum()), name
        norm = np.linalg.norm(g / np.abs(g).max()) * np.abs(g).max()
        assert cells[name]["Deviation"] == pytest.approx(np.abs(t - g).max() / norm), name  # one element differs
    for name in NARROW:  # the values are exact in all of these
        assert cells[name]["MaxAbsErr"] == 7 and cells[name]["Deviation"] == cells["float32"]["Deviation"]
    assert cells["tiny"]["RelativeEuclideanDistance"] == pytest.approx(cells["float64"]["RelativeEuclideanDistance"])
    assert cells["beyond_doubles"]["MaxAbsErr"] == 1
    assert cells["complex64"]["KullbackLeiblerDivergence"] == "complex"
    assert cells["same_places"]["MaxAbsErr"] == 7
    assert cells["other_places"]["Cosine"] == "non-finite places differ"
    assert cells["other_shape"]["Cosine"] == "shape differs" and cells["other_shape"]["Deviation"] == 0
    assert cells["empty"]["RootMeanSquareError"] == "empty" and cells["empty"]["Deviation"] == 0
    assert cells["scalar"]["Cosine"] == "scalar" and cells["scalar"]["MeanRelativeError"] == pytest.approx(7 / 3)
    assert cells["single"]["Cosine"] == "single element" and cells["single"]["EucDist"] == 7
    assert cells["zeros"]["Cosine"] == "one side is zero" and cells["zeros"]["AccumulatedRelativeError"] == "inf"
    assert cells["whole"]["Cosine"] is None


@pytest.mark.parametrize(("target", "golden"), list(product(SIDES, SIDES)))
def test_accuracy_of_1_1_0(dumps: Dumps, target: str, golden: str) -> None:
    found = rows(dumps.compared(target, golden, "tensor", changed=True, profile="v110"))
    results = {name: row.result for name, row in found.items()}
    for name in (*PLAIN, *NARROW):
        assert results[name] == ("Yes" if name[0] == "u" else "No"), name  # 4 beside 3 and -4 beside 3
    unequal = {"other_places": "No", "other_shape": "Unmatched", "overflow": "No", "huge": "No"}
    unjudged = dict.fromkeys(("scalar", "single", "empty", "zeros", "whole", "text", "nothing"), "None")
    assert {name: results[name] for name in unequal | unjudged} == unequal | unjudged
    assert found["other_shape"].reason == "The shapes differ: [2, 3] and [3, 2]."
    assert found["other_places"].reason == "NaN or infinity stand at other places than in the golden."
    assert found["wider"].reason.startswith("The dtypes differ: ")


@pytest.mark.parametrize("mode", MODES)
def test_hifloat8_beside_float32(tmp_path: Path, mode: str) -> None:
    """A format of Ascend's own, recorded and read as the numbers it holds."""
    dumps = []
    for name, array, dtype in (("h", CHANGED, mindspore.hifloat8), ("f", BASE, mindspore.float32)):
        section = {"summary_mode": "md5"} if mode == "md5" else {}
        task = "tensor" if mode == "tensor" else "statistics"
        debugger = PrecisionDebugger(write_config(tmp_path / name, task=task, level="debug", **section))
        debugger.save(mindspore.Tensor(array.astype(np.float32), dtype=dtype), "changed", save_backward=False)
        debugger.save(mindspore.Tensor(BASE.astype(np.float32), dtype=dtype), "same", save_backward=False)
        debugger.step()
        dumps.append(read_dump(step_folder(tmp_path / name) / "debug.json"))
    found = rows(compare_dumps(*dumps, Options()))
    assert (found["same"].result, found["same"].reason) == ("agrees", "The dtypes differ: HiFloat8 and Float32.")
    assert found["changed"].result == "origin"
    if mode == "tensor":
        assert found["changed"].deviation == pytest.approx(7 / np.linalg.norm(BASE))


# Files that are no good ----------------------------------------------------------------------------------------------


def leaf(array: np.ndarray, name: str) -> dict[str, Any]:
    return {
        "type": "mindspore.Tensor", "dtype": "Float32", "shape": list(array.shape), "Max": float(array.max()),
        "Min": float(array.min()), "Mean": float(array.mean()), "Norm": float(np.linalg.norm(array)), "data_name": name,
    }  # fmt: skip


def written_dump(folder: Path, factor: float) -> Path:
    """Four tensors of one call: .npy, .pt, .bin, and a .npy that a test damages."""
    data = folder / "dump_tensor_data"
    data.mkdir(parents=True)
    array = np.linspace(1, 2, 1000, dtype=np.float32) * np.float32(factor)
    np.save(data / "a.npy", array)
    torch.save(torch.tensor(array), data / "b.pt")
    array.tofile(data / "c.bin")
    np.save(data / "d.npy", array)
    leaves = [leaf(array, name) for name in ("a.npy", "b.pt", "c.bin", "d.npy")]
    entry = {"input_args": leaves, "input_kwargs": {}, "output": []}
    content = {"task": "tensor", "level": "L1", "framework": "mindspore", "data": {"Functional.relu.0.forward": entry}}
    (folder / "dump.json").write_text(json.dumps(content))
    return folder


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize("profile", ["own", "latest", "v110"])
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (truncated, "takes 4000 bytes, 872 are there"),
        (lambda path: path.write_bytes(b""), "the .npy header is damaged"),
        (lambda path: path.write_bytes(b"\x93NUMPY\x01\x00" + b"\xff" * 200), "the .npy header is damaged"),
        (lambda path: np.save(path, np.array([{}])), "accepted are numbers"),
        (Path.unlink, "no such file"),
    ],
)
def test_a_damaged_file_costs_its_own_row(tmp_path: Path, damage: Any, told: str, profile: str) -> None:
    target, golden = written_dump(tmp_path / "t", 1.5), written_dump(tmp_path / "g", 1)
    damage(target / "dump_tensor_data" / "d.npy")
    out = tmp_path / "out"
    command = ["compare", "-tp", str(target), "-gp", str(golden), "-o", str(out), "--csv", "--profile", profile]
    assert main(command) == 0
    (table,) = out.glob("*.csv")
    with table.open(encoding="utf-8", newline="") as file:
        *whole, damaged = csv.DictReader(file)
    assert [float(row["MaxAbsErr"]) for row in whole] == [1.0] * 3
    assert damaged["MaxAbsErr"] == {"own": "no data", "latest": "unsupported", "v110": "None"}[profile]
    reason = damaged["Reason" if profile == "own" else "Err_message"]
    assert told in reason
