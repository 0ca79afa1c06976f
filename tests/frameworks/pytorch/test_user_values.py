"""Values that users hand to calls of PyTorch: odd containers and tensors, which recording must not touch."""

from __future__ import annotations

import dataclasses
import gc
import json
import mmap
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recording import write_config
from thorough import sampled
from torch import nn
from torch._subclasses import FakeTensorMode

from msprobe_ms.arrays.torch_file import load_tensor
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER
from msprobe_ms.pytorch import PrecisionDebugger

#: A recorded call with an argument of any kind takes no longer, in seconds of the processor; a tenth is usual.
LONGEST = 3.0


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, value: Any) -> torch.Tensor:
        return self.fc(x)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor, value: Any) -> torch.Tensor:
        return self.inner(x, value)


@contextmanager
def recording(dump_path: Path, net: Any, level: str = "L0", task: str = "statistics", **keys: Any) -> Iterator[None]:
    debugger = PrecisionDebugger(write_config(dump_path, task=task, level=level, **keys))
    debugger.start(net)
    yield
    debugger.stop()
    debugger.step()


def read(dump_path: Path) -> tuple[dict[str, Any], list[str]]:
    """What is in dump.json, and the lines of the log of errors."""
    (folder,) = (dump_path / "step0").iterdir()
    log = folder / ERROR_LOG
    lines = log.read_text().splitlines() if log.exists() else []
    return json.loads((folder / "dump.json").read_text()), lines


def recorded(dump_path: Path, value: Any, level: str = "L0", task: str = "statistics", **keys: Any) -> tuple[Any, ...]:
    """The leaf of an argument, the lines of the log of errors, and whether the dump says that it is incomplete."""
    net, x = Outer(), torch.randn(2, 4)
    with recording(dump_path, net, level, task, **keys):
        spent = time.process_time()
        net(x, value).sum().backward()
        assert time.process_time() - spent < LONGEST
    dump, lines = read(dump_path)
    assert dump["data"]["Module.inner.Inner.forward.0"]["output"][0]["shape"] == [2, 4]
    assert "Module.inner.fc.Linear.backward.0" in dump["data"]
    return dump["data"]["Module.inner.Inner.forward.0"]["input_args"][1], lines, "incomplete" in dump


# -- containers --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Node:
    name: str
    parent: Any = None
    children: list[Any] = dataclasses.field(default_factory=list)


def tree() -> Node:
    root = Node("root")
    root.children = [Node(str(number), root) for number in range(3)]
    return root


def cyclic_list() -> list[Any]:
    value: list[Any] = []
    value += [value, value]
    return value


def test_what_contains_itself(dump_path: Path) -> None:
    leaf, lines, incomplete = recorded(dump_path.with_name("list"), cyclic_list())
    assert (leaf, lines, incomplete) == ([None, None], [], False)
    leaf, lines, incomplete = recorded(dump_path.with_name("tree"), tree())
    child = {"name": {"type": "str", "value": "1"}, "parent": None, "children": []}
    assert leaf["children"][1] == child and leaf["parent"] is None and not lines and not incomplete


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_gradients_of_what_contains_itself(dump_path: Path, level: str) -> None:
    class Reads(nn.Module):
        def forward(self, node: Node) -> Node:
            return Node("result", node, [node.children[0].name * 2])

    net = nn.Module()
    net.reads = Reads()
    root = Node(torch.ones(3, requires_grad=True))
    root.children = [Node(torch.ones(2, requires_grad=True), root)]
    with recording(dump_path, net, level):
        net.reads(root).children[0].sum().backward()
    dump, lines = read(dump_path)
    (gradients,) = dump["data"]["Module.reads.Reads.backward.0"]["output"]
    assert gradients["children"][0]["name"]["Max"] == 2 and not lines


def shared(leaf: Any) -> Any:
    value = [leaf]
    for _ in range(40):
        value = [value, value]
    return value


