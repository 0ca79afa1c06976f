"""Dumps on disk, exported in every format."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from kernel_dumps import lay_out
from rank_dumps import write_run
from repository import DATA

from msprobe_ms.comparison.export.export import FORMATS, export
from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.run import Options
from msprobe_ms.support.errors import CompareError, DumpFormatError

LENET = DATA / "golden" / "mindspore_lenet_L1_tensor"
_ENDINGS = {
    "model-explorer": ["graph.json", "deviation.json", "sync.json"],
    "vis.db": ["vis.db"],
    "onnx": ["target.onnx", "golden.onnx"],
    "dot": ["target.dot", "golden.dot"],
}


def names(*files: Path) -> list[str]:
    return [file.name for file in files]


@pytest.mark.parametrize("to", FORMATS)
def test_every_format_is_written_of_a_comparison_and_of_one_dump(to: str, tmp_path: Path) -> None:
    if to == "onnx":
        pytest.importorskip("onnx", reason="ONNX files are not checked: the package onnx is not installed")
    both = names(*export(LENET, LENET, to, Naming(tmp_path, "1"), Options()))
    assert both == [f"export_1.{ending}" for ending in _ENDINGS[to]]
    (one,) = names(*export(LENET, None, to, Naming(tmp_path, "2"), Options()))
    assert one == f"export_2.{_ENDINGS[to][0].removeprefix('target.')}"


def test_ranks_and_steps_are_told_apart(tmp_path: Path) -> None:
    target, golden = write_run(tmp_path / "a", steps=2, ranks=2, faulty=1), write_run(tmp_path / "b", steps=2, ranks=2)
    found = names(*export(target, golden, "dot", Naming(tmp_path / "out", "1"), Options(), ranks=[1]))
    assert found == [
        f"export_step{step}_rank1_1.{side}.dot" for step in (0, 1) for side in ("target", "golden")
    ]  # fmt: skip
    assert "#FF704D" in (tmp_path / "out" / found[0]).read_text()
    (database,) = export(target, golden, "vis.db", Naming(tmp_path / "out", "2"), Options())
    places = sqlite3.connect(database).execute("SELECT step, rank, count(*) FROM tb_nodes GROUP BY step, rank")
    assert [place[:2] for place in places] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    found = names(*export(target, None, "dot", Naming(tmp_path / "out", "3"), Options(), steps=[0]))
    assert found == ["export_step0_rank0_3.dot", "export_step0_rank1_3.dot"]


def kernels(root: Path, given: float = 2.0) -> Path:
    """Raw files of two kernels, of which the second adds one too little or too much, where ``given`` is not 2."""
    x = np.arange(6, dtype=np.float32)
    tensors = {
        "MatMul.Default_network-Net_fc-Dense_MatMul-op0.input.0": x,
        "MatMul.Default_network-Net_fc-Dense_MatMul-op0.output.0": x + 1,
        "ReLU.Default_network-Net_act-ReLU_ReLU-op0.input.0": x + 1,
        "ReLU.Default_network-Net_act-ReLU_ReLU-op0.output.0": (x + given).astype(np.float32),
    }
    lay_out(root / "rank_0" / "Net" / "0" / "0", tensors)
    return root


def test_raw_files_of_kernels_are_a_dump(tmp_path: Path) -> None:
    kernels(tmp_path)
    (file,) = export(tmp_path, None, "model-explorer", Naming(tmp_path / "out", "1"), Options())
    first, second = json.loads(file.read_bytes())["graphs"][0]["nodes"]
    assert [node["namespace"].rpartition("/")[2] for node in (first, second)] == ["fc", "act"]
    assert second["incomingEdges"][0]["sourceNodeId"] == first["id"]


def test_raw_files_of_kernels_are_compared(tmp_path: Path) -> None:
    target, golden = kernels(tmp_path / "a", 3.0), kernels(tmp_path / "b")
    files = list(export(target, golden, "model-explorer", Naming(tmp_path / "out", "1"), Options()))
    assert names(*files) == [f"export_1.{ending}" for ending in _ENDINGS["model-explorer"]]
    results = json.loads(files[1].read_bytes())["target"]["results"]
    first, second = results.values()
    assert (first["value"], first["bgColor"]) == (0.0, "#FFFCF3")
    assert second["value"] > 1 and second["bgColor"] == "#FF704D"
    with pytest.raises(CompareError, match="it has step0 rank0"):
        list(export(target, golden, "dot", Naming(tmp_path / "out", "2"), Options(), ranks=[3]))


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DumpFormatError):
        list(export(tmp_path, None, "dot", Naming(tmp_path, "1"), Options()))
    with pytest.raises(CompareError, match="no rank and step that was asked for"):
        list(export(write_run(tmp_path / "a"), None, "dot", Naming(tmp_path, "1"), Options(), ranks=[9]))
