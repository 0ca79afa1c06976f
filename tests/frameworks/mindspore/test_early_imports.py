"""Functions imported before start are recorded all the same, and what held them is as before after stop."""

from __future__ import annotations

import copy
import sys
import sysconfig
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

from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.support.stand_in import StandIn

SOURCE = """
import functools
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
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


def closing_over(act):
    def run(x):
        return act(x)
    return run


closed = closing_over(ops.erf)


def logged(function):
    @functools.wraps(function)
    def around(*args):
        return function(*args)
    return around


@logged
def decorated(x, act=ops.floor):
    return act(x)


def apply(act, x=None, also=None):
    return act(x) if also is None else also(act(x))


straight = functools.partial(ops.neg)
given = functools.partial(apply, ops.round)
named = functools.partial(apply, ops.erfc, also=ops.ceil)


@dataclass(frozen=True)
class Settings:
    act: object = ops.sinh
    more: list = field(default_factory=lambda: [])


class Slots:
    __slots__ = ("act", "unset")

    def __init__(self, act):
        self.act = act


class Tree:
    ACTS = {"log2": (ops.log2, 1)}

    class Leaf:
        act = staticmethod(ops.log10)

    def __init__(self, depth):
        self.children = [Tree(depth - 1)] if depth else []
        self.act = (ops.expm1,)
        self.itself = self


settings, slots, tree = Settings(more=[ops.cosh]), Slots(ops.asinh), Tree(3)
NESTED = OrderedDict(a=[{"b": (ops.atan, (ops.tan, "text"))}], c=defaultdict(list, d=[ops.log1p]))


class Holding(nn.Cell):
    def __init__(self):
        super().__init__()
        self.slots, self.acts, self.bound = Slots(ops.sin), {"first": [ops.cos]}, functools.partial(ops.exp)

    def construct(self, x):
        return self.bound(self.acts["first"][0](self.slots.act(x)))


holding = Holding()
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "user_net.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("user_net")
    del sys.modules["user_net"]


x = Tensor(np.array([1, 2], np.float32))
#: By its identity: names of this module are user code, too.
RELU = id(ops.relu)

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
    (lambda user: user.closed(x), ["Functional.erf"]),
    (lambda user: user.decorated(x), ["Functional.floor"]),
    (lambda user: user.straight(x), ["Functional.neg"]),
    (lambda user: user.given(x), ["Functional.round"]),
    (lambda user: user.named(x), ["Functional.erfc", "Functional.ceil"]),
    (lambda user: [user.settings.act(x), user.settings.more[0](x)], ["Functional.sinh", "Functional.cosh"]),
    (lambda user: user.Settings().act(x), ["Functional.sinh"]),
    (lambda user: user.slots.act(x), ["Functional.asinh"]),
    (lambda user: user.tree.children[0].children[0].children[0].itself.act[0](x), ["Functional.expm1"]),
    (lambda user: user.Tree.ACTS["log2"][0](x), ["Functional.log2"]),
    (lambda user: user.Tree.Leaf.act(x), ["Functional.log10"]),
    (
        lambda user: user.NESTED["a"][0]["b"][1][0](user.NESTED["a"][0]["b"][0](x)),
        ["Functional.atan", "Functional.tan"],
    ),
    (lambda user: user.NESTED["c"]["d"][0](x), ["Functional.log1p"]),
    # A Cell that is no model, since level L1 needs none.
    (lambda user: user.holding(x), ["Functional.sin", "Functional.cos", "Functional.exp"]),
]


def test_recorded_all_the_same(ms: Any, dump_path: Path, user: ModuleType) -> None:
    with recording(None, dump_path, level="L1"):
        for act, _ in ACTS:
            act(user)
    found = [entry.rsplit(".", 2)[0] for entry in read_step(dump_path).data]
    assert found == [name for _, expected in ACTS for name in expected]


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


def everything(user: ModuleType) -> list[Any]:
    leaf = user.tree.children[0].children[0]
    return [
        dict(vars(user)), dict(user.TABLE), list(user.LAYERS), dict(vars(user.Holder)), user.with_default.__defaults__,
        dict(user.with_default.__kwdefaults__), user.Holder.with_default.__defaults__,
        [cell.cell_contents for cell in user.closed.__closure__], user.decorated.__wrapped__.__defaults__,
        user.straight.func, user.given.args, dict(user.named.keywords),
        user.settings.act, list(user.settings.more), user.slots.act, leaf.act, user.Tree.ACTS["log2"],
        dict(vars(user.Tree.Leaf)), user.NESTED["a"][0]["b"], list(user.NESTED["c"]["d"]),
        user.holding.slots.act, list(user.holding.acts["first"]), user.holding.bound.func,
    ]  # fmt: skip


def identities(held: list[Any]) -> list[Any]:
    """What compares equal only if every object is the very same."""
    return [
        {key: id(each) for key, each in value.items()} if isinstance(value, dict)
        else [id(each) for each in value] if isinstance(value, list)
        else id(value)
        for value in held
    ]  # fmt: skip


def test_everything_is_put_back(ms: Any, dump_path: Path, user: ModuleType) -> None:
    before = everything(user)
    with recording(None, dump_path, level="L1"):
        pairs = zip(identities(everything(user)), identities(before), strict=True)
        assert not [place for place, (now, earlier) in enumerate(pairs) if now == earlier]
        assert everything(user)[1:3] == before[1:3]  # the same functions to whoever compares them
        copied = copy.copy(user.TABLE)
    assert identities(everything(user)) == identities(before)
    # A wrapper that was taken along only passes calls on.
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


def test_what_the_user_deleted_meanwhile(ms: Any, dump_path: Path, user: ModuleType) -> None:
    """It hinders nothing else from being put back."""
    before = identities(everything(user))
    relu = ops.relu
    with recording(None, dump_path, level="L1"):
        del user.slots.act, user.TABLE["abs"], user.from_namespace
        assert ops.relu is not relu
    assert ops.relu is relu and not hasattr(user.slots, "act") and not hasattr(user, "from_namespace")
    user.slots.act, user.TABLE["abs"], user.from_namespace = ops.asinh, ops.abs, ops.tanh
    assert identities(everything(user)) == before


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


def test_what_a_library_holds_is_left_alone_also_where_users_hold_it(
    ms: Any, dump_path: Path, user: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library's table, decorator and object stay as they are in a user's module."""
    library = ModuleType("some_library")
    vars(library)["__file__"] = f"{sysconfig.get_paths()['purelib']}/some_library.py"
    source = (
        "import functools\nfrom mindspore import ops\nTABLE = {'act': ops.relu}\n"
        "class Thing:\n    def __init__(self): self.act = ops.relu\n"
        "def decorator(function, act=ops.relu):\n"
        "    @functools.wraps(function)\n    def around(x, after=ops.relu): return after(act(function(x)))\n"
        "    return around\n"
    )
    exec(compile(source, library.__file__, "exec"), vars(library))
    monkeypatch.setitem(sys.modules, "some_library", library)
    user.TABLE_OF_LIBRARY, user.thing = library.TABLE, library.Thing()
    user.around = library.decorator(user.with_default)
    assert user.around.__module__ == "user_net"
    with recording(None, dump_path, level="L1"):
        held = [user.TABLE_OF_LIBRARY["act"], user.thing.act, user.around.__defaults__[0]]
        assert [id(function) for function in held] == [RELU] * 3
        assert RELU in [id(cell.cell_contents) for cell in user.around.__closure__]
        user.around(x)  # the user's function is found behind it
    recorded = list(read_step(dump_path).data)
    assert recorded[:2] == ["Functional.sqrt.0.forward", "Functional.log.0.forward"]
    assert not any(entry.startswith("Functional.relu") for entry in recorded)