PLAIN: dict[str, Callable[[], Any]] = {
    "shared": lambda: shared(1),
    "a million integers": lambda: list(range(10**6)),
    "a million pairs": lambda: [(1, 2)] * 10**6,
    "a long dictionary": lambda: dict.fromkeys(range(10**6), 1.5),
    "a long text": lambda: "x" * 1_100_000_000,
    "a thousand long texts": lambda: ["x" * 10**6] * 10**3,
    "a long key": lambda: {"x" * 10**9: 1},
    "deep": lambda: reduce(lambda value, _: [value], range(500), []),
}  # fmt: skip


@pytest.mark.parametrize("kind", sampled(PLAIN, lambda kind: kind != "a long key"))
def test_much_plain_data_is_cut(dump_path: Path, kind: str) -> None:
    value = PLAIN[kind]()
    leaf, lines, incomplete = recorded(dump_path, value)
    del value
    gc.collect()
    assert not incomplete
    assert len(lines) == (0 if kind == "a long key" else 1) and all("cut" in line for line in lines)
    (folder,) = (dump_path / "step0").iterdir()
    assert (folder / "dump.json").stat().st_size < 4 << 20
    if kind == "a million integers":
        assert len(leaf) == 1001 and leaf[-1] == {"type": "omitted", "value": "999000 of 1000000 members"}
    if kind == "a long text":
        assert leaf["value"] == "x" * 1000 + "… (1100000000 characters)"


def test_cut_data_compares(dump_path: Path) -> None:
    dumps = []
    for name, value in (("a", [*range(3000)]), ("b", [*range(3000)]), ("c", [*range(4000)])):
        torch.manual_seed(0)
        recorded(dump_path.with_name(name), value)
        dumps.append(read_dump(next((dump_path.with_name(name) / "step0").iterdir())))
    assert compare_dumps(dumps[0], dumps[1], Options()).verdict == "consistent"
    reasons = [row.reason for row in compare_dumps(dumps[0], dumps[2], Options()).rows]
    assert any("2000 of 3000 members" in reason for reason in reasons)


def test_tensors_that_are_too_many_are_told(dump_path: Path) -> None:
    leaf, lines, incomplete = recorded(dump_path, [torch.ones(1)] * 20_000)
    assert incomplete and "tensors among the rest are not recorded" in lines[0]
    assert leaf[-1]["type"] == "omitted" and leaf[0]["Max"] == 1 and len(leaf) > 9_000


class Lazy(Mapping):
    reads = 0

    def __getitem__(self, key: str) -> Any:
        Lazy.reads += 1
        return torch.ones(2)

    def __iter__(self) -> Iterator[str]:
        Lazy.reads += 1
        return iter("ab")

    def __len__(self) -> int:
        Lazy.reads += 1
        return 2


class Counting(dict):
    """A dictionary, list and dataclass whose methods tell that they were called."""

    calls = 0

    def _called(self, *_: Any) -> Any:
        Counting.calls += 1
        raise RuntimeError

    items = keys = values = get = __iter__ = __len__ = __getitem__ = __setitem__ = __contains__ = _called


class Popping(list):
    def __iter__(self) -> Iterator[Any]:
        while self:
            yield self.pop(0)


@dataclasses.dataclass
class Computed:
    a: Any
    b: Any = 3


Computed.a = property(Counting._called, lambda self, given: None)  # type: ignore[assignment]


class Impostor:
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise KeyboardInterrupt


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_code_of_the_users_does_not_run(dump_path: Path, level: str) -> None:
    Lazy.reads = Counting.calls = 0
    generator = (number for number in range(3))
    counting, popping = Counting(k=torch.ones(2)), Popping([torch.ones(3), 5])
    value = [Lazy(), counting, popping, Computed(1), Impostor(), generator, iter([1])]
    leaf, lines, _ = recorded(dump_path, value, level)
    assert (Lazy.reads, Counting.calls, list.__len__(popping), [*generator], lines) == (0, 0, 2, [0, 1, 2], [])
    assert leaf[0] is None and leaf[1]["k"]["shape"] == [2] and leaf[2][0]["shape"] == [3]
    assert leaf[3] == {"a": None, "b": {"type": "int", "value": 3}} and leaf[4:] == [None, None, None]


