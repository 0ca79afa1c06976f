"""Which calls and which fields are recorded: list, scope, data_mode, and the gates of steps and ranks."""

from __future__ import annotations

import json
import re
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from recording import FIGURES, leaves, read_step, recording, step_folder, write_config

from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.recording.selection.filters import FieldFilter, NameList, Range, Scope, Skip, Turn


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


def record(dump_path: Path, net: nn.Cell | None = None, **keys: Any) -> list[str]:
    """One forward and backward of the net; the entries of the dump."""
    net = Net() if net is None else net
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


def within(span: Range | None, names: str) -> str:
    """Which of the calls ``names``, one a letter and none inside another, belong to the range."""
    scope, kept = Scope(span), ""
    for name in names:
        kept += name if scope.begins(name) else ""
        scope.ends(name)
    return kept


@pytest.mark.parametrize(
    ("span", "kept"),
    [
        (None, "abcdeb"),
        (Range("b", "d"), "bcdb"),
        (Range("b", "d", False), "bcb"),
        (Range("c", "c"), "c"),
        (Range(None, "c"), "abc"),
        (Range(None, "c", False), "ab"),
        (Range("d", None), "deb"),
        (Range("d", None, False), "deb"),
        (Range("x", "c"), ""),
        (Range("c", "x"), "cdeb"),
        (Range("name-regex([bd])", "name-regex([ce])", False), "bdb"),
    ],
)
def test_ranges(span: Range | None, kept: str) -> None:
    assert within(span, "abcdeb") == kept


def test_a_last_entry_inside_another_does_not_close_the_range() -> None:
    scope, outer, inner, after = Scope(Range("class:b", "class:b")), "Cell.x.B.forward.0", "Cell.x.y.B.forward.0", "z"
    assert [scope.begins(outer), scope.begins(inner)] == [True, True]
    scope.ends(inner)
    assert scope.begins(after)
    scope.ends(outer)
    assert not scope.begins(after)


def test_the_first_and_last_are_whole_names() -> None:
    scope = Scope(Range("Cell.a.Dense.forward.1", "Cell.a.Dense.forward.1"))
    for name in ("Cell.a.Dense.forward.10", "XCell.a.Dense.forward.1"):
        assert not scope.begins(name)
    assert scope.begins("Cell.a.Dense.forward.1")


class Call:
    """A module and the modules that it calls."""

    def __init__(self, name: str, *inside: Call) -> None:
        self.name, self.inside = name, inside

    def run(self, skip: Skip, maker: Turn | None = None) -> list[str]:
        turn, taken = skip.enter(self.name, maker, is_module=True, selected=True, again=False)
        return [self.name] * taken + [name for call in self.inside for name in call.run(skip, turn)]


def coarse(skip: int, *calls: Call) -> list[str]:
    skips = Skip(skip)
    return [name for call in calls for name in call.run(skips)]


def test_skip_in_a_flat_net() -> None:
    """The example of docs/config.md; what is left over at the end is not recorded."""
    calls = [Call(name) for name in ("conv1", "relu1", "pool1", "conv2", "relu2", "pool2", "fc")]
    assert coarse(3, *calls) == ["pool1", "pool2"]
    assert coarse(1, *calls) == [call.name for call in calls]
    assert coarse(7, *calls) == ["fc"]
    assert coarse(8, *calls) == []


def layers(count: int, *, extra: int | None = None) -> list[Call]:
    """A deep net; ``extra`` is the layer that makes a call more than the others, in its midst."""
    return [
        Call(
            f"{layer}",
            Call(f"{layer}.norm"),
            *([Call(f"{layer}.dropout")] if layer == extra else []),
            Call(f"{layer}.attention", *(Call(f"{layer}.attention.{part}") for part in "qkv")),
            Call(f"{layer}.mlp", Call(f"{layer}.mlp.in"), Call(f"{layer}.mlp.out")),
        )
        for layer in range(count)
    ]


@pytest.mark.parametrize("skip", [2, 3, 4, 7, 10, 16, 32])
def test_skip_in_a_deep_net(skip: int) -> None:
    """As many as asked for, one from every kind of call, and a call too much does no harm outside its layer."""
    taken = coarse(skip, *layers(96))
    assert len(taken) == pytest.approx(96 * 9 / skip, rel=0.1)
    kinds = {name.partition(".")[2] for name in coarse(skip, *layers(4 * skip))}
    assert kinds == {call.partition(".")[2] for call in coarse(1, *layers(1))}
    other = coarse(skip, *layers(96, extra=7))
    assert [name for name in other if not name.startswith("7.")] == [n for n in taken if not n.startswith("7.")]


def test_skip_sees_through_a_wrapper() -> None:
    calls = layers(8)
    assert coarse(5, Call("backbone", *calls)) == coarse(5, *calls)


