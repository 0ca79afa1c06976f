"""The index of raw kernel files: every kernel once, in launch order, with its Cell and numpy's figures."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_parts import compared
from kernel_dumps import CELLS, compiled_dump, lay_out, raw_files
from kernel_training import make, train
from recording import recording

from msprobe_ms.comparison.run import Options
from msprobe_ms.dump.kernels.index import recover_kernels, write_index
from msprobe_ms.dump.kernels.kernel_files import read_kernel_files
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DumpFormatError


def index(root: Path, iteration: int = 0, **keys: Any) -> Path:
    folder = root / f"step{iteration}" / "rank0"
    files = read_kernel_files(raw_files(root, f"rank_0/Net/*/{iteration}/*"))
    write_index(folder, files, **{"task": "tensor", "cells": CELLS, **keys})
    return folder


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two trainings that are alike, and one with another epsilon in one LayerNorm."""
    folder = tmp_path_factory.mktemp("index")
    return {
        name: compiled_dump(folder / name, epsilon=epsilon)
        for name, epsilon in (("one", 1e-5), ("other", 1e-5), ("fault", 0.5))
    }


def leaves(body: dict[str, Any]) -> list[dict[str, Any]]:
    sections = (body.get(key, ()) for key in ("input_args", "input", "output"))
    return [leaf for section in sections for leaf in section if leaf is not None]


def test_every_file_is_in_the_index_once_with_its_figures(dumps: dict[str, Path]) -> None:
    folder = index(dumps["one"])
    dump = json.loads((folder / "dump.json").read_text())
    assert (dump["task"], dump["level"], dump["framework"]) == ("tensor", "L2", "mindspore")
    found = Counter(leaf["data_name"] for body in dump["data"].values() for leaf in leaves(body))
    net = dumps["one"] / "rank_0" / "Net"
    assert found == Counter(str(path.relative_to(net)) for path in raw_files(dumps["one"], "rank_0/Net/*/0/*"))
    for body in dump["data"].values():
        for leaf in leaves(body):
            array = np.load(net / leaf["data_name"])
            assert (leaf["dtype"].lower(), leaf["shape"]) == (array.dtype.name, list(array.shape))
            assert leaf["Max"] == array.max() and leaf["Min"] == array.min()
            if array.dtype.kind != "b" and array.ndim:
                assert leaf["Mean"] == pytest.approx(array.mean(dtype=float), rel=1e-5, abs=1e-7)
                assert leaf["Norm"] == pytest.approx(np.linalg.norm(array.astype(float)), rel=1e-5)


def test_entries_are_in_launch_order_and_named_as_in_dynamic_graphs(dumps: dict[str, Path]) -> None:
    data = json.loads((index(dumps["one"]) / "dump.json").read_text())["data"]
    moments = [[leaf["data_name"].split(".")[-6] for leaf in leaves(body)] for body in data.values()]
    assert [min(each) for each in moments] == sorted(min(each) for each in moments)
    assert [name for name in data if ".MatMul." in name] == [
        *(f"Kernel.MatMul.{n}.forward" for n in range(4)),
        *(f"Kernel.MatMul.{n}.backward" for n in range(7)),
    ]
    assert list(data["Kernel.MatMul.0.forward"]) == ["input_args", "input_kwargs", "output", "scope"]
    assert list(data["Kernel.MatMul.0.backward"]) == ["input", "output", "scope"]
    assert data["Kernel.MatMul.0.forward"]["scope"] == "Default/network-WithLossCell/_backbone-Net/fc1-Dense/MatMul-op0"
    parameters = [name for name in data if not name.startswith("Kernel.")]
    assert "Parameter.fc1_weight.0.forward" in parameters and parameters == list(data)[-len(parameters) :]