@dataclasses.dataclass
class ModelOutput(OrderedDict):
    """As those of transformers: a dictionary of the fields that are not None, and a dataclass."""

    logits: Any = None
    hidden: Any = None
    loss: Any = None

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            if (member := getattr(self, each.name)) is not None:
                OrderedDict.__setitem__(self, each.name, member)


def test_model_outputs(dump_path: Path) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> ModelOutput:
            return ModelOutput(logits=x * 2, hidden=(x + 1,))

    net = nn.Module()
    net.model = Model()
    with recording(dump_path, net):
        x = torch.ones(2, requires_grad=True)
        output = net.model(x)
        (output.logits.sum() + output.hidden[0].sum()).backward()
    dump, lines = read(dump_path)
    (leaf,) = dump["data"]["Module.model.Model.forward.0"]["output"]
    assert [*leaf] == ["logits", "hidden"] and leaf["hidden"][0]["Max"] == 2 and not lines
    (gradient,) = dump["data"]["Module.model.Model.backward.0"]["input"]
    assert gradient["logits"]["Max"] == 1 and gradient["hidden"][0]["Max"] == 1


# -- tensors -----------------------------------------------------------------------------------------------------------


def freed(tensor: torch.Tensor, size: int = 0) -> torch.Tensor:
    tensor.untyped_storage().resize_(size)
    return tensor


