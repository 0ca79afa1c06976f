"""Cells and functions that are copied, pickled or saved while recording: as without it."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Parameter, Tensor, mint, nn, ops
from recording import read_step, recording

LEVELS = ("L0", "L1", "mix")


class Scale(nn.Cell):
    """A Cell that can be pickled, which those that hold primitives cannot. It holds a function."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(np.ones(4, np.float32))
        self.act = ops.tanh

    def construct(self, x: Tensor) -> Tensor:
        return self.act(x * self.w)


class Doubled(nn.Cell):
    """With a backward of its own: hooks on it go another way."""

    def construct(self, x: Tensor) -> Tensor:
        return x * 2

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * 2,)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.scale, self.doubled = nn.Dense(4, 4), Scale(), Doubled()
        self.fc.register_forward_pre_hook(ahead)
        self.fc.register_forward_hook(behind)

    def construct(self, x: Tensor) -> Tensor:
        return self.doubled(self.scale(self.fc(x)))


def ahead(cell: nn.Cell, args: Any) -> None:
    """A hook of the user's."""


def behind(cell: nn.Cell, args: Any, output: Any) -> None:
    """A hook of the user's."""


X = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4) / 12)


def hooks(net: nn.Cell) -> list[Any]:
    """All that tables of hooks hold, but for numbers."""
    return [
        (name, table, list(value.values()))
        for name, cell in net.cells_and_names()
        for table, value in vars(cell).items()
        if "hook" in table and isinstance(value, dict) and value
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_copy_is_what_it_is_without_the_tool(ms: Any, dump_path: Path, level: str) -> None:
    net = Net()
    before, expected = hooks(net), net(X).asnumpy()
    with recording(net, dump_path, level=level):
        net(X)
        copied = copy.deepcopy(copy.deepcopy(net))
        assert hooks(copied) == before
        assert np.array_equal(copied(X).asnumpy(), expected)
    assert hooks(net) == hooks(copied) == before
    assert copied.scale.act is net.scale.act is ops.tanh
    assert "__reduce_ex__" not in vars(nn.Cell) and nn.Cell.__setstate__.__module__ == "mindspore.nn.cell"


@pytest.mark.parametrize("level", LEVELS)
def test_a_cell_pickled_meanwhile_is_that_cell(ms: Any, dump_path: Path, level: str) -> None:
    cell = Scale()
    expected = cell(X).asnumpy()
    with recording(cell, dump_path, level=level):
        pickled = pickle.dumps(cell)
        loaded = pickle.loads(pickled)
        assert np.array_equal(loaded(X).asnumpy(), expected)
    assert b"msprobe" not in pickled
    for found in (loaded, pickle.loads(pickled), pickle.loads(pickle.dumps(loaded))):
        assert hooks(found) == [] and found.act is ops.tanh
        assert np.array_equal(found(X).asnumpy(), expected)


def test_calls_of_a_copy_are_not_the_cells(ms: Any, dump_path: Path) -> None:
    """A teacher or an average of the weights would falsify the dump."""
    net = nn.SequentialCell(nn.Dense(4, 2))
    with recording(net, dump_path, level="L0"):
        other = copy.deepcopy(net)
        for each in (net, other):
            mindspore.value_and_grad(lambda each=each: each(X).sum(), None, each.trainable_params())()
        copy.copy(net[0])(X)
    cells = [name for name in read_step(dump_path).data if name.startswith("Cell")]
    assert cells == [f"Cell.0.Dense.{kind}.0" for kind in ("forward", "backward", "parameters_grad")]


def test_what_a_compiler_makes_of_a_copy(ms: Any, dump_path: Path) -> None:
    net = Net()
    expected = net(X).asnumpy()
    with recording(net, dump_path, level="L0"):
        copied = copy.deepcopy(net)

        @mindspore.jit
        def compiled(x: Tensor) -> Tensor:
            return copied.scale(x)

        assert np.allclose(compiled(X).asnumpy(), net.scale(X).asnumpy())
    assert np.array_equal(copied(X).asnumpy(), expected)


@pytest.mark.parametrize("level", LEVELS)
def test_checkpoints_are_the_same(ms: Any, dump_path: Path, level: str) -> None:
    net, files = Net(), [str(dump_path.with_name(f"{name}.ckpt")) for name in ("before", "meanwhile")]
    mindspore.save_checkpoint(net, files[0])
    with recording(net, dump_path, level=level):
        mindspore.value_and_grad(lambda: net(X).sum(), None, net.trainable_params())()
        mindspore.save_checkpoint(net, files[1])
        copied = copy.deepcopy(net.scale.w)
    first, second = map(mindspore.load_checkpoint, files)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name].asnumpy(), second[name].asnumpy()) for name in first)
    assert np.array_equal(copied.asnumpy(), net.scale.w.asnumpy())


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_exported_graphs_hold_nothing_of_ours(ms: Any, dump_path: Path, level: str) -> None:
    """A call into Python would make the file useless in any other process."""
    net, file = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU()), str(dump_path.with_name("net.mindir"))
    with recording(net, dump_path, level=level):
        expected = net(X).asnumpy()
        mindspore.export(net, X, file_name=file, file_format="MINDIR")
    content = Path(file).read_bytes()
    assert b"Custom" not in content and b"frameworks/mindspore" not in content
    assert np.array_equal(nn.GraphCell(mindspore.load(file))(X).asnumpy(), expected)


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "ops": lambda: ops.relu,
    "ops of a primitive": lambda: ops.add,
    "mint": lambda: mint.matmul,
    "functional": lambda: mint.nn.functional.relu,
    "method": lambda: Tensor.reshape,
    "operator": lambda: Tensor.__add__,
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions_are_what_they_are(ms: Any, dump_path: Path, level: str, kind: str) -> None:
    """To tables, pickles, copies and whoever compares or inspects them, made before, meanwhile or after."""
    find = FUNCTIONS[kind]
    genuine = find()
    before, kinds = {genuine: 1}, [inspect.isfunction(genuine), inspect.isroutine(genuine)]
    with recording(Net(), dump_path, level=level):
        meanwhile = find()
        assert before[meanwhile] == {meanwhile: 1}[genuine] == 1 and meanwhile in [genuine]
        assert [inspect.isfunction(meanwhile), inspect.isroutine(meanwhile)] == kinds
        assert repr(meanwhile) == repr(genuine) and meanwhile.__doc__ == genuine.__doc__
        pickles = [pickle.dumps(each) for each in (meanwhile, [genuine], {meanwhile: 1})]
        assert pickle.loads(pickles[0]) == find() and pickle.loads(pickles[1]) == [meanwhile]
        stored = Net()
        stored.act, stored.table = meanwhile, {meanwhile: [meanwhile]}
    assert pickle.loads(pickles[0]) is genuine is find() and pickle.loads(pickles[2]) == before
    assert not any(b"msprobe" in each for each in pickles)
    assert stored.table[genuine] == [genuine] and stored.act == find()
    for made in (pickle.loads(pickle.dumps(stored.table)), copy.deepcopy(stored.table)):
        assert made[genuine][0] is genuine


class Activated(nn.Cell):
    """Holds functions as it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.act, self.other, self.third = ops.relu, mint.exp, mint.nn.functional.silu

    def construct(self, x: Any) -> Any:
        return self.act(x) + self.other(x) + self.third(x)


def test_compilers_know_functions_that_were_stored_meanwhile(ms: Any, dump_path: Path) -> None:
    def compiled() -> list[Any]:
        ways = [mindspore.jit(net), mindspore.jit(net.act), mindspore.jit(net.construct, capture_mode="bytecode")]
        ways += [ops.vmap(net.act), lambda x: mindspore.recompute(net, x), mindspore.grad(net.act)]
        return [way(X).asnumpy().tolist() for way in ways]

    net = Activated()
    expected = compiled()
    with recording(None, dump_path, level="L1"):
        net = Activated()
        assert compiled() == expected
    assert compiled() == expected
    before = read_step(dump_path).data.keys()
    net(X)
    assert read_step(dump_path).data.keys() == before
