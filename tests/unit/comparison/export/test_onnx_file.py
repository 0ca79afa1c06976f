"""The structure as ONNX, checked by the library itself."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest
from export_dumps import ROOT, WRONG, alone, dump_of, faulty, hostile, net, recorded
from repository import DATA

from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.onnx_file import write
from msprobe_ms.comparison.export.topology import Topology
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import UsageError


def models(folder: Path, topology: Topology) -> list[Any]:
    onnx = pytest.importorskip("onnx", reason="ONNX files are not checked: the package onnx is not installed")
    found = [onnx.load(path) for path in write([topology], Naming(folder, "1"))]
    for model in found:
        onnx.checker.check_model(model)
    return found


def test_calls_are_nodes_and_tensors_are_values(tmp_path: Path) -> None:
    (model,) = models(tmp_path, alone(net()))
    graph = model.graph
    assert [node.op_type for node in graph.node] == [
        "LayerNorm",
        "Dense",
        "Block",
        "LayerNorm",
        "Dense",
        "Block",
        "Net",
    ]
    nodes = {node.name: node for node in graph.node}
    assert list(nodes[WRONG].input) == ["Cell.blocks.0.Block.forward.0.output.0"]
    assert list(nodes["Cell.blocks.1.fc.Dense.forward.0"].input) == [f"{WRONG}.output.0"]
    assert [value.name for value in graph.input] == ["Cell.blocks.0.norm.LayerNorm.forward.0.input.0"]
    assert [value.name for value in graph.output] == [f"{ROOT}.output.0"]
    shape = graph.output[0].type.tensor_type.shape
    assert [dimension.dim_value for dimension in shape.dim] == [4, 8]
    assert not graph.initializer


def test_verdicts_are_attributes(tmp_path: Path) -> None:
    target, golden = models(tmp_path, faulty())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["export_1.golden.onnx", "export_1.target.onnx"]
    for model in (target, golden):
        (node,) = [node for node in model.graph.node if node.name == WRONG]
        told = {each.name: each.s.decode() for each in node.attribute}
        assert told["verdict"] == "origin: the error begins here" and float(told["error_ratio"]) > 100
        assert told["output.0"].startswith("mindspore.Tensor, Float32, shape [4, 8], Max")


@pytest.mark.parametrize("name", ["mindspore_lenet_L1_tensor/proc16362", "pytorch_lenet_L0_tensor/proc16387"])
def test_real_dumps_are_valid_models(name: str, tmp_path: Path) -> None:
    (folder,) = (DATA / "golden").glob(re.sub(r"proc\d+", "*", name))
    dump = read_dump(folder / "dump.json" if folder.is_dir() else folder)
    (model,) = models(tmp_path, alone(dump))
    assert len(model.graph.node) == len(dump.entries)


def test_dtypes_are_those_of_onnx(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="ONNX files are not checked: the package onnx is not installed")
    import numpy as np

    arrays = [np.arange(3, dtype=dtype) for dtype in ("float64", "float16", "int64", "uint8")]
    (model,) = models(tmp_path, alone(dump_of(recorded("Functional.f.0.forward", None, arrays, [np.arange(2) > 0]))))
    types = onnx.TensorProto
    found = [value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)]
    assert found == [types.DOUBLE, types.FLOAT16, types.INT64, types.UINT8, types.BOOL]


def test_hostile_names_make_a_valid_model(tmp_path: Path) -> None:
    (model,) = models(tmp_path, alone(hostile()))
    assert len({node.name for node in model.graph.node}) == len(hostile().entries)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *others: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "onnx":
            raise ImportError(name)
        return real(name, *others, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r'onnx is not installed.*pip install "msprobe-ms\[onnx\]"'):
        list(write([alone(net())], Naming(tmp_path, "1")))
    assert not list(tmp_path.iterdir())