class Wrapper(torch.Tensor):
    """A tensor that has no memory: its class computes everything."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("computes nothing")


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.ones(5)


def leaked(transform: Callable[..., Any]) -> torch.Tensor:
    kept: list[torch.Tensor] = []

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.append(x)
        return x.sum()

    transform(keep)(torch.ones(3, 5))
    return kept[0]


WITHOUT_VALUES: dict[str, Callable[[], torch.Tensor]] = {
    "freed": lambda: freed(torch.ones(5000)),
    "small and freed": lambda: freed(torch.ones(5)),
    "shrunk": lambda: freed(torch.ones(5000), 40),
    "freed parameter": lambda: freed(nn.Parameter(torch.ones(5))),
    "a view of freed memory": lambda: freed(torch.ones(50, 100)[10:, ::2]),
    "a view that reaches too far": lambda: freed(torch.ones(50, 100)[:, 1], 4000),
    "freed sparse values": lambda: (sparse := torch.eye(5).to_sparse(), freed(sparse._values()))[0],
    "freed quantized": lambda: freed(torch.quantize_per_tensor(torch.ones(5), 0.1, 0, torch.qint8)),
    "without its quantizer": lambda: torch.empty(5, dtype=torch.qint8),
    "packed and without its quantizer": lambda: torch.empty(5, 4, dtype=torch.quint4x2),
    "meta": lambda: torch.ones(5, device="meta"),
    "meta, huge": lambda: torch.empty(10**6, 10**6, device="meta"),
    "fake": fake,
    "wrapper": lambda: Wrapper(torch.ones(5)),
    "packed": lambda: torch.ones(5, dtype=torch.uint8).view(torch.bits8),
    "mapped": lambda: leaked(torch.func.vmap),
    "differentiated": lambda: leaked(torch.func.grad),
}


@pytest.mark.filterwarnings("ignore:.*quantize.*are deprecated:UserWarning")
@pytest.mark.parametrize(("level", "task"), [("L0", "statistics"), ("mix", "tensor")])
@pytest.mark.parametrize("kind", WITHOUT_VALUES)
def test_tensors_without_values(dump_path: Path, kind: str, level: str, task: str) -> None:
    tensor = WITHOUT_VALUES[kind]()
    leaf, lines, incomplete = recorded(dump_path, tensor, level, task)
    assert leaf["shape"] == list(tensor.shape) and leaf["dtype"] == str(tensor.dtype)
    assert [leaf[figure] for figure in ("Max", "Min", "Mean", "Norm")] == [None] * 4
    assert "data_name" not in leaf and "Sketch" not in leaf and not incomplete and not lines
    dump = read_dump(next((dump_path / "step0").iterdir()))
    assert compare_dumps(dump, dump, Options()).verdict == "consistent"


@pytest.mark.filterwarnings("ignore:.*Sparse CSR:UserWarning")
@pytest.mark.parametrize(("level", "task"), [("L0", "statistics"), ("mix", "tensor")])
def test_a_sparse_tensor_whose_indices_lead_elsewhere(dump_path: Path, level: str, task: str) -> None:
    rows, columns, values = torch.tensor([0, 1, 2]), torch.tensor([0, 10**12]), torch.tensor([1.0, 2.0])
    wrong = torch.sparse_csr_tensor(rows, columns, values, (2, 2), check_invariants=False)
    leaf, lines, incomplete = recorded(dump_path, wrong, level, task)
    assert leaf is None and lines and incomplete


@pytest.mark.parametrize("section", [{"summary_mode": "md5"}, {"async_dump": True}])
def test_freed_tensors_in_other_modes(dump_path: Path, section: dict[str, Any]) -> None:
    task = "tensor" if "async_dump" in section else "statistics"
    leaf, _, incomplete = recorded(dump_path, freed(torch.ones(5)), "mix", task, **section)
    assert leaf["Max"] is None and not incomplete


HELD: dict[str, Callable[[], torch.Tensor]] = {
    "empty": lambda: torch.ones(0, 10**9),
    "view": lambda: torch.ones(50, 100)[10:, ::2],
    "expanded": lambda: torch.full((1,), 2.0).expand(7, 5),
    "unfolded": lambda: torch.arange(10.0).unfold(0, 4, 1),
    "sparse": lambda: torch.eye(5).to_sparse(),
    "sparse rows": lambda: torch.eye(5).to_sparse_csr(),
    "conjugated": lambda: torch.full((3,), 1 + 2j).conj(),
    "imaginary": lambda: torch.full((3,), 1 + 2j).conj().imag,
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8),
    "subclass": lambda: torch.ones(3).as_subclass(nn.Parameter),
}


@pytest.mark.filterwarnings("ignore:.*quantize.*are deprecated:UserWarning", "ignore:.*[Ss]parse:UserWarning")
@pytest.mark.parametrize("kind", HELD)
def test_tensors_with_values(dump_path: Path, kind: str) -> None:
    tensor = HELD[kind]()
    leaf, lines, _ = recorded(dump_path, tensor, task="tensor")
    (folder,) = (dump_path / "step0").iterdir()
    stored = load_tensor(folder / TENSOR_FOLDER / leaf["data_name"])
    dense = tensor.dequantize() if tensor.is_quantized else tensor
    dense = (dense if dense.layout is torch.strided else dense.to_dense()).detach().resolve_conj().resolve_neg()
    assert np.array_equal(stored, dense.numpy()) and not lines
    if dense.numel() and not dense.is_complex():
        assert (leaf["Max"], leaf["Min"]) == (dense.max().item(), dense.min().item())


def test_tensors_of_few_bits(dump_path: Path) -> None:
    tensor = torch.arange(4, dtype=torch.uint8).view(torch.uint4)
    leaf, lines, _ = recorded(dump_path, tensor, task="tensor")
    (folder,) = (dump_path / "step0").iterdir()
    assert load_tensor(folder / TENSOR_FOLDER / leaf["data_name"]).tolist() == [0, 1, 2, 3] and not lines
    assert (leaf["dtype"], leaf["Max"], leaf["Min"]) == ("torch.uint4", 3, 0)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested_tensors(dump_path: Path, layout: torch.layout) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.full((3, 4), 2.0)], layout=layout)
    leaf, lines, _ = recorded(dump_path, nested, task="tensor")
    assert [(each["shape"], each["Max"]) for each in leaf] == [([2, 4], 1), ([3, 4], 2)]
    assert all("data_name" in each for each in leaf) and not lines


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
@pytest.mark.parametrize("is_leaf", [False, True])
def test_gradients_flow_through_nested_tensors(dump_path: Path, layout: torch.layout, is_leaf: bool) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=layout, requires_grad=is_leaf)
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    with recording(dump_path, net, "mix", "statistics"):
        sum(part.sum() for part in net(nested).unbind()).backward()
    dump, lines = read(dump_path)
    gradients = dump["data"]["Module.1.Linear.backward.0"]["input"][0]
    assert [each["shape"] for each in gradients] == [[2, 4], [3, 4]] and not lines


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("later", [False, True])
def test_expanded_tensors_cost_what_they_hold(dump_path: Path, task: str, later: bool) -> None:
    expanded = torch.tensor([[3.0], [-4.0]]).expand(2, 250_000_000)
    keys = {"async_dump": True} if later else {}
    leaf, lines, incomplete = recorded(dump_path, expanded, task=task, **keys)
    assert (leaf["shape"], leaf["Max"], leaf["Min"], leaf["Mean"]) == ([2, 250_000_000], 3, -4, -0.5)
    assert leaf["Norm"] == pytest.approx(5 * 250_000_000**0.5)
    assert not lines and not incomplete
    if task == "tensor":
        (folder,) = (dump_path / "step0").iterdir()
        path = folder / TENSOR_FOLDER / leaf["data_name"]
        assert path.stat().st_size < 10_000
        stored = load_tensor(path)
        assert stored.shape == (2, 250_000_000) and stored[1, 249_999_999] == -4


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(1).expand(10**11),
        lambda: torch.ones(10**6).unfold(0, 10**5, 1),
        lambda: torch.sparse_coo_tensor(torch.tensor([[5], [6]]), torch.tensor([2.0]), (10**6, 10**6)),
    ],
    ids=["expanded", "overlapping", "sparse"],
)
def test_tensors_that_show_too_much_have_no_files(dump_path: Path, make: Callable[[], Any], task: str) -> None:
    tensor = make()
    leaf, lines, incomplete = recorded(dump_path, tensor, task=task)
    assert leaf["shape"] == list(tensor.shape) and "data_name" not in leaf
    if tensor.layout is not torch.strided:
        assert (leaf["Max"], leaf["Min"], leaf["Mean"], leaf["Norm"]) == (2, 0, 2e-12, 2)
    assert incomplete == (task == "tensor") and len(lines) == (task == "tensor")


# -- arrays of numpy ---------------------------------------------------------------------------------------------------


class Loud(np.ndarray):
    def __array_finalize__(self, other: Any) -> None:
        if other is not None and getattr(other, "armed", False):
            raise RuntimeError

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError

    __array_function__ = max = min = sum = ravel = __getitem__ = __len__ = __array_ufunc__


def test_arrays(dump_path: Path) -> None:
    loud = np.arange(3.0).view(Loud)
    loud.armed = True
    kinds = [
        loud,
        np.ma.masked_array([1.0, 5.0], mask=[False, True]),
        np.empty((0, 10**9)),
        np.broadcast_to(np.float32(2), (10**6, 10**5)),
        np.array([{}, torch.ones(2)], object),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.zeros(2, [("a", "f4")]),
    ]
    leaf, lines, _ = recorded(dump_path, kinds)
    assert [each and (each["shape"], each["Max"]) for each in leaf] == [
        ([3], 2), ([2], 5), ([0, 10**9], None), ([10**6, 10**5], 2), None, None, None,
    ]  # fmt: skip
    assert not lines


def test_arrays_in_files(dump_path: Path, tmp_path: Path) -> None:
    whole, cut = (
        np.memmap(tmp_path / name, np.float32, "w+", shape=(10 * mmap.PAGESIZE,)) for name in ("whole", "cut")
    )
    whole[:] = 3
    (tmp_path / "cut").write_bytes(b"")  # reading it ends a process
    large = np.memmap(tmp_path / "large", np.uint8, "w+", shape=(10**11,))
    leaf, lines, _ = recorded(dump_path, [whole[5:], cut, large])
    assert [each["Max"] for each in leaf] == [3, None, None] and not lines
