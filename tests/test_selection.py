"""Which calls and which fields are recorded: list, scope, data_mode, and the gates of steps and ranks."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from recording import FIGURES, leaves, read_step, recording, step_folder, write_config

from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.selection import FieldFilter, NameList, Scope


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 2)
        self.act = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(self.fc(x)) * 2


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block()
        self.second = Block()

    def construct(self, x: Tensor) -> Tensor:
        return ops.exp(self.second(ops.relu(self.first(x + 1))))


X = Tensor(np.array([[0.5, -1]], np.float32))


def record(dump_path: Path, *, steps: int = 1, **keys: Any) -> list[str]:
    """One forward and backward of the net; the entries of the dump."""
    net = Net()
    with recording(net, dump_path, **keys):
        mindspore.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())(X)
    return list(read_step(dump_path).data)


FIRST = [
    "Primitive.matmul.MatMul.0.forward", "Primitive.bias_add.BiasAdd.0.forward", "Cell.first.fc.Dense.forward.0",
    "Primitive.relu.ReLU.0.forward", "Cell.first.act.ReLU.forward.0", "Tensor.__mul__.0.forward",
    "Cell.first.Block.forward.0",
]  # fmt: skip


# -- the rules alone ---------------------------------------------------------------------------------------------------


def test_name_list() -> None:
    assert NameList([]).accepts("anything")
    some = NameList(["relu", "Cell.a."])
    assert some.accepts("Functional.relu.0.forward")
    assert some.accepts("Cell.a.Dense.forward.0")
    assert not some.accepts("Functional.Relu.0.forward")
    assert not some.accepts("Cell.ab.Dense.forward.0")


def test_scope() -> None:
    scope = Scope(["b", "d"])
    seen = []
    for name in ("a", "b", "c", "d", "e", "b"):
        seen.append(scope.begins(name))
        scope.ends(name)
    assert seen == [False, True, True, True, False, True]
    whole = Scope([])
    assert whole.begins("a")
    whole.ends("a")
    assert whole.begins("b")


@pytest.mark.parametrize(
    ("data_mode", "kept"),
    [
        ({"all"},
         {"f.input_args", "f.input_kwargs", "f.output", "f.parameters", "b.input", "b.output", "b.parameters_grad"}),
        ({"forward"}, {"f.input_args", "f.input_kwargs", "f.output", "f.parameters"}),
        ({"backward"}, {"b.input", "b.output", "b.parameters_grad"}),
        ({"input"}, {"f.input_args", "f.input_kwargs", "f.parameters", "b.input"}),
        ({"output"}, {"f.output", "b.output", "b.parameters_grad"}),
        ({"forward", "input"}, {"f.input_args", "f.input_kwargs", "f.output", "f.parameters", "b.input"}),
    ],
)  # fmt: skip
def test_fields(data_mode: set[str], kept: set[str]) -> None:
    fields = FieldFilter(data_mode)
    found = {f"f.{f}" for f in ("input_args", "input_kwargs", "output", "parameters") if fields.keeps("forward", f)}
    found |= {f"b.{f}" for f in ("input", "output", "parameters_grad") if fields.keeps("backward", f)}
    assert found == kept


# -- in a recording ----------------------------------------------------------------------------------------------------


def test_data_mode_in_the_dump(ms: Any, dump_path: Path) -> None:
    expected = {
        ("forward",): ({"input_args", "input_kwargs", "output", "parameters"}, None, None),
        ("backward",): (None, {"input", "output"}, {"weight", "bias"}),
        ("input",): ({"input_args", "input_kwargs", "parameters"}, {"input"}, None),
        ("output",): ({"output"}, {"output"}, {"weight", "bias"}),
        ("forward", "output"): ({"input_args", "input_kwargs", "output", "parameters"}, {"output"}, {"weight", "bias"}),
    }
    for data_mode, fields in expected.items():
        folder = dump_path.with_name("_".join(data_mode))
        record(folder, level="L0", data_mode=list(data_mode))
        data = read_step(folder).data
        names = (
            "Cell.first.fc.Dense.forward.0",
            "Cell.first.fc.Dense.backward.0",
            "Cell.first.fc.Dense.parameters_grad.0",
        )
        assert tuple(set(data[name]) if name in data else None for name in names) == fields, data_mode


def test_list_at_L0_selects_by_substring(ms: Any, dump_path: Path) -> None:
    assert set(record(dump_path, level="L0", list=["second.fc", "first.act.ReLU.backward"])) == {
        "Cell.second.fc.Dense.forward.0", "Cell.second.fc.Dense.backward.0", "Cell.second.fc.Dense.parameters_grad.0",
        "Cell.first.act.ReLU.backward.0",
    }  # fmt: skip


def test_list_at_mix_opens_everything_in_a_module(ms: Any, dump_path: Path) -> None:
    names = record(dump_path, level="mix", list=["first.Block"])
    assert [name for name in names if "forward" in name] == FIRST
    assert {name for name in names if "backward" in name} == {name.replace("forward", "backward") for name in FIRST}
    assert "Cell.first.fc.Dense.parameters_grad.0" in names
    assert "Cell.second.fc.Dense.parameters_grad.0" not in names


def test_list_at_L1(ms: Any, dump_path: Path) -> None:
    assert set(record(dump_path, level="L1", list=["Functional.relu", "__mul__.1.forward"])) == {
        "Functional.relu.0.forward", "Functional.relu.0.backward", "Tensor.__mul__.1.forward",
    }  # fmt: skip


def test_names_count_independently_of_the_selection(ms: Any, dump_path: Path) -> None:
    """The second multiplication is number 1 whether the first is recorded or not."""
    all_names = record(dump_path, level="L1")
    assert "Tensor.__mul__.1.forward" in all_names
    for number, keys in enumerate((
        {"list": ["__mul__.1"]},
        {"scope": ["Tensor.__mul__.1.forward", "Functional.exp.0.forward"]},
        {"data_mode": ["backward"]},
    )):  # fmt: skip
        names = record(dump_path.with_name(str(number)), level="L1", **keys)
        assert set(names) <= set(all_names)
        assert any(name.startswith("Tensor.__mul__.1") for name in names)


@pytest.mark.parametrize(
    ("level", "scope", "expected"),
    [
        ("L0", ["Cell.first.act.ReLU.forward.0", "Cell.second.fc.Dense.forward.0"],
         ["Cell.first.act.ReLU.forward.0", "Cell.second.fc.Dense.forward.0", "Cell.second.Block.forward.0"]),
        ("L0", ["Cell.first.Block.forward.0", "Cell.first.Block.forward.0"],
         ["Cell.first.fc.Dense.forward.0", "Cell.first.act.ReLU.forward.0", "Cell.first.Block.forward.0"]),
        ("L1", ["Tensor.__mul__.0.forward", "Functional.relu.0.forward"],
         ["Tensor.__mul__.0.forward", "Functional.relu.0.forward"]),
        ("mix", ["Cell.first.act.ReLU.forward.0", "Functional.relu.0.forward"],
         ["Primitive.relu.ReLU.0.forward", "Cell.first.act.ReLU.forward.0", "Tensor.__mul__.0.forward",
          "Functional.relu.0.forward"]),
        ("mix", ["Cell.second.Block.forward.0", "Cell.second.Block.forward.0"],
         ["Primitive.matmul.MatMul.1.forward", "Primitive.bias_add.BiasAdd.1.forward",
          "Primitive.relu.ReLU.1.forward", "Cell.second.fc.Dense.forward.0", "Cell.second.act.ReLU.forward.0",
          "Tensor.__mul__.1.forward",
          "Cell.second.Block.forward.0"]),
        ("L0", ["Cell.second.fc.Dense.backward.0", "Cell.first.act.ReLU.backward.0"],
         ["Cell.second.fc.Dense.backward.0", "Cell.first.act.ReLU.backward.0", "Cell.first.Block.backward.0"]),
        ("L1", ["Tensor.__mul__.1.backward", "Functional.relu.0.backward"],
         ["Tensor.__mul__.1.backward", "Primitive.relu.ReLU.1.backward", "Primitive.bias_add.BiasAdd.1.backward",
          "Primitive.matmul.MatMul.1.backward", "Functional.relu.0.backward"]),
        ("L0", ["Cell.second.act.ReLU.forward.0", "Cell.second.act.ReLU.backward.0"],
         ["Cell.second.act.ReLU.forward.0", "Cell.second.act.ReLU.backward.0"]),
    ],
)  # fmt: skip
def test_scope_in_a_recording(ms: Any, dump_path: Path, level: str, scope: list[str], expected: list[str]) -> None:
    names = [name for name in record(dump_path, level=level, scope=scope) if ".parameters_grad." not in name]
    # An enclosing module that began inside the range but is complete only later is allowed to stand there.
    assert set(expected) - {"Cell.second.Block.forward.0", "Cell.first.Block.backward.0"} <= set(names)
    assert set(names) <= set(expected) | {"Cell.second.Block.backward.0", "Cell.second.Block.forward.0"}


def test_scope_and_list_are_both_needed(ms: Any, dump_path: Path) -> None:
    names = record(
        dump_path, level="L0", scope=["Cell.first.fc.Dense.forward.0", "Cell.first.Block.forward.0"], list=["act"]
    )
    assert names == ["Cell.first.act.ReLU.forward.0"]


def test_steps_and_ranks(ms: Any, dump_path: Path) -> None:
    """Folders exist for the selected steps only; steps count on all the same."""
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, step=[1, "3-4"], rank=[0]))
    for _ in range(6):
        debugger.start(net)
        net(X)
        debugger.stop()
        debugger.step()
    assert sorted(path.name for path in dump_path.iterdir()) == ["step1", "step3", "step4"]
    assert all(len(read_step(dump_path, step).data) == 6 for step in (1, 3, 4))


def test_a_rank_that_is_given(ms: Any, dump_path: Path) -> None:
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, rank=[2, 3]))
    for rank in (1, 2):
        debugger.start(net, rank_id=rank)
        net(X)
        debugger.stop()
        debugger.step()
    assert [path.relative_to(dump_path).as_posix() for path in dump_path.glob("*/*")] == ["step1/rank2"]


def test_set_init_step(ms: Any, dump_path: Path) -> None:
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, step=[100, 101]))
    debugger.set_init_step(100)
    for _ in range(3):
        debugger.start(net)
        net(X)
        debugger.stop()
        debugger.step()
    assert sorted(path.name for path in dump_path.iterdir()) == ["step100", "step101"]


def test_tensor_list(ms: Any, dump_path: Path) -> None:
    """Only entries with the text have files, backward and parameter gradients too; all have figures."""
    record(dump_path, level="mix", tensor_list=["first.fc", "__mul__.1.forward"])
    step = read_step(dump_path)
    with_files = {place[0] for place, leaf in leaves(step.data) if "data_name" in leaf}
    assert with_files == {
        "Cell.first.fc.Dense.forward.0", "Cell.first.fc.Dense.backward.0", "Cell.first.fc.Dense.parameters_grad.0",
        "Tensor.__mul__.1.forward",
    }  # fmt: skip
    files = {leaf["data_name"] for _, leaf in leaves(step.data) if "data_name" in leaf}
    assert {path.name for path in (step.folder / "dump_tensor_data").iterdir()} == files
    assert len(step.data) > 10


def test_extra_info_false(ms: Any, dump_path: Path) -> None:
    net = Net()
    with recording(net, dump_path, level="mix", extra_info=False):
        net(X)
    folder = step_folder(dump_path)
    assert [path.name for path in folder.iterdir()] == ["dump.json"]
    assert len(json.loads((folder / "dump.json").read_text())["data"]) == 17


def test_md5_is_crc32_of_the_bytes(ms: Any, dump_path: Path) -> None:
    net = Net()
    with recording(net, dump_path, level="mix", task="tensor", summary_mode="md5"):
        mindspore.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())(X)
    step = read_step(dump_path)
    found = list(leaves(step.data))
    assert len(found) > 40
    for place, leaf in found:
        assert leaf["md5"] == f"{zlib.crc32(step.array(leaf).tobytes()):08x}", place
        assert list(leaf)[:3] == ["type", "dtype", "shape"]


def test_md5_of_bfloat16_is_of_float32(ms: Any, dump_path: Path) -> None:
    value = Tensor(np.array([1.5, -2], np.float32)).astype(ms.bfloat16)
    with recording(None, dump_path, level="L1", summary_mode="md5"):
        value.reshape(2, 1)
    leaf = read_step(dump_path).forward("Tensor.reshape")["input_args"][0]
    assert leaf["dtype"] == "BFloat16"
    assert leaf["md5"] == f"{zlib.crc32(np.array([1.5, -2], np.float32).tobytes()):08x}"
    assert [leaf[key] for key in FIGURES[:2]] == [1.5, -2.0]