def test_large_tables_and_endless_objects_are_bounded(ms: Any, dump_path: Path, user: ModuleType) -> None:
    """Data is not searched; what is nearest is found all the same, and `start` stays quick."""
    user.DATA = [ops.relu] * 5000
    user.FOREST = [user.Tree(0) for _ in range(900)]
    for tree in user.FOREST:
        tree.children = [user.Tree(0) for _ in range(100)]
    debugger = PrecisionDebugger(dump_path=dump_path, level="L1")
    begin = time.thread_time()
    debugger.start()
    seconds = time.thread_time() - begin
    assert id(user.DATA[0]) == RELU and id(user.relu) != RELU and isinstance(user.tree.act[0], StandIn)
    debugger.stop()
    debugger.step()
    assert user.FOREST[-1].children[-1].act[0] is user.FOREST[0].act[0] is ops.expm1
    print(f"{seconds * 1e3:.0f} ms")
    assert seconds < 2


def test_cheap(ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred user modules of two hundred names are searched in a few milliseconds."""
    from msprobe_ms.recording.hooks.early_imports import EarlyBindings

    early, wrappers = EarlyBindings(), {id(ops.relu): (ops.relu, abs)}

    def seconds() -> float:
        found = []
        for _ in range(5):
            begin = time.thread_time()
            early.install(wrappers, [])
            early.remove()
            found.append(time.thread_time() - begin)
        return min(found)

    without = seconds()  # the modules of other tests are a user's, too
    for number in range(200):
        module = ModuleType(f"many_{number}")
        vars(module).update({f"name_{i}": i for i in range(200)}, __file__=str(dump_path / "many.py"), relu=ops.relu)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    taken = seconds() - without
    print(f"{taken * 1e3:.1f} ms")
    assert taken < 0.1
    assert vars(sys.modules["many_0"])["relu"] is ops.relu


def test_a_net_of_functions(ms: Any, dump_path: Path) -> None:
    """nn's own cells keep functions as attributes, too."""
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=ops.relu)
    with recording(layer, dump_path, level="mix"):
        layer(Tensor(np.ones((1, 2, 4), np.float32)))
    assert "Functional.relu.0.forward" in read_step(dump_path).data
