"""Functions imported before start are recorded all the same, and what held them is as before after stop."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from recording import read_step, recording

SOURCE = """
from mindspore import Tensor, mint, nn, ops
from mindspore.ops import relu, exp as exponential
import mindspore.ops as o

from_namespace = o.tanh
TABLE = {"abs": ops.abs, "own": len}
LAYERS = [ops.sin, 3, ops.cos]
add = Tensor.add


class Holder:
    static = staticmethod(ops.sigmoid)

    def with_default(self, x, act=ops.square):
        return act(x)


def with_default(x, act=ops.sqrt, *, last=ops.log):
    return last(act(x))


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.act = ops.gelu

    def construct(self, x):
        return self.act(relu(x))


def inner():
    return relu
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "user_net.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("user_net")
    del sys.modules["user_net"]


x = Tensor(np.array([1, 2], np.float32))

ACTS: list[tuple[Callable[[Any], Any], list[str]]] = [
    (lambda user: user.relu(x), ["Functional.relu"]),
    (lambda user: user.exponential(x), ["Functional.exp"]),
    (lambda user: user.from_namespace(x), ["Functional.tanh"]),
    (lambda user: user.TABLE["abs"](x), ["Functional.abs"]),
    (lambda user: [user.LAYERS[0](x), user.LAYERS[2](x)], ["Functional.sin", "Functional.cos"]),
    (lambda user: user.add(x, x), ["Tensor.add"]),
    (lambda user: [user.Holder.static(x), user.Holder().static(x)], ["Functional.sigmoid", "Functional.sigmoid"]),
    (lambda user: user.Holder().with_default(x), ["Functional.square"]),
    (lambda user: user.with_default(x), ["Functional.sqrt", "Functional.log"]),
    (lambda user: user.inner()(x), ["Functional.relu"]),
]


@pytest.mark.parametrize(("act", "expected"), ACTS)
def test_recorded_all_the_same(
    ms: Any, dump_path: Path, user: ModuleType, act: Callable[[Any], Any], expected: list[str]
) -> None:
    with recording(None, dump_path, level="L1"):
        act(user)
    assert [entry.rsplit(".", 2)[0] for entry in read_step(dump_path).data] == expected


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_held_by_a_cell_with_gradients(ms: Any, dump_path: Path, user: ModuleType, level: str) -> None:
    net = user.Block()
    expected = mindspore.grad(lambda a: net(a).sum())(x).asnumpy().copy()
    held = net.act
    with recording(net, dump_path, level=level, task="tensor"):
        found = mindspore.grad(lambda a: net(a).sum())(x).asnumpy()
    assert found.tobytes() == expected.tobytes()
    assert net.act is held
    step = read_step(dump_path)
    assert [name for name in step.data if name.startswith("Functional")] == [
        "Functional.relu.0.forward", "Functional.gelu.0.forward",
        "Functional.gelu.0.backward", "Functional.relu.0.backward",
    ]  # fmt: skip
    assert np.array_equal(step.array(step.backward("Functional.relu")["output"][0]), expected)


def test_a_wrapper_that_was_taken_along_only_passes_calls_on(ms: Any, dump_path: Path, user: ModuleType) -> None:
    genuine = user.TABLE["abs"]
    with recording(None, dump_path, level="L1"):
        copied = copy.copy(user.TABLE)
    assert copied["abs"] is not genuine
    assert user.TABLE["abs"] is genuine
    assert copied["abs"](x).asnumpy().tolist() == [1, 2]
    assert list(read_step(dump_path).data) == []


def test_compilers_read_the_genuine_function(ms: Any, dump_path: Path, user: ModuleType) -> None:
    """What is compiled while recording holds nothing of ours, and the names are wrapped again afterwards."""
    (Path(user.__file__ or "").with_name("user_jit.py")).write_text(
        "import mindspore\nfrom mindspore.ops import relu\n\n\n@mindspore.jit\ndef graph(x):\n    return relu(x) * 2\n"
    )
    compiled = __import__("user_jit")
    with recording(None, dump_path, level="L1"):
        assert compiled.graph(x).asnumpy().tolist() == [2, 4]
        user.relu(x)
    del sys.modules["user_jit"]
    assert list(read_step(dump_path).data) == ["Jit.graph.0.forward", "Functional.relu.0.forward"]


def test_what_the_user_changed_meanwhile_stays(ms: Any, dump_path: Path, user: ModuleType) -> None:
    with recording(None, dump_path, level="L1"):
        user.relu = mine = abs
        user.TABLE["abs"] = mine
        user.LAYERS.pop(0)
    assert user.relu is mine
    assert user.TABLE["abs"] is mine
    assert list(user.LAYERS) == [3, ops.cos]


class Lazy(ModuleType):
    """A module that must not be asked for anything."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")


class Proxy:
    """A value that must not be looked into."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    __hash__ = None  # type: ignore[assignment]


def test_nothing_is_triggered(ms: Any, dump_path: Path, user: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = Lazy("lazy_user")
    vars(lazy).update(
        __file__=user.__file__, proxy=Proxy(), early=ops.relu, kind=type("Meta", (type,), {})("C", (), {})
    )
    monkeypatch.setitem(sys.modules, "lazy_user", lazy)
    monkeypatch.setitem(sys.modules, "no_module", Proxy())  # type: ignore[arg-type]
    with recording(None, dump_path, level="L1"):
        vars(lazy)["early"](x)
    assert list(read_step(dump_path).data) == ["Functional.relu.0.forward"]


def test_libraries_are_left_alone(ms: Any, dump_path: Path) -> None:
    """Modules of MindSpore, of installed packages and of Python itself keep their own functions."""
    import mindspore.nn.layer.activation as layers

    held = {name: value for name, value in vars(layers).items() if callable(value)}
    with recording(None, dump_path, level="L1"):
        assert {name: value for name, value in vars(layers).items() if callable(value)} == held


def test_cheap(ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred user modules of two hundred names are searched in a few milliseconds."""
    from msprobe_ms.hooks.early import EarlyBindings

    for number in range(200):
        module = ModuleType(f"many_{number}")
        vars(module).update({f"name_{i}": i for i in range(200)}, __file__=str(dump_path / "many.py"), relu=ops.relu)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    early, wrappers = EarlyBindings(), {id(ops.relu): (ops.relu, abs)}
    seconds = []
    for _ in range(5):
        begin = time.process_time()
        early.install(wrappers, [])
        early.remove()
        seconds.append(time.process_time() - begin)
    print(f"{min(seconds) * 1e3:.1f} ms")
    assert min(seconds) < 0.1
    assert vars(sys.modules["many_0"])["relu"] is ops.relu


def test_a_net_of_functions(ms: Any, dump_path: Path) -> None:
    """nn's own cells keep functions as attributes, too."""
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=ops.relu)
    with recording(layer, dump_path, level="mix"):
        layer(Tensor(np.ones((1, 2, 4), np.float32)))
    assert "Functional.relu.0.forward" in read_step(dump_path).data