def test_parents_are_the_cells_of_the_model(dumps: dict[str, Path]) -> None:
    construct = json.loads((index(dumps["one"]) / "construct.json").read_text())
    forward = [parent for name, parent in construct.items() if name.endswith(".forward") and parent]
    assert [parent for parent in dict.fromkeys(forward) if parent.split(".")[1] in ("fc1", "blocks", "head")] == [
        "Cell.fc1.Dense.forward.0",
        *(
            f"Cell.blocks.{block}{cell}.forward.0"
            for block in (0, 1)
            for cell in (".my_fc.Dense", ".norm.LayerNorm", ".act.Tanh", ".Block")
        ),
        "Cell.head.Dense.forward.0",
    ]
    # MindSpore names the gradients of all Dense after the first one.
    backward = [parent for parent in construct.values() if parent and ".Dense.backward." in parent]
    assert list(dict.fromkeys(backward)) == [
        f"Cell.{name}.Dense.backward.0" for name in ("head", "blocks.1.my_fc", "blocks.0.my_fc", "fc1")
    ]
    assert construct["Kernel.TanhGrad.0.backward"] == "Cell.blocks.1.act.Tanh.backward.0"
    # Without the model, the path from the graph's root.
    construct = json.loads((index(dumps["one"], cells=None) / "construct.json").read_text())
    assert construct["Kernel.MatMul.0.forward"] == "Cell.network._backbone.fc1.Dense.forward.0"


def test_file_names_alone_tell_the_same_cells(dumps: dict[str, Path], tmp_path: Path) -> None:
    root = shutil.copytree(dumps["one"], tmp_path / "copy")
    told = (index(root) / "construct.json").read_text()
    shutil.rmtree(root / "rank_0" / "execution_order")
    assert (index(root) / "construct.json").read_text() == told
    # Without the graph, the framework's own idea of where kernels belong.
    shutil.rmtree(root / "rank_0" / "graphs")
    names = json.loads((index(root) / "construct.json").read_text())
    assert names["Kernel.LayerNorm.1.forward"] == "Cell.blocks.1.norm.LayerNorm.forward.0"


def test_the_line_of_a_kernel(dumps: dict[str, Path]) -> None:
    dump = read_dump(index(dumps["one"]))
    for name in ("Kernel.LayerNorm.1.forward", "Kernel.LayerNormGrad.0.backward"):
        user = [frame for frame in dump.entries[name].stack if "kernel_training.py" in frame]
        assert user[0].endswith("return x + self.act(self.norm(self.my_fc(x)))")
        assert re.match(r"File .*/kernel_training\.py, line \d+, in construct, ", user[0])


def test_tensors_are_found_after_the_dump_was_moved(dumps: dict[str, Path], tmp_path: Path) -> None:
    root = shutil.copytree(dumps["one"], tmp_path / "before")
    index(root)
    root.rename(tmp_path / "after")
    dump = read_dump(tmp_path / "after" / "step0" / "rank0")
    items = [item for entry in dump.entries.values() for item in entry.items if item.kind == "tensor"]
    assert dump.mode == "tensor" and len(items) == len(raw_files(tmp_path / "after", "rank_0/Net/*/0/*"))
    for item in items:
        assert dump.tensors.load(item).max() == item.maximum


@pytest.mark.parametrize("name", ["../0/a.npy", "/etc/a.npy", "0/../../a.npy", "0//a.npy", "0/./a.npy", "0\\a.npy"])
def test_no_name_leads_out_of_the_dump(tmp_path: Path, name: str) -> None:
    lay_out(tmp_path / "rank_0/Net/0/0", {"Add.Default_Add-op0.output.0": np.ones(2, np.float32)})
    folder = index(tmp_path)
    text = (folder / "dump.json").read_text()
    old = json.loads(text)["data"]["Kernel.Add.0.forward"]["output"][0]["data_name"]
    (folder / "dump.json").write_text(text.replace(json.dumps(old), json.dumps(name)))
    dump = read_dump(folder)
    with pytest.raises(DumpFormatError, match=r"Kernel\.Add\.0\.forward\.output\.0: data_name"):
        dump.tensors.load(dump.entries["Kernel.Add.0.forward"].items[0])


def test_a_link_out_of_the_dump_is_refused(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "rank_0/Net/0/0", {"Add.Default_Add-op0.output.0": np.ones(2, np.float32)})
    written = index(tmp_path)
    (file,) = folder.iterdir()
    file.rename(tmp_path / "elsewhere.npy")
    file.symlink_to(tmp_path / "elsewhere.npy")
    dump = read_dump(written)
    with pytest.raises(DumpFormatError, match="a link that leaves"):
        dump.tensors.load(dump.entries["Kernel.Add.0.forward"].items[0])


