"""Calls kept apart: repeated, shared, recursive, failing and in-place calls, every shape of argument and result."""

from __future__ import annotations

import gc
import weakref
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from combinations import pairwise
from mindspore import Parameter, Tensor, nn, ops
from recording import Step, read_step, recording

LEVELS = ("L0", "mix")

Point = namedtuple("Point", ["x", "y"])


def tensor(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


def values(item: Any) -> list[float]:
    return item.asnumpy().tolist()


class Scale(nn.Cell):
    """``factor * x``: the gradient of its input is ``factor`` times that of its output."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def construct(self, x: Tensor) -> Tensor:
        return x * self.factor


class Net(nn.Cell):
    """A net whose construct is a function of the test's, with the given cells in it."""

    def __init__(self, body: Callable[..., Any], **cells: nn.Cell) -> None:
        super().__init__()
        self.body = body
        for name, cell in cells.items():
            setattr(self, name, cell)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        return self.body(self, *args, **kwargs)


class Child(nn.Cell):
    """A cell whose construct is a function of the test's."""

    def __init__(self, body: Callable[..., Any]) -> None:
        super().__init__()
        self.body = body

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        return self.body(*args, **kwargs)


def run(make: Callable[[], nn.Cell], dump_path: Path, *args: Any, level: str = "L0", **keys: Any) -> Step:
    """Loss and gradient of ``make()`` on ``args``, without and with the tool: equal bits; the dump."""

    def gradients(net: nn.Cell) -> Any:
        positions = tuple(range(len(args)))
        loss, grads = mindspore.value_and_grad(lambda *a: net(*a).sum(), positions)(*fresh(args))
        grads = grads if isinstance(grads, tuple) else (grads,)
        return loss.asnumpy().tobytes(), [grad.asnumpy().tobytes() for grad in grads]

    expected = gradients(make())
    net = make()
    with recording(net, dump_path, level=level, task="tensor", **keys):
        found = gradients(net)
    assert found == expected
    return read_step(dump_path)


def fresh(args: Any) -> Any:
    return [Tensor(arg.asnumpy().copy()) if isinstance(arg, Tensor) else arg for arg in args]


def first(step: Step, entry: str, field: str) -> list[float]:
    return step.array(step.data[entry][field][0]).tolist()


# -- repeated, shared, recursive ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_a_cell_called_twice_pairs_each_backward_with_its_forward(ms: Any, dump_path: Path, level: str) -> None:
    step = run(
        lambda: Net(lambda net, x: net.cube(net.cube(x) * 5), cube=Child(lambda x: x * x * x)),
        dump_path, tensor(1, 2), level=level,
    )  # fmt: skip
    assert step.calls("Cell.cube.Child") == [
        "Cell.cube.Child.forward.0", "Cell.cube.Child.forward.1",
        "Cell.cube.Child.backward.1", "Cell.cube.Child.backward.0",
    ]  # fmt: skip
    x = np.array([1, 2], np.float32)
    inner = 5 * x**3
    assert first(step, "Cell.cube.Child.forward.0", "input_args") == x.tolist()
    assert first(step, "Cell.cube.Child.forward.1", "input_args") == inner.tolist()
    assert first(step, "Cell.cube.Child.backward.1", "input") == [1, 1]
    assert first(step, "Cell.cube.Child.backward.1", "output") == (3 * inner**2).tolist()
    assert first(step, "Cell.cube.Child.backward.0", "input") == (5 * 3 * inner**2).tolist()
    assert first(step, "Cell.cube.Child.backward.0", "output") == (5 * 3 * inner**2 * 3 * x**2).tolist()


def test_a_cell_called_twice_on_inputs_without_gradient(ms: Any, dump_path: Path) -> None:
    """The case MindSpore's own backward hooks pair wrongly."""
    net = nn.SequentialCell(nn.Dense(2, 3))
    dense = net[0]
    a, b = Tensor(np.ones((1, 2), np.float32)), Tensor(np.full((1, 2), 2, np.float32))
    with recording(net, dump_path, task="tensor"):
        mindspore.value_and_grad(lambda: (dense(a) * 3).sum() + (dense(b) * 7).sum(), None, net.trainable_params())()
    step = read_step(dump_path)
    assert first(step, "Cell.0.Dense.backward.0", "input") == [[3, 3, 3]]
    assert first(step, "Cell.0.Dense.backward.1", "input") == [[7, 7, 7]]


def test_a_shared_cell_is_recorded_once_under_its_first_name(ms: Any, dump_path: Path) -> None:
    def make() -> nn.Cell:
        shared = Scale(2)
        return Net(lambda net, x: net.again(net.one(x)), one=shared, again=shared)

    step = run(make, dump_path, tensor(1, 2))
    assert list(step.data) == [
        "Cell.one.Scale.forward.0", "Cell.one.Scale.forward.1", "loss.0.debug",
        "Cell.one.Scale.backward.1", "Cell.one.Scale.backward.0",
    ]  # fmt: skip
    assert first(step, "Cell.one.Scale.backward.0", "output") == [4, 4]


class Recursive(nn.Cell):
    """Calls itself ``depth`` times; with ``fails`` the innermost call raises and the one around it catches."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.leaf = Scale(3)
        self.fails = fails

    def construct(self, x: Tensor, depth: int) -> Tensor:
        if depth == 0:
            if self.fails:
                raise ValueError("innermost")
            return self.leaf(x)
        try:
            return self(x * 2, depth - 1) + self.leaf(x)
        except ValueError:
            return self.leaf(x * 5)


@pytest.mark.parametrize("level", LEVELS)
def test_a_recursive_cell(ms: Any, dump_path: Path, level: str) -> None:
    step = run(lambda: Net(lambda net, x: net.tree(x, 2), tree=Recursive()), dump_path, tensor(1, 2), level=level)
    tree = "Cell.tree.Recursive"
    assert [name for name in step.data if name.startswith(tree)] == [
        *(f"{tree}.forward.{index}" for index in (2, 1, 0)), *(f"{tree}.backward.{index}" for index in (2, 1, 0)),
    ]  # fmt: skip
    assert [first(step, f"{tree}.forward.{i}", "input_args") for i in range(3)] == [[1, 2], [2, 4], [4, 8]]
    assert [first(step, f"{tree}.forward.{i}", "output") for i in range(3)] == [[21, 42], [18, 36], [12, 24]]
    assert [first(step, f"{tree}.backward.{i}", "output") for i in range(3)] == [[21, 21], [9, 9], [3, 3]]
    for direction in ("forward", "backward"):
        parents = [step.construct[f"{tree}.{direction}.{index}"] for index in range(3)]
        assert parents == [None, f"{tree}.{direction}.0", f"{tree}.{direction}.1"]
        # The leaf is called on the way out: in the innermost call first.
        leaf_parents = [step.construct[f"Cell.tree.leaf.Scale.{direction}.{index}"] for index in range(3)]
        assert leaf_parents == [f"{tree}.{direction}.{index}" for index in (2, 1, 0)]


@pytest.mark.parametrize("level", LEVELS)
def test_recursion_with_a_caught_exception(ms: Any, dump_path: Path, level: str) -> None:
    step = run(
        lambda: Net(lambda net, x: net.after(net.tree(x, 2)), tree=Recursive(fails=True), after=Scale(7)),
        dump_path, tensor(1, 2), level=level,
    )  # fmt: skip
    tree, leaf = "Cell.tree.Recursive", "Cell.tree.leaf.Scale"
    # Call 2 raised: no record. Call 1 caught it.
    assert {name for name in step.data if name.startswith(tree)} == {
        f"{tree}.{direction}.{index}" for direction in ("forward", "backward") for index in (0, 1)
    }
    assert step.construct[f"{leaf}.forward.0"] == f"{tree}.forward.1"
    assert step.construct[f"{leaf}.forward.1"] == f"{tree}.forward.0"
    assert step.construct["Cell.after.Scale.forward.0"] is None
    assert first(step, f"{leaf}.forward.0", "input_args") == [10, 20]
    assert first(step, f"{tree}.backward.1", "input") == [7, 7]
    assert first(step, f"{tree}.backward.1", "output") == [105, 105]


@pytest.mark.parametrize("level", LEVELS)
def test_a_cell_that_raises_and_is_caught_loses_nothing_else(ms: Any, dump_path: Path, level: str) -> None:
    def fails(x: Tensor) -> Tensor:
        raise ArithmeticError("mine")

    def body(net: Any, x: Tensor) -> Tensor:
        x = net.before(x)
        with pytest.raises(ArithmeticError, match="mine"):
            x = net.outer(x)
        x = net.after(x)
        return net.outer_ok(x)

    def make() -> nn.Cell:
        inner = Child(fails)
        outer = Net(lambda net, x: net.inner(net.first(x)), first=Scale(2), inner=inner)
        outer_ok = Net(lambda net, x: net.first(x), first=Scale(3))
        return Net(body, before=Scale(2), outer=outer, after=Scale(5), outer_ok=outer_ok)

    step = run(make, dump_path, tensor(1, 2), level=level)
    cells = [name for name in step.data if name.startswith("Cell.")]
    assert cells == [
        "Cell.before.Scale.forward.0", "Cell.outer.first.Scale.forward.0", "Cell.after.Scale.forward.0",
        "Cell.outer_ok.first.Scale.forward.0", "Cell.outer_ok.Net.forward.0", "Cell.outer_ok.first.Scale.backward.0",
        "Cell.outer_ok.Net.backward.0", "Cell.after.Scale.backward.0", "Cell.before.Scale.backward.0",
    ]  # fmt: skip
    assert step.construct["Cell.outer.first.Scale.forward.0"] == "Cell.outer.Net.forward.0"
    assert step.construct["Cell.after.Scale.forward.0"] is None
    assert step.construct["Cell.outer_ok.first.Scale.forward.0"] == "Cell.outer_ok.Net.forward.0"
    assert first(step, "Cell.before.Scale.backward.0", "output") == [30, 30]


@pytest.mark.parametrize("level", LEVELS)
def test_what_runs_deeper_after_a_caught_exception(ms: Any, dump_path: Path, level: str) -> None:
    """A call that raised is over, however deep the stack is where the next one is made."""

    def fails(x: Tensor) -> Tensor:
        raise ArithmeticError("mine")

    def deeper(net: Any, x: Tensor, levels: int) -> Tensor:
        return deeper(net, x, levels - 1) if levels else net.after(x) + ops.exp(x)

    def body(net: Any, x: Tensor) -> Tensor:
        try:
            return net.bad(x)
        except ArithmeticError:
            # Within the handler and on a deeper stack than the call that raised.
            return deeper(net, x, 5)

    step = run(
        lambda: Net(lambda net, x: net.outer(x), outer=Net(body, bad=Child(fails), after=Scale(3))),
        dump_path, tensor(1, 2), level=level,
    )  # fmt: skip
    assert step.construct["Cell.outer.after.Scale.forward.0"] == "Cell.outer.Net.forward.0"
    assert step.construct["Cell.outer.after.Scale.backward.0"] == "Cell.outer.Net.backward.0"
    if level == "mix":
        assert step.construct["Functional.exp.0.forward"] == "Cell.outer.Net.forward.0"
    assert step.calls("Cell.outer.bad.Child") == []


def test_a_call_made_while_an_exception_is_handled(ms: Any, dump_path: Path) -> None:
    def body(net: Any, x: Tensor) -> Tensor:
        try:
            raise KeyError("mine")
        except KeyError:
            return net.child(x)

    step = run(lambda: Net(body, child=Scale(2)), dump_path, tensor(1, 2))
    assert step.calls("Cell.child.Scale") == ["Cell.child.Scale.forward.0", "Cell.child.Scale.backward.0"]


def test_an_uncaught_exception_is_the_users_own(ms: Any, dump_path: Path) -> None:
    """It passes unchanged, and the next step is recorded as if nothing had happened."""
    broken = [True]

    def body(x: Tensor) -> Tensor:
        if broken[0]:
            raise KeyError("missing")
        return x * 2

    net = Net(lambda net, x: net.after(net.child(x)), child=Child(body), after=Scale(2))
    from msprobe_ms.mindspore import PrecisionDebugger

    debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
    debugger.start(net)
    with pytest.raises(KeyError, match="missing"):
        net(tensor(1))
    broken[0] = False
    net(tensor(1))
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    assert step.construct["Cell.child.Child.forward.1"] is None
    assert step.construct["Tensor.__mul__.0.forward"] == "Cell.child.Child.forward.1"
    assert step.construct["Cell.after.Scale.forward.0"] is None


# -- arguments and results ---------------------------------------------------------------------------------------------


def test_keyword_only_calls(ms: Any, dump_path: Path) -> None:
    step = run(
        lambda: Net(lambda net, x: net.child(a=x, b=x * 3, flag=True), child=Child(lambda *, a, b, flag: a * b)),
        dump_path, tensor(1, 2),
    )  # fmt: skip
    forward = step.forward("Cell.child.Child")
    assert forward["input_args"] == []
    assert step.array(forward["input_kwargs"]["b"]).tolist() == [3, 6]
    assert forward["input_kwargs"]["flag"] == {"type": "bool", "value": True}
    output = step.backward("Cell.child.Child")["output"]
    assert [step.array(leaf).tolist() for leaf in output] == [[3, 6], [1, 2]]


def test_nested_inputs_and_outputs_keep_their_structure_in_both_directions(ms: Any, dump_path: Path) -> None:
    def child(pair: Any, named: dict[str, Any], point: Point) -> Any:
        (a, [b, c]), d = pair, named["inner"]["d"]
        return {"sum": a + 2 * b}, [c * 3, (d * 4,)], Point(point.x * 5, point.y), None, 7

    def body(net: Any, a: Tensor, b: Tensor) -> Tensor:
        out = net.child((a, [b, a * 1]), {"inner": {"d": b * 1}, "text": "t"}, Point(a * 1, 2))
        return out[0]["sum"] + out[1][0] + out[1][1][0] + out[2].x

    step = run(lambda: Net(body, child=Child(child)), dump_path, tensor(1, 2), tensor(3, 4))
    forward, backward = step.forward("Cell.child.Child"), step.backward("Cell.child.Child")
    args = forward["input_args"]
    assert step.array(args[0][1][0]).tolist() == [3, 4]
    assert args[0][1][0]["data_name"] == "Cell.child.Child.forward.0.input.0.1.0.npy"
    assert args[1]["text"] == {"type": "str", "value": "t"}
    assert step.array(args[1]["inner"]["d"]).tolist() == [3, 4]
    assert set(args[2]) == {"x", "y"}
    out = forward["output"]
    assert step.array(out[0]["sum"]).tolist() == [7, 10]
    assert step.array(out[1][1][0]).tolist() == [12, 16]
    assert out[3] is None
    assert out[4] == {"type": "int", "value": 7}
    # Gradients: of the results, then of the arguments, at the same places.
    assert step.array(backward["input"][1][1][0]).tolist() == [1, 1]
    gradients = backward["output"]
    assert step.array(gradients[0][0]).tolist() == [1, 1]
    assert step.array(gradients[0][1][0]).tolist() == [2, 2]
    assert step.array(gradients[0][1][1]).tolist() == [3, 3]
    assert step.array(gradients[1]["inner"]["d"]).tolist() == [4, 4]
    assert step.array(gradients[2]["x"]).tolist() == [5, 5]


def test_a_named_tuple_stays_one(ms: Any, dump_path: Path) -> None:
    seen = []

    def body(net: Any, x: Tensor) -> Tensor:
        point = net.child(Point(x, [x]))
        seen.append(point)
        return point.x + point.y[0]

    def child(point: Point) -> Point:
        assert type(point) is Point
        return Point(point.x * 2, [point.y[0] * 3])

    step = run(lambda: Net(body, child=Child(child)), dump_path, tensor(1, 2))
    assert all(type(point) is Point and type(point.y) is list for point in seen)
    assert step.array(step.forward("Cell.child.Child")["output"][0]["y"][0]).tolist() == [3, 6]


@dataclass
class Batch:
    x: Any
    size: int


def test_a_dataclass_is_recorded_and_passed_on(ms: Any, dump_path: Path) -> None:
    step = run(
        lambda: Net(lambda net, x: net.child(Batch(x, 2)).x, child=Child(lambda b: Batch(b.x * 3, b.size))),
        dump_path, tensor(1, 2),
    )  # fmt: skip
    assert step.array(step.forward("Cell.child.Child")["input_args"][0]["x"]).tolist() == [1, 2]
    assert step.forward("Cell.child.Child")["output"][0]["size"] == {"type": "int", "value": 2}


def test_every_kind_of_leaf(ms: Any, dump_path: Path) -> None:
    arguments = [
        None, True, 3, 0.5, "text", slice(1, None, 2), ..., ms.float16, np.float32(1.5), np.arange(3), object(),
        float("nan"), float("inf"), [], (), {},
    ]  # fmt: skip
    step = run(
        lambda: Net(lambda net, x: net.child(x, *arguments), child=Child(lambda x, *rest: x)), dump_path, tensor(1)
    )
    leaves = step.forward("Cell.child.Child")["input_args"][1:]
    array = leaves[9]
    assert (array["type"], array["dtype"], array["shape"], array["Max"]) == ("numpy.ndarray", "int64", [3], 2.0)
    del leaves[9]
    assert repr(leaves) == repr([
        None, {"type": "bool", "value": True}, {"type": "int", "value": 3}, {"type": "float", "value": 0.5},
        {"type": "str", "value": "text"}, {"type": "slice", "value": [1, None, 2]},
        {"type": "ellipsis", "value": "..."}, {"type": "mindspore.dtype", "value": "Float16"},
        {"type": "float32", "value": 1.5}, None, {"type": "float", "value": float("nan")},
        {"type": "float", "value": float("inf")}, [], [], {},
    ])  # fmt: skip


@pytest.mark.parametrize(
    "dtype", ["bool_", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float64", "complex64"]
)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_tensors_of_every_dtype_and_shape_pass_through(
    ms: Any, dump_path: Path, dtype: str, shape: tuple[int, ...]
) -> None:
    original = Tensor(np.ones(shape, np.float32)).astype(getattr(ms, dtype))
    seen = []

    def child(value: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        seen.append((value.dtype, value.shape))
        return value, x

    def body(net: Any, x: Tensor) -> Tensor:
        value, x = net.child(original, x)
        seen.append((value.dtype, value.shape))
        return x

    step = run(lambda: Net(body, child=Child(child)), dump_path, tensor(1, 2))
    assert set(seen) == {(original.dtype, shape)}
    leaf = step.forward("Cell.child.Child")["input_args"][0]
    assert leaf["dtype"] == str(original.dtype)
    assert leaf["shape"] == list(shape)
    expected = {(): 1.0, (0,): None, (2, 3): 1.0}[shape]
    assert leaf["Max"] == (True if dtype == "bool_" and shape != (0,) else expected)
    assert step.array(leaf).shape == shape
    assert step.forward("Cell.child.Child")["output"][0]["dtype"] == str(original.dtype)


def test_float16_gradients(ms: Any, dump_path: Path) -> None:
    half = Tensor(np.array([1, 2], np.float16))
    step = run(lambda: Net(lambda net, x: net.child(x), child=Scale(2)), dump_path, half)
    leaf = step.backward("Cell.child.Scale")["output"][0]
    assert (leaf["dtype"], step.array(leaf).dtype) == ("Float16", np.float16)
    assert step.array(leaf).tolist() == [2, 2]


def test_views(ms: Any, dump_path: Path) -> None:
    """A transposed and a sliced view go in, a view comes out."""

    def body(net: Any, x: Tensor) -> Tensor:
        return net.child(x.T, x[1:], x.view(-1))

    def child(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return (a.sum() + (b * 2).sum() + c[::2].sum()).view(1)

    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    step = run(lambda: Net(body, child=Child(child)), dump_path, x)
    args = step.forward("Cell.child.Child")["input_args"]
    assert step.array(args[0]).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert step.array(args[1]).tolist() == [[3, 4, 5]]
    gradients = [step.array(leaf).tolist() for leaf in step.backward("Cell.child.Child")["output"]]
    assert gradients == [[[1, 1], [1, 1], [1, 1]], [[2, 2, 2]], [1, 0, 1, 0, 1, 0]]


@pytest.mark.parametrize("level", LEVELS)
def test_a_cell_that_returns_its_input(ms: Any, dump_path: Path, level: str) -> None:
    step = run(
        lambda: Net(lambda net, x: net.same(net.same(x * 2)) * 3 + x, same=Child(lambda x: x)), dump_path, tensor(1, 2),
        level=level,
    )  # fmt: skip
    for index in (0, 1):
        assert first(step, f"Cell.same.Child.forward.{index}", "output") == [2, 4]
        assert first(step, f"Cell.same.Child.backward.{index}", "input") == [3, 3]
        assert first(step, f"Cell.same.Child.backward.{index}", "output") == [3, 3]


def test_the_same_tensor_given_twice(ms: Any, dump_path: Path) -> None:
    """It stays one tensor in the call; each of its places shows its gradient through the call."""
    step = run(
        lambda: Net(lambda net, x: net.child(x, x, [x]), child=Child(lambda a, b, c: a * 2 + b * 3 + c[0] * 5)),
        dump_path, tensor(1, 2),
    )  # fmt: skip
    output = step.backward("Cell.child.Child")["output"]
    assert [step.array(leaf).tolist() for leaf in (output[0], output[1], output[2][0])] == [[10, 10]] * 3


def test_the_same_tensor_returned_twice(ms: Any, dump_path: Path) -> None:
    def child(x: Tensor) -> Any:
        y = x * 2
        return y, [y]

    step = run(
        lambda: Net(lambda net, x: (lambda o: o[0] * 3 + o[1][0] * 5)(net.child(x)), child=Child(child)),
        dump_path, tensor(1, 2),
    )  # fmt: skip
    backward = step.backward("Cell.child.Child")
    given = [backward["input"][0], backward["input"][1][0]]
    assert [step.array(leaf).tolist() for leaf in given] == [[8, 8], [8, 8]]
    assert step.array(backward["output"][0]).tolist() == [16, 16]


def test_an_unused_result_has_no_gradient(ms: Any, dump_path: Path) -> None:
    step = run(
        lambda: Net(lambda net, x: net.child(x)[0], child=Child(lambda x: (x * 2, x * 3))), dump_path, tensor(1, 2)
    )
    used, unused = step.backward("Cell.child.Child")["input"]
    assert step.array(used).tolist() == [1, 1]
    assert unused is None


def test_a_cell_with_its_own_bprop(ms: Any, dump_path: Path) -> None:
    class Custom(nn.Cell):
        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            return x * y

        def bprop(self, x: Tensor, y: Tensor, out: Tensor, dout: Tensor) -> Any:
            return dout * 10, dout * 20

    step = run(
        lambda: Net(lambda net, x, y: net.after(net.custom(x, y)), custom=Custom(), after=Scale(2)),
        dump_path, tensor(1, 2), tensor(3, 4),
    )  # fmt: skip
    assert first(step, "Cell.custom.Custom.forward.0", "output") == [3, 8]
    assert first(step, "Cell.custom.Custom.backward.0", "input") == [2, 2]
    gradients = [step.array(leaf).tolist() for leaf in step.data["Cell.custom.Custom.backward.0"]["output"]]
    assert gradients == [[20, 20], [40, 40]]


def test_stop_gradient_ends_the_backward(ms: Any, dump_path: Path) -> None:
    step = run(
        lambda: Net(lambda net, x: net.two(ops.stop_gradient(net.one(x))) + x, one=Scale(2), two=Scale(3)),
        dump_path, tensor(1, 2),
    )  # fmt: skip
    assert step.calls("Cell.one.Scale") == ["Cell.one.Scale.forward.0"]


# -- what the callee and the caller do with them -----------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_a_list_changed_by_the_callee(ms: Any, dump_path: Path, level: str) -> None:
    """The caller sees the change and its own tensors, never a twin of ours."""
    kept: list[Any] = []

    def child(items: list[Any], named: dict[str, Any]) -> Tensor:
        items.append(items[0] * 2)
        items[1] = items[0] * 3
        named["new"] = named["a"] * 4
        return items[0] + items[1] + items[2] + named["new"]

    def body(net: Any, x: Tensor) -> Tensor:
        items, named = [x, x * 1], {"a": x}
        out = net.child(items, named)
        kept.append(items[0] is x and named["a"] is x and len(items) == 3)
        return out + items[2] + items[1] + named["new"]

    step = run(lambda: Net(body, child=Child(child)), dump_path, tensor(1, 2), level=level)
    assert kept == [True, True]
    # Inputs are recorded as they were before the call.
    args = step.forward("Cell.child.Child")["input_args"]
    assert len(args[0]) == 2
    assert set(args[1]) == {"a"}


def test_a_list_cleared_by_the_callee(ms: Any, dump_path: Path) -> None:
    def child(items: list[Any]) -> Tensor:
        total = items.pop() + items.pop(0)
        items.clear()
        return total

    def body(net: Any, x: Tensor) -> Tensor:
        items = [x, x * 2, x * 3]
        out = net.child(items)
        assert items == []
        return out

    run(lambda: Net(body, child=Child(child)), dump_path, tensor(1, 2))


def test_a_list_shifted_by_the_callee_holds_no_twin(ms: Any, dump_path: Path) -> None:
    kept = []

    def body(net: Any, x: Tensor) -> Tensor:
        y = x * 2
        items, named = [x, y], {"a": x}
        out = net.child(items, named)
        kept.append([any(each is own for own in (x, y)) for each in (*items, *named.values())])
        return out + items[0]

    def child(items: list[Any], named: dict[str, Any]) -> Tensor:
        items.reverse()
        items.insert(0, items[0])
        named["b"] = named.pop("a")
        return items[0] * 2

    run(lambda: Net(body, child=Child(child)), dump_path, tensor(1, 2))
    assert kept == [[True] * 4] * 2


def test_a_cached_list_of_the_callee_is_returned_later(ms: Any, dump_path: Path) -> None:
    """A key-value cache: the callee appends to the caller's list call by call."""

    def child(x: Tensor, cache: list[Any]) -> Tensor:
        cache.append(x * 2)
        return sum(cache[1:], cache[0])

    def body(net: Any, x: Tensor) -> Tensor:
        cache: list[Any] = []
        out = net.child(x, cache) + net.child(x * 3, cache)
        assert len(cache) == 2
        return out + cache[0]

    run(lambda: Net(body, child=Child(child)), dump_path, tensor(1, 2))


def test_a_list_that_is_kept_by_the_callee(ms: Any, dump_path: Path) -> None:
    def body(net: Any, x: Tensor) -> Tensor:
        outputs = net.one(x)
        again = net.two(outputs)
        assert again is outputs
        return outputs[0] + again[1] * 2

    step = run(
        lambda: Net(body, one=Child(lambda x: [x * 2, x * 3]), two=Child(lambda items: items)), dump_path, tensor(1, 2)
    )
    assert [step.array(leaf).tolist() for leaf in step.backward("Cell.one.Child")["input"]] == [[1, 1], [2, 2]] or [
        step.array(leaf).tolist() for leaf in step.backward("Cell.one.Child")["input"][0]
    ] == [[1, 1], [2, 2]]


def test_results_kept_by_the_caller_and_used_again(ms: Any, dump_path: Path) -> None:
    """A residual stream: one result goes to three places."""

    def body(net: Any, x: Tensor) -> Tensor:
        kept = net.one(x)
        return net.two(kept) + net.two(kept * 2) + kept

    step = run(lambda: Net(body, one=Scale(2), two=Scale(3)), dump_path, tensor(1, 2))
    assert first(step, "Cell.one.Scale.backward.0", "input") == [10, 10]
    assert first(step, "Cell.one.Scale.backward.0", "output") == [20, 20]


# -- in place ----------------------------------------------------------------------------------------------------------


def write_item(x: Tensor) -> Tensor:
    y = x * 2
    y[0] = 7
    return y * x


def write_own_input(x: Tensor) -> Tensor:
    x[0] = 7
    return x * 3


def write_input_and_return_it(x: Tensor) -> Tensor:
    x[0] = 7
    return x


def write_with_mask(x: Tensor) -> Tensor:
    x[x > 1] = 0
    return x * x


def write_copy(x: Tensor) -> Tensor:
    x.copy_(x * 3)
    return x * x


def write_view(x: Tensor) -> Tensor:
    y = x * 2
    y[1:][0] = 5
    return y * x


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "child", [write_item, write_own_input, write_input_and_return_it, write_with_mask, write_copy, write_view]
)
def test_writes_in_place(ms: Any, dump_path: Path, child: Callable[[Tensor], Tensor], level: str) -> None:
    """Bit-identical, the caller sees the write, and the input is recorded as it was before the call."""
    seen = []

    def body(net: Any, x: Tensor) -> Tensor:
        x = x * 1
        before = values(x)
        out = net.child(x) + x * 11
        seen.append((before, values(x)))
        return out

    step = run(lambda: Net(body, child=Child(child)), dump_path, tensor(1, 2, 3), level=level)
    assert seen[0] == seen[1]
    assert first(step, "Cell.child.Child.forward.0", "input_args") == seen[0][0]


