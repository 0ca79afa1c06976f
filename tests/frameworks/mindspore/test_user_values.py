"""Values that users hand to calls of MindSpore: odd containers and tensors, which recording must not touch."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from recording import Step, read_step, recording
from repository import PACKAGE

from msprobe_ms.dump.writing.writer import ERROR_LOG

#: A recorded call with an argument of any kind takes no longer, in seconds of the processor; a tenth is usual.
LONGEST = 3.0


@pytest.fixture(autouse=True)
def dynamic(ms: Any) -> None:
    """All tests here run in dynamic graphs."""


class Inner(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x: Tensor, value: Any) -> Tensor:
        return self.fc(x)


class Outer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def construct(self, x: Tensor, value: Any) -> Tensor:
        return self.inner(x, value)


def recorded(dump_path: Path, value: Any, **keys: Any) -> tuple[Any, list[str], Step]:
    """The leaf of an argument, the lines of the log of errors, and the step."""
    net, x = Outer(), Tensor(np.ones((2, 4), np.float32))
    with recording(net, dump_path, **keys):
        spent = time.process_time()
        mindspore.value_and_grad(lambda x: net(x, value).sum(), None, net.trainable_params())(x)
        assert time.process_time() - spent < LONGEST
    step = read_step(dump_path, troubles=True)
    assert step.forward("Cell.inner.Inner")["output"][0]["shape"] == [2, 4]
    assert step.backward("Cell.inner.fc.Dense")["input"][0]["shape"] == [2, 4]
    log = step.folder / ERROR_LOG
    lines = log.read_text().splitlines() if log.exists() else []
    return step.forward("Cell.inner.Inner")["input_args"][1], lines, step


@dataclasses.dataclass
class Node:
    name: Any
    parent: Any = None
    children: list[Any] = dataclasses.field(default_factory=list)


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_what_contains_itself(dump_path: Path, level: str) -> None:
    root = Node("root")
    root.children = [Node(str(number), root) for number in range(3)]
    first, second, third = (Node(Tensor([number])) for number in range(3))
    first.children, second.parent, second.children, third.parent = [second], first, [third], second
    leaf, lines, _ = recorded(dump_path, (root, first), level=level)
    child = {"name": {"type": "str", "value": "1"}, "parent": None, "children": []}
    assert leaf[0]["children"][1] == child and leaf[1]["children"][0]["children"][0]["name"]["Max"] == 2
    assert not lines


def test_gradients_of_what_contains_itself(dump_path: Path) -> None:
    class Reads(nn.Cell):
        def construct(self, node: Node) -> list[Any]:
            return [node.children[0].name * 2]

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.reads = Reads()

        def construct(self, x: Tensor) -> Tensor:
            root = Node(x)
            root.children = [Node(x * 3, root)]
            return self.reads(root)[0].sum()

    net = Net()
    with recording(net, dump_path):
        mindspore.grad(net)(Tensor([1.0, 2.0]))
    (gradients,) = read_step(dump_path).backward("Cell.reads.Reads")["output"]
    assert gradients["children"][0]["name"]["Max"] == 2


class Lazy(Mapping):
    reads = 0

    def __getitem__(self, key: str) -> Any:
        Lazy.reads += 1
        return 1

    def __iter__(self) -> Iterator[str]:
        Lazy.reads += 1
        return iter("a")

    def __len__(self) -> int:
        Lazy.reads += 1
        return 1


class Impostor:
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise KeyboardInterrupt


def test_code_of_the_users_does_not_run(dump_path: Path) -> None:
    # MindSpore itself asks arguments of a Cell for their class, but not those in an object.
    Lazy.reads = 0
    leaf, lines, _ = recorded(dump_path, Node(Lazy(), Impostor(), [(number for number in range(3))]))
    assert leaf == {"name": None, "parent": None, "children": [None]} and not lines and not Lazy.reads


def test_much_plain_data_is_cut(dump_path: Path) -> None:
    leaf, lines, _ = recorded(dump_path, Node("x" * 10**8, None, list(range(10**6))))
    assert leaf["children"][-1] == {"type": "omitted", "value": "999002 of 1000000 members"}
    assert leaf["name"]["value"] == "x" * 1000 + "… (100000000 characters)"
    assert len(lines) == 1 and "cut" in lines[0]


def freed(tensor: Tensor, size: int = 0) -> Tensor:
    tensor.untyped_storage().resize_(size)
    return tensor


def ones(*shape: int) -> Tensor:
    return ops.ones(shape) * 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: freed(ones(1000)),
        lambda: freed(ones(5)),
        lambda: freed(ones(1000), 40),
        lambda: (view := ones(50, 100)[10:, ::2], freed(view))[0],
        lambda: freed(ones(5).astype(mindspore.bfloat16)),
    ],
    ids=["freed", "small", "shrunk", "view", "bfloat16"],
)
@pytest.mark.parametrize(("level", "task"), [("L0", "statistics"), ("mix", "tensor")])
def test_freed_memory_is_not_read(dump_path: Path, make: Callable[[], Tensor], level: str, task: str) -> None:
    tensor = make()
    leaf, lines, _ = recorded(dump_path, [tensor], level=level, task=task)
    assert leaf[0]["shape"] == list(tensor.shape) and leaf[0]["dtype"] == str(tensor.dtype)
    assert [leaf[0][figure] for figure in ("Max", "Min", "Mean", "Norm")] == [None] * 4
    assert "data_name" not in leaf[0] and not lines


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("dtype", [mindspore.float32, mindspore.bool_, mindspore.bfloat16], ids=str)
def test_expanded_tensors_cost_what_they_hold(dump_path: Path, dtype: Any, task: str) -> None:
    expanded = mint.broadcast_to(Tensor([[3.0], [0.0]]).astype(dtype), (2, 500_000_000))
    leaf, lines, _ = recorded(dump_path, [expanded], task=task)
    if dtype == mindspore.bool_:
        assert (leaf[0]["Max"], leaf[0]["Min"]) == (True, False)
    else:
        assert (leaf[0]["Max"], leaf[0]["Min"], leaf[0]["Mean"]) == (3, 0, 1.5)
        assert leaf[0]["Norm"] == pytest.approx(3 * 500_000_000**0.5)
    assert "data_name" not in leaf[0] and len(lines) == (task == "tensor")


def test_a_small_expanded_tensor_has_its_file(dump_path: Path) -> None:
    leaf, lines, step = recorded(dump_path, [mint.broadcast_to(Tensor([[3.0], [0.0]]), (2, 5))], task="tensor")
    assert step.array(leaf[0]).tolist() == [[3.0] * 5, [0.0] * 5] and not lines


def _for_us(method: Any) -> Any:
    """``method``, which ends the process when this package calls it."""

    def of_the_user(self: Any, *args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
            raise SystemExit("code of the user ran")
        return method(self, *args, **kwargs)

    return of_the_user


class Hostile(Tensor):
    shape, dtype = (property(_for_us(getattr(Tensor, name).__get__)) for name in ("shape", "dtype"))
    asnumpy, is_contiguous, stride = (_for_us(getattr(Tensor, name)) for name in ("asnumpy", "is_contiguous", "stride"))


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("of_class", [True, False])
def test_methods_of_a_tensor_class_do_not_run(of_class: bool, task: str, dump_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    tensor = Hostile(values) if of_class else Tensor(values)
    if not of_class:
        for name in ("asnumpy", "is_contiguous", "stride"):
            setattr(tensor, name, _for_us(getattr(Tensor, name)).__get__(tensor))
    leaf, lines, _ = recorded(dump_path, tensor, task=task)
    assert (leaf["type"], leaf["dtype"], leaf["shape"], leaf["Max"]) == ("mindspore.Tensor", "Float32", [3, 2], 5.0)
    assert ("data_name" in leaf) == (task == "tensor") and not lines