def test_a_jitted_function_names_no_cells_but_parameters_do(tmp_path: Path) -> None:
    root = compiled_dump(tmp_path / "dump", kind="jit")
    folder = index(root)
    construct = json.loads((folder / "construct.json").read_text())
    data = json.loads((folder / "dump.json").read_text())["data"]
    assert not [body["scope"] for body in data.values() if "-Dense" in body.get("scope", "")]
    names = ("fc1", "blocks.0.my_fc", "blocks.1.my_fc", "head")
    for operator, direction, order in (("BiasAdd", "forward", names), ("BiasAddGrad", "backward", names[::-1])):
        parents = [parent for name, parent in construct.items() if name.startswith(f"Kernel.{operator}.")]
        assert parents == [f"Cell.{name}.Dense.{direction}.0" for name in order]
    assert {parent for name, parent in construct.items() if ".Adam." in name} == {None}
    # What Adam hands on is never written: its parameters change in place.
    dump = read_dump(folder)
    assert {item.kind for item in dump.entries["Kernel.Adam.0.forward"].in_state("output")} == {"null"}
    assert data["Kernel.Adam.0.forward"]["output"][0]["unwritten"] is True
    outcome = compared(folder, index(root, 0), tmp_path, Options())
    assert outcome.comparison.verdict == "consistent"


@pytest.mark.parametrize("epsilon", [1e-5, 0.5])
def test_a_compiled_run_beside_a_dynamic_one(dumps: dict[str, Path], tmp_path: Path, ms: Any, epsilon: float) -> None:
    """Inside of Cells kernels have counterparts, whatever order each mode launches them in."""
    net, x, y = make(epsilon)
    with recording(net, tmp_path / "dynamic", level="L2", task="tensor"):
        train(net, x, y)
    outcome = compared(index(dumps["one"]), tmp_path / "dynamic" / "step0", tmp_path / "out", Options())
    pairs = [pair for pair in outcome.comparison.pairs if pair.matched]
    for operator, cells in (("MatMul", 4), ("BiasAdd", 4), ("LayerNorm", 2), ("Tanh", 2), ("MatMul", 4)):
        assert sum(f".{operator}." in pair.target.name for pair in pairs if pair.target) >= cells
    assert {pair.target.parent for pair in pairs if pair.target and pair.golden} >= {
        f"Cell.{name}.{CELLS[name]}.forward.0" for name in ("fc1", "head", "blocks.0", "blocks.1", "blocks.1.norm")
    }
    if epsilon == 1e-5:
        assert outcome.comparison.origins == []
    else:
        assert outcome.comparison.origins[0].target == "Kernel.LayerNorm.1.forward.input.5"
        assert "input.5 is 9.99" in outcome.comparison.origins[0].reason


def test_a_gradient_reads_the_weights_of_the_cell_it_is_said_to_be_in(dumps: dict[str, Path]) -> None:
    """MindSpore's names say otherwise; the numbers do not."""
    folder = index(dumps["one"])
    dump = read_dump(folder)
    weights = {
        (entry.parent or "").replace(".forward.", ".backward."): dump.tensors.load(entry.items[1])
        for name, entry in dump.entries.items()
        if name.startswith("Kernel.MatMul.") and name.endswith(".forward")
    }
    found = 0
    for name, entry in dump.entries.items():
        if name.startswith("Kernel.MatMul.") and name.endswith(".backward"):
            read = dump.tensors.load(entry.items[1])
            of_weights = [cell for cell, weight in weights.items() if np.array_equal(read, weight)]
            assert of_weights in ([], [entry.parent])
            found += len(of_weights)
    assert found == 3


def test_a_compiled_cell_of_a_dynamic_network(tmp_path: Path) -> None:
    """Its names begin at itself; parameters tell where in the network that is."""
    root = compiled_dump(tmp_path / "dump", kind="inner")
    cells = {"": "Outer", "body": "Net", **{f"body.{name}": cls for name, cls in CELLS.items() if name}, "out": "Dense"}
    folder = tmp_path / "index"
    write_index(folder, read_kernel_files(raw_files(root)), task="statistics", cells=cells)
    construct = json.loads((folder / "construct.json").read_text())
    forward = [parent for name, parent in construct.items() if parent and ".forward." in parent]
    assert "Cell.body.blocks.1.act.Tanh.forward.0" in forward and "Cell.body.blocks.1.Block.forward.0" in forward
    assert all(parent.startswith("Cell.body.") for parent in forward)
    # Which gradient is which its graph does not tell for sure: no Cell is better than a wrong one.
    assert not [parent for parent in construct.values() if parent and not parent.startswith("Cell.body.")]