@pytest.mark.parametrize("level", LEVELS)
def test_writes_in_place_through_a_kept_alias(ms: Any, dump_path: Path, level: str) -> None:
    """The caller writes into what it gave to, and got from, a Cell."""

    def body(net: Any, x: Tensor) -> Tensor:
        x = x * 1
        alias = x
        y = net.child(x)
        y[0] = 3
        alias[1] = 4
        return y * x + net.child(alias)

    run(lambda: Net(body, child=Child(lambda x: x * x)), dump_path, tensor(1, 2, 3), level=level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_buffer_written_by_a_cell(ms: Any, dump_path: Path, level: str) -> None:
    """A Parameter assigned in construct, as running statistics are."""

    class Counter(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.mean = Parameter(tensor(0, 0), name="mean", requires_grad=False)

        def construct(self, x: Tensor) -> Tensor:
            ops.assign(self.mean, self.mean * 0.5 + x)
            return x * self.mean

    step = run(lambda: Net(lambda net, x: net.c(net.c(x)), c=Counter()), dump_path, tensor(1, 2), level=level)
    assert step.array(step.forward("Cell.c.Counter", 0)["parameters"]["mean"]).tolist() == [1, 2]
    assert step.array(step.forward("Cell.c.Counter", 1)["parameters"]["mean"]).tolist() == [1.5, 5]


def test_what_trains_a_net_has_no_entry(ms: Any, dump_path: Path) -> None:
    """It holds the net's parameters, for the optimizer, and perhaps a scale of the loss; the net has its entry."""

    class Scaled(nn.TrainOneStepCell):
        def __init__(self, network: nn.Cell, optimizer: nn.Cell) -> None:
            super().__init__(network, optimizer)
            self.scale = Parameter(tensor(1), name="scale")

    class Own(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(tensor(2, 3), name="weight")

        def construct(self, x: Tensor) -> Tensor:
            return (x * self.weight).sum()

    net = Own()
    train = Scaled(net, nn.SGD(net.trainable_params(), 0.1))
    with recording(train, dump_path):
        train(tensor(1, 2))
    data = read_step(dump_path).data
    assert "Cell.network.Own.forward.0" in data and "Cell.network.Own.parameters_grad.0" in data
    assert not [name for name in data if name.startswith("Cell.Scaled")]


def test_a_parameter_given_as_argument_stays_one(ms: Any, dump_path: Path) -> None:
    weight = Parameter(tensor(2, 3), name="weight")
    seen = []

    def child(x: Tensor, w: Any) -> Tensor:
        seen.append(w is weight)
        return x * w

    net = Net(lambda net, x: net.child(x, weight), child=Child(child))
    with recording(net, dump_path, task="tensor"):
        (gradient,) = mindspore.grad(lambda x: net(x).sum(), None, [weight])(tensor(1, 2))
    assert seen == [True]
    assert values(gradient) == [1, 2]


def body_view_given(net: Any, x: Tensor) -> Tensor:
    """A Cell writes into the view it is given."""
    y = x * 2
    net.child(y[1:])
    return y * x


def body_row_of_a_result(net: Any, x: Tensor) -> Tensor:
    """The caller writes into a view of a result."""
    y = net.child(x)
    y[1:][0] = 5
    return y * x


def body_chain(net: Any, x: Tensor) -> Tensor:
    """Two views deep."""
    y = ops.stack([x, x * 2])
    y[1][1:][0] = 5
    return (y * net.child(x)).sum(0)


def body_reshaped(net: Any, x: Tensor) -> Tensor:
    y = net.child(x).reshape(3, 1)
    y[0][0] = 5
    return y.reshape(3) * x


def body_constant_mask(net: Any, x: Tensor) -> Tensor:
    """What no gradient flows through is not touched at all."""
    mask = ops.ones((2, 3), ms_float32())
    mask[0][1] = 0
    mask[1] = 5
    return net.child(x) * mask[0] * mask[1]


def body_same_object(net: Any, x: Tensor) -> Tensor:
    """`is` means the same with the tool."""
    y = net.child(x)
    z = net.identity(y)
    return y * (3 if z is y else 5) * (7 if net.pair(y, y) else 11)


def body_identity_and_write(net: Any, x: Tensor) -> Tensor:
    y = net.child(x)
    z = net.identity(y)
    z[0] = 9
    y[1] = 8
    return y * z * x


def body_identity_of_an_argument_used_again(net: Any, x: Tensor) -> Tensor:
    y = x * 2
    return net.child(net.identity(y)) + y * 3


def ms_float32() -> Any:
    return mindspore.float32


def doubled(x: Tensor) -> Tensor:
    return x * 2


def doubled_in_place(x: Tensor) -> Tensor:
    x[0] = 4
    return x * 2


BODIES = (
    body_view_given, body_row_of_a_result, body_chain, body_reshaped, body_constant_mask, body_same_object,
    body_identity_and_write, body_identity_of_an_argument_used_again,
)  # fmt: skip


@pytest.mark.parametrize(("body", "level", "child"), pairwise(BODIES, ["L0", "L1", "mix"], [doubled, doubled_in_place]))
def test_views_and_aliases(ms: Any, dump_path: Path, body: Any, child: Any, level: str) -> None:
    run(
        lambda: Net(
            lambda net, x: body(net, x * 1),
            child=Child(child), identity=Child(lambda x: x), pair=Child(lambda a, b: a is b),
        ),
        dump_path, tensor(1, 2, 3), level=level,
    )  # fmt: skip


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_writes_into_a_parameter(ms: Any, dump_path: Path, level: str) -> None:
    """Into a part of it, through a view, in a Cell."""

    class Memory(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.rows = Parameter(Tensor(np.zeros((2, 3), np.float32)), name="rows", requires_grad=False)

        def construct(self, x: Tensor) -> Tensor:
            self.rows[0] = x
            self.rows[1][1:] = x[1:] * 2
            return x * self.rows[0] + self.rows[1]

    step = run(
        lambda: Net(lambda net, x: net.memory(net.memory(x)), memory=Memory()), dump_path, tensor(1, 2, 3), level=level
    )
    if level != "L1":
        rows = step.forward("Cell.memory.Memory")["parameters"]["rows"]
        assert step.array(rows).tolist() == [[1, 2, 3], [0, 4, 6]]


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("shown", [True, False])
def test_gradient_of_a_gradient(
    ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, shown: bool
) -> None:
    """Also in a MindSpore that does not show its graph, as before 2.8."""
    if not shown:
        monkeypatch.setattr("msprobe_ms.frameworks.mindspore.framework.has_graph", lambda: False)

    def second(net: nn.Cell, x: Tensor) -> bytes:
        return mindspore.grad(lambda y: mindspore.grad(lambda z: net(z).sum())(y).sum())(x).asnumpy().tobytes()

    def make() -> nn.Cell:
        return Net(lambda net, x: net.cube(x * 1), cube=Child(lambda x: x * x * x))

    expected = second(make(), tensor(1, 2))
    net = make()
    with recording(net, dump_path, level=level):
        assert second(net, tensor(1, 2)) == expected
    read_step(dump_path)


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_recompute(ms: Any, dump_path: Path, level: str) -> None:
    """A recomputed Cell runs its forward twice; both runs are recorded, apart."""

    def make() -> nn.Cell:
        net = Net(
            lambda net, x: net.after(net.block(x)),
            block=nn.SequentialCell(Scale(2), Child(lambda x: x * x)),
            after=Scale(3),
        )
        net.block.recompute()
        return net

    step = run(make, dump_path, tensor(1, 2), level=level)
    if level != "L1":
        assert {name.rsplit(".", 1)[0] for name in step.calls("Cell.after.Scale")} == {
            "Cell.after.Scale.forward", "Cell.after.Scale.backward",
        }  # fmt: skip
        # The second run is the one that gradients flow through.
        assert step.calls("Cell.block.0.Scale") == [
            "Cell.block.0.Scale.forward.0", "Cell.block.0.Scale.forward.1", "Cell.block.0.Scale.backward.1",
        ]  # fmt: skip
        assert first(step, "Cell.block.0.Scale.backward.1", "output") == [24, 48]


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_two_backwards_of_one_forward_function(ms: Any, dump_path: Path, level: str) -> None:
    """Forward and backward twice in one step, as with gradient accumulation: calls count on."""
    net = Net(lambda net, x: net.cube(x), cube=Child(lambda x: x * x * x))
    with recording(net, dump_path, level=level, task="tensor"):
        for value in (1, 2):
            mindspore.grad(lambda x: net(x * 1).sum())(tensor(value))
    step = read_step(dump_path)
    if level != "L1":
        assert [first(step, f"Cell.cube.Child.backward.{i}", "output") for i in range(2)] == [[3], [12]]


@pytest.mark.parametrize("level", LEVELS)
def test_a_sequence_of_results_that_is_a_subclass(ms: Any, dump_path: Path, level: str) -> None:
    """Inputs, results and their gradients stand at the same places whatever the container's class."""

    class Results(list[Any]):
        pass

    step = run(
        lambda: Net(
            lambda net, x: (lambda out: out[0] + out[1] * 2)(net.child(Results([x, x * 2]))),
            child=Child(lambda items: Results([items[0] * 3, items[1] * 5])),
        ),
        dump_path, tensor(1, 2), level=level,
    )  # fmt: skip
    forward, backward = step.forward("Cell.child.Child"), step.backward("Cell.child.Child")
    for forward_side, backward_side in (("input_args", "output"), ("output", "input")):
        shape = [
            [leaf["shape"] for leaf in side] if isinstance(side, list) else side["shape"]
            for side in forward[forward_side]
        ]
        assert shape == [
            [leaf["shape"] for leaf in side] if isinstance(side, list) else side["shape"]
            for side in backward[backward_side]
        ]


def test_gradients_are_those_of_the_tensors_in_order(ms: Any, dump_path: Path) -> None:
    """Values that are no tensors have no place among them; a tensor that takes no gradient has null."""
    step = run(
        lambda: Net(
            lambda net, x: net.child(3, x, "t", tensor(2, 2), [x * 2, None], c=x * 3)[1],
            child=Child(lambda n, a, t, constant, pair, c: (n, a * pair[0] * constant + c, t)),
        ),
        dump_path, tensor(1, 2),
    )  # fmt: skip
    backward = step.backward("Cell.child.Child")
    assert [step.array(leaf).tolist() for leaf in backward["input"]] == [[1, 1]]
    a, constant, (first_of_pair,), c = backward["output"]
    assert constant is None
    assert [step.array(leaf).tolist() for leaf in (a, first_of_pair, c)] == [[4, 8], [2, 4], [1, 1]]


# -- lifetime ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_a_recorded_net_can_be_freed_and_copied(ms: Any, dump_path: Path, level: str) -> None:
    import copy

    net = Net(lambda net, x: net.one(x), one=nn.Dense(2, 2))
    forward: Any = mindspore.grad(net, None, net.trainable_params())
    with recording(net, dump_path, level=level):
        forward(Tensor(np.ones((1, 2), np.float32)))
    del forward
    copied = copy.deepcopy(net.one)
    assert copied(Tensor(np.ones((1, 2), np.float32))).shape == (1, 2)
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None