def test_skip_counts_what_is_selected() -> None:
    """Modules that ``list`` passes over have no turn, but their place still tells the layers apart."""
    skip, taken = Skip(4), []
    for layer in range(16):
        turn, _ = skip.enter(f"{layer}", None, is_module=True, selected=False, again=False)
        taken += [layer] * skip.enter(f"{layer}.norm", turn, is_module=True, selected=True, again=False)[1]
    assert len(taken) == 4 and {after - before for before, after in pairwise(taken)} == {4}


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
         ["Cell.second.act.ReLU.forward.0", "loss.0.debug", "Cell.second.act.ReLU.backward.0"]),
    ],
)  # fmt: skip
def test_scope_in_a_recording(ms: Any, dump_path: Path, level: str, scope: list[str], expected: list[str]) -> None:
    names = [name for name in record(dump_path, level=level, scope=scope) if ".parameters_grad." not in name]
    # An enclosing module that began inside the range but is complete only later is allowed to stand there.
    assert set(expected) - {"Cell.second.Block.forward.0", "Cell.first.Block.backward.0"} <= set(names)
    assert set(names) <= set(expected) | {"Cell.second.Block.backward.0", "Cell.second.Block.forward.0"}


@pytest.mark.parametrize(
    ("level", "scope", "first", "last", "others"),
    [
        ("L0", {"from": "Cell.second.Block.forward.0"}, "Cell.second.fc.Dense.forward.0",
         "Cell.first.fc.Dense.backward.0", "Cell.first.act.ReLU.forward.0"),
        ("L0", {"until": "Cell.second.Block.forward.0"}, "Cell.first.fc.Dense.forward.0", "Cell.first.Block.forward.0",
         "Cell.second.fc.Dense.forward.0"),
        ("L0", {"from": "Cell.second.act.ReLU.backward.0", "until": "Cell.first.fc.Dense.backward.0"},
         "Cell.second.act.ReLU.backward.0", "Cell.first.act.ReLU.backward.0", "Cell.first.fc.Dense.backward.0"),
        ("L0", [None, "Cell.second.Block.backward.0"], "Cell.first.fc.Dense.forward.0",
         "Cell.second.fc.Dense.backward.0", "Cell.first.act.ReLU.backward.0"),
        ("L1", {"from": "Functional.relu.0.forward", "until": "Functional.exp.0.forward"}, "Functional.relu.0.forward",
         "Tensor.__mul__.1.forward", "Functional.exp.0.forward"),
        ("mix", {"from": "Functional.exp.0.backward", "until": "Cell.second.act.ReLU.backward.0"},
         "Functional.exp.0.backward", "Cell.second.Block.backward.0", "Cell.second.act.ReLU.backward.0"),
        ("mix", ["class:Dense"], "Primitive.matmul.MatMul.0.forward", "Cell.first.fc.Dense.backward.0",
         "Primitive.relu.ReLU.0.forward"),
    ],
)  # fmt: skip
def test_open_and_half_open_scopes(
    ms: Any, dump_path: Path, level: str, scope: Any, first: str, last: str, others: str
) -> None:
    names = record(dump_path, level=level, scope=scope)
    assert names[0] == first
    assert last in names and others not in names
    everything = record(dump_path.with_name("all"), level=level)
    assert set(names) < set(everything)
    calls = [name for name in names if ".parameters_grad." not in name]
    assert [name for name in everything if name in calls] == calls


def test_the_ends_of_a_scope_need_not_be_in_the_list(ms: Any, dump_path: Path) -> None:
    names = record(
        dump_path, level="mix", list=["class:Dense"], skip=0, data_mode=["all"],
        scope={"from": "Functional.exp.0.backward", "until": "Functional.relu.0.backward"},
    )  # fmt: skip
    assert names == [
        "Primitive.bias_add.BiasAdd.1.backward", "Primitive.matmul.MatMul.1.backward",
        "Cell.second.fc.Dense.backward.0", "Cell.second.fc.Dense.parameters_grad.0",
    ]  # fmt: skip


def test_a_listed_module_that_began_before_the_scope_opens_what_is_inside(ms: Any, dump_path: Path) -> None:
    names = record(
        dump_path, level="mix", list=["second.Block"],
        scope=["Primitive.relu.ReLU.1.forward", "Tensor.__mul__.1.forward"],
    )  # fmt: skip
    assert names == ["Primitive.relu.ReLU.1.forward", "Tensor.__mul__.1.forward"]


def test_patterns_in_a_recording(ms: Any, dump_path: Path) -> None:
    everything = record(dump_path, level="mix")
    for number, (text, expression) in enumerate({
        "Cell.*.fc.*forward": r"Cell\..*\.fc\..*forward.*",
        "class:MatMul": r"Primitive\.matmul\..*",
        "name-regex(.+ReLU.0.+)": r".+ReLU.0.+",
        "class:*mul*": r"Primitive\.matmul\..*|Tensor\.__mul__\..*",
    }.items()):  # fmt: skip
        names = record(dump_path.with_name(f"l1_{number}"), level="mix" if number != 0 else "L0", list=[text])
        expected = [name for name in everything if re.fullmatch(expression, name)]
        assert names == expected and names, text