def test_two_compiled_runs_agree(dumps: dict[str, Path], tmp_path: Path) -> None:
    ours, theirs = index(dumps["one"], 1), index(dumps["other"], 1)
    outcome = compared(ours, theirs, tmp_path, Options())
    assert outcome.comparison.verdict == "consistent"
    assert all(row.matched and row.deviation == 0 for row in outcome.comparison.rows)


@pytest.mark.parametrize("task", ["tensor", "statistics"])
def test_a_planted_fault_is_found_at_its_kernel_and_cell(dumps: dict[str, Path], tmp_path: Path, task: str) -> None:
    ours, theirs = index(dumps["fault"], task=task), index(dumps["one"], task=task)
    outcome = compared(ours, theirs, tmp_path, Options())
    first = outcome.comparison.origins[0]
    assert first.target.startswith("Kernel.LayerNorm.1.forward.")
    assert "Cell.blocks.1.norm.LayerNorm.forward.0" in first.details[0]


def test_several_graphs_and_repeated_runs_are_told_apart(tmp_path: Path) -> None:
    add = {
        "Add.Default_a-A_Add-op0.input.0": np.ones(2, np.float32),
        "Add.Default_a-A_Add-op0.output.0": np.ones(2, np.float32),
    }
    for graph, start in ((0, 1000), (1, 1010), (0, 1020)):
        lay_out(tmp_path / f"rank_0/Net/{graph}/0", add, start)
    data = json.loads((index(tmp_path) / "dump.json").read_text())["data"]
    names = [body["output"][0]["data_name"].split(".")[0] for body in data.values()]
    assert list(data) == [f"Kernel.Add.{n}.forward" for n in range(3)] and names == ["0/0/Add", "1/0/Add", "0/0/Add"]


def test_slots_keep_their_places(tmp_path: Path) -> None:
    ones = np.ones(2, np.float32)
    lay_out(
        tmp_path / "rank_0/Net/0/0",
        {f"Sum.Default_Sum-op0.{slot}": ones for slot in ("input.0", "input.2", "output.0")},
    )
    body = json.loads((index(tmp_path) / "dump.json").read_text())["data"]["Kernel.Sum.0.forward"]
    assert [leaf is None for leaf in body["input_args"]] == [False, True, False]


def test_a_damaged_file_costs_its_own_figures(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = lay_out(
        tmp_path / "rank_0/Net/0/0",
        {f"Add.Default_Add-op0.{slot}": np.full(4, 2, np.float32) for slot in ("input.0", "input.1", "output.0")},
    )
    cut, _, broken = sorted(folder.iterdir())
    cut.write_bytes(cut.read_bytes()[:-3])
    broken.write_bytes(b"nothing")
    body = json.loads((index(tmp_path) / "dump.json").read_text())["data"]["Kernel.Add.0.forward"]
    first, second, output = (*body["input_args"], *body["output"])
    assert (first["shape"], first["Max"], second["Max"]) == ([4], None, 2.0)
    assert (output["shape"], output["dtype"], output["Norm"]) == (None, "Float32", None)
    assert f"{cut}: shape (4,)" in caplog.text and f"{broken}: the .npy header is damaged" in caplog.text
    assert len(caplog.records) == 1
    assert "not all could be recorded: 2 tensors of kernels could not be read: " in read_dump(index(tmp_path)).damage


def test_no_files_are_an_empty_index(tmp_path: Path) -> None:
    assert write_index(tmp_path / "step0" / "rank0", [], task="statistics") == 0
    assert read_dump(tmp_path / "step0" / "rank0").entries == {}


@pytest.mark.parametrize("order", [1, -1])
def test_a_copy_is_recovered_as_the_dump_is(tmp_path: Path, order: int) -> None:
    """Steps reduced to statistics name no files; the times of files say nothing of what an index speaks of."""
    add = {f"Add.Default_Add-op0.{slot}": np.ones(2, np.float32) for slot in ("input.0", "output.0")}
    for step in range(3):
        lay_out(tmp_path / f"rank_0/Net/0/{step}", add, 1000 + 10 * step)
    for step in range(2):
        index(tmp_path, step, task="statistics")
    for number, file in enumerate(sorted(path for path in tmp_path.rglob("*") if path.is_file())):
        os.utime(file, (1e9 + order * number, 1e9 + order * number))
    assert [each.folder.parent.name for each in recover_kernels(tmp_path) if not each.problem] == ["step2"]