def test_tensor_list_takes_patterns(ms: Any, dump_path: Path) -> None:
    record(dump_path, level="L0", tensor_list=["class:dense", "*second*backward"])
    with_files = {place[0] for place, leaf in leaves(read_step(dump_path).data) if "data_name" in leaf}
    assert with_files == {
        *(f"Cell.{block}.fc.Dense.{what}.0" for block in ("first", "second") for what in ("forward", "backward")),
        *(f"Cell.{block}.fc.Dense.parameters_grad.0" for block in ("first", "second")),
        "Cell.second.act.ReLU.backward.0", "Cell.second.Block.backward.0",
    }  # fmt: skip


# -- skip --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("skip", [2, 3])
def test_skip_in_a_recording(ms: Any, dump_path: Path, level: str, skip: int) -> None:
    """Whole calls: forward with backward and parameter gradients, figures and parents as without it."""
    net = Net()
    record(dump_path, net, level=level)
    record(dump_path.with_name("coarse"), net, level=level, skip=skip)
    whole, few = read_step(dump_path), read_step(dump_path.with_name("coarse"))
    assert 0 < len(few.data) < len(whole.data)
    assert all(few.data[name] == whole.data[name] for name in few.data)
    assert few.construct == {name: whole.construct[name] for name in few.data if name in whole.construct}
    assert {name for names, _ in few.stack.values() for name in names} == {n for n in few.data if ".forward" in n}
    calls = {name.replace("backward", "forward") for name in few.data if "parameters_grad" not in name}
    assert calls <= set(few.data)
    bases = {call.partition(".forward")[0] for call in calls}
    assert {name for name in whole.data if "parameters_grad" in name and name.partition(".param")[0] in bases} == {
        name for name in few.data if "parameters_grad" in name
    }
    for call in calls:
        assert (call.replace("forward", "backward") in few.data) == (call.replace("forward", "backward") in whole.data)


def test_kernels_go_with_their_call(ms: Any, dump_path: Path) -> None:
    net = Net()
    calls = [name for name in record(dump_path, net, level="mix", skip=2) if re.match("Primitive.*forward", name)]
    whole, few = (
        record(dump_path.with_name(f"kernels{skip}"), net, level="L2", skip=skip) for skip in (0, 2)
    )  # fmt: skip
    assert calls == [
        "Primitive.bias_add.BiasAdd.0.forward", "Primitive.relu.ReLU.0.forward", "Primitive.matmul.MatMul.1.forward",
    ]  # fmt: skip
    layers = [name for name in few if re.match(r"Kernel\.(BiasAdd|MatMul)\.\d\.forward", name)]
    assert layers == ["Kernel.BiasAdd.0.forward", "Kernel.MatMul.1.forward"]
    assert len([name for name in few if name.startswith("Kernel.MatMul") and "backward" in name]) == 2
    assert len([name for name in whole if name.startswith("Kernel.MatMul") and "backward" in name]) == 4


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"list": ["class:BiasAdd"]},
         [*(f"Kernel.BiasAdd.{n}.forward" for n in (0, 1)), *(f"Kernel.BiasAddGrad.{n}.backward" for n in (0, 1))]),
        ({"list": ["Kernel.*Add*Grad.*"], "skip": 2}, ["Kernel.BiasAddGrad.0.backward"]),
        ({"scope": {"from": "Kernel.Exp.0.forward", "until": "class:SumExt"}}, ["Kernel.Exp.0.forward"]),
        ({"scope": {"from": "Functional.relu.0.forward", "until": "Cell.second.Block.forward.0"}},
         ["Kernel.ReLU.1.forward"]),
    ],
)  # fmt: skip
def test_selection_of_kernels(ms: Any, dump_path: Path, keys: dict[str, Any], expected: list[str]) -> None:
    net = Net()
    names = record(dump_path, net, level="L2", **keys)
    whole = record(dump_path.with_name("whole"), net, level="L2")
    if "scope" in keys:  # with an open end it would begin again in backward
        names = [name for name in names if "forward" in name]
    assert sorted(names) == sorted(expected) and set(names) <= set(whole)


def test_skip_at_L1_is_the_execution_order(ms: Any, dump_path: Path) -> None:
    whole = [name for name in record(dump_path, level="L1") if "forward" in name]
    few = [name for name in record(dump_path.with_name("few"), level="L1", skip=4) if "forward" in name]
    assert few == whole[3::4]


def test_the_scope_does_not_change_which_calls_skip_records(ms: Any, dump_path: Path) -> None:
    whole = record(dump_path, level="L0", skip=2)
    scope = {"from": "Cell.first.act.ReLU.forward.0", "until": "Cell.second.fc.Dense.backward.0"}
    names = record(dump_path.with_name("part"), level="L0", skip=2, scope=scope)
    inside = record(dump_path.with_name("scope"), level="L0", scope=scope)
    assert names == [name for name in inside if name in whole] and names


def test_two_runs_skip_the_same_calls(ms: Any, dump_path: Path) -> None:
    runs = [record(dump_path.with_name(f"{run}"), level="mix", skip=3, list=["class:*"]) for run in range(2)]
    assert runs[0] == runs[1]


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
