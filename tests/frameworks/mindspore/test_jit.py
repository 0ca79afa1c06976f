"""Jitted functions and cells: one entry with true gradients, or call by call; what is hidden is said."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mindspore
import numpy as np
import pytest
from forked import run_forked
from mindspore import Tensor, nn, ops
from recording import ERROR_LOG, Step, leaves, read_step, recording, write_config
from repository import PACKAGE
from thorough import thorough

import msprobe_ms
from msprobe_ms.frameworks.mindspore.jit import describe

x = Tensor(np.array([[1, -2], [3, 4]], np.float32))
y = Tensor(np.array([[0.5, 1], [-1, 2]], np.float32))


def plain(a: Tensor, b: Tensor) -> Tensor:
    return ops.relu(a @ b) * 2 + a.sum() + ops.exp(b)


def gradients(function: Callable[..., Any]) -> tuple[bytes, list[np.ndarray]]:
    value, found = mindspore.value_and_grad(lambda a, b: (function(a, b) * ops.exp(a)).sum(), (0, 1))(x, y)
    return value.asnumpy().tobytes(), [gradient.asnumpy().copy() for gradient in found]


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 2, weight_init="ones", has_bias=False)

    def construct(self, a: Tensor) -> Tensor:
        return ops.relu(self.fc(a)) + 1


class CompiledBlock(Block):
    @mindspore.jit
    def construct(self, a: Tensor) -> Tensor:
        return ops.relu(self.fc(a)) + 1


class Net(nn.Cell):
    def __init__(self, block: nn.Cell) -> None:
        super().__init__()
        self.block = block
        self.head = nn.Dense(2, 2, weight_init="ones", has_bias=False)

    def construct(self, a: Tensor) -> Tensor:
        return self.head(ops.exp(self.block(a) * 0.1))


def train(net: nn.Cell) -> tuple[bytes, list[bytes]]:
    value, found = mindspore.value_and_grad(lambda a: net(a).sum(), None, net.trainable_params())(x)
    return value.asnumpy().tobytes(), [gradient.asnumpy().tobytes() for gradient in found]


# -- ast: one graph, one entry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled_before", [False, True])
def test_a_function_is_one_entry(ms: Any, dump_path: Path, compiled_before: bool) -> None:
    function = mindspore.jit(plain)
    expected = gradients(mindspore.jit(plain))
    if compiled_before:
        gradients(function)
    with recording(None, dump_path, level="L1", task="tensor"):
        found = gradients(function)
    assert found[0] == expected[0]
    assert [g.tobytes() for g in found[1]] == [g.tobytes() for g in expected[1]]
    step = read_step(dump_path)
    assert step.calls("Jit.plain") == ["Jit.plain.0.forward", "Jit.plain.0.backward"]
    assert not [entry for entry in step.data if entry.startswith(("Functional.relu", "Tensor.__matmul__"))]
    forward = step.forward("Jit.plain")
    assert step.array(forward["input_args"][0]).tolist() == x.asnumpy().tolist()
    assert np.allclose(step.array(forward["output"][0]), plain(x, y).asnumpy(), rtol=1e-6)


def several(a: Tensor, b: Tensor, c: Tensor) -> Any:
    return ops.exp(a) @ b + c, ops.tanh(c) * a


def nested_results(a: Tensor, b: Tensor) -> Any:
    return {"product": a * b, "rest": ops.exp(a)}, [a - b]


def scaled(a: Tensor, b: Tensor, scale: int = 2) -> Any:
    return ops.tanh(a * b) * scale


def by_keyword_only(a: Tensor, *, b: Tensor, scale: int = 2) -> Any:
    return ops.tanh(a * b) * scale


def with_positions(a: Tensor, b: Tensor) -> Any:
    return ops.argmax(a, -1), a * b


def with_unused(a: Tensor, b: Tensor, c: Tensor) -> Any:
    return ops.exp(a), a * c


def of_any_number(*values: Tensor) -> Any:
    return values[0] * values[1] + values[2]


def handing_on(a: Tensor, b: Tensor) -> Any:
    return a, ops.exp(b) * a


inner_graph = mindspore.jit(scaled)

sensitivity = Tensor(np.array([[0.3, -1.5], [2, 0.7]], np.float32))


def graph_in_graph(a: Tensor, b: Tensor) -> Any:
    return inner_graph(a, b) + ops.exp(a)


def run_weighted(function: Callable[..., Any], keys: tuple[str, ...], values: tuple[Tensor, ...]) -> tuple[Any, Any]:
    """Gradients of a weighted sum of all results by ``values``; those named by ``keys`` go in by keyword."""

    def total(*given: Tensor) -> Tensor:
        plain = len(given) - len(keys)
        output = function(*given[:plain], **dict(zip(keys, given[plain:], strict=True)))
        weighted = [tensor * (weight * sensitivity) for weight, tensor in enumerate(tensors(output), 1)]
        return sum(each.sum() for each in weighted)

    return mindspore.value_and_grad(total, tuple(range(len(values))))(*values)


def tensors(value: Any) -> list[Tensor]:
    """Its float tensors, in order."""
    if isinstance(value, Tensor):
        return [value] if value.dtype == mindspore.float32 else []
    members = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for member in members for tensor in tensors(member)]


@pytest.mark.parametrize(
    ("function", "keys", "arguments", "compiled_before"),
    [
        (plain, (), 2, True), (several, (), 3, False), (nested_results, (), 2, True), (scaled, (), 2, True),
        (scaled, ("b",), 2, False), (by_keyword_only, ("b",), 2, True), (with_positions, (), 2, False),
        (with_unused, (), 3, True), (of_any_number, (), 3, False), (handing_on, (), 2, True),
        (graph_in_graph, (), 2, False),
    ],
)  # fmt: skip
def test_figures_equal_those_of_the_plain_function(
    ms: Any, dump_path: Path, function: Any, keys: tuple[str, ...], arguments: int, compiled_before: bool
) -> None:
    values = (x * 0.5, y, x * y)[:arguments]
    expected, gradients = run_weighted(function, keys, values)
    compiled = mindspore.jit(function)
    if compiled_before:
        run_weighted(compiled, keys, values)
    with recording(None, dump_path, level="L1", task="tensor"):
        found, _ = run_weighted(compiled, keys, values)
    assert np.allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-6)
    step = read_step(dump_path)
    name = f"Jit.{function.__name__}"
    assert step.calls(name) == [f"{name}.0.forward", f"{name}.0.backward"]
    forward, backward = step.forward(name), step.backward(name)
    results = tensors(function(*values[: arguments - len(keys)], **dict(zip(keys, values[-1:], strict=False))))
    of_results = [sensitivity.asnumpy() * weight for weight in range(1, len(results) + 1)]
    for recorded, wanted in (
        ([forward["input_args"], forward["input_kwargs"]], [value.asnumpy() for value in values]),
        (forward["output"], [result.asnumpy() for result in results]),
        (backward["input"], of_results),
        (backward["output"], [gradient.asnumpy() for gradient in gradients]),
    ):
        found = [step.array(leaf) for _, leaf in leaves(recorded) if leaf["dtype"] == "Float32"]
        assert len(found) == len(wanted)
        for array, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(array, expected, rtol=1e-6, atol=1e-6)


class Affine(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = mindspore.Parameter(y * 1, name="weight")
        self.bias = mindspore.Parameter(x * 1, name="bias")

    def construct(self, a: Tensor, b: Tensor) -> Any:
        return ops.tanh(a @ self.weight + self.bias), b * self.weight


class CompiledAffine(Affine):
    @mindspore.jit
    def construct(self, a: Tensor, b: Tensor) -> Any:
        return ops.tanh(a @ self.weight + self.bias), b * self.weight


class Around(nn.Cell):
    def __init__(self, affine: nn.Cell) -> None:
        super().__init__()
        self.affine = affine

    def construct(self, a: Tensor) -> Tensor:
        first, second = self.affine(ops.exp(a * 0.1), b=a * 2)
        return (first * y + second * x).sum()


@pytest.mark.parametrize(("level", "compiled_before"), [("L0", False), ("L1", True), ("mix", True)])
def test_a_cell_with_parameters_equals_the_plain_one(
    ms: Any, dump_path: Path, compiled_before: bool, level: str
) -> None:
    def step_of(net: nn.Cell, folder: Path, level: str) -> tuple[Step, list[Any]]:
        gradient = mindspore.value_and_grad(net, 0, net.trainable_params())
        if compiled_before:
            gradient(x)
        with recording(net, folder, level=level, task="tensor"):
            _, (of_input, of_weights) = gradient(x)
        return read_step(folder), [each.asnumpy() for each in (of_input, *of_weights)]

    expected, gradients = step_of(Around(Affine()), dump_path.with_name("plain"), "L0")
    step, found = step_of(Around(CompiledAffine()), dump_path, level)
    for array, wanted in zip(found, gradients, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-6, atol=1e-6)
    names = ["Cell.affine.CompiledAffine"] if level != "L1" else []
    names += ["Jit.CompiledAffine"] if level != "L0" else []
    plain_cell = "Cell.affine.Affine"
    for name in names:
        for found_in, wanted_in in (
            (step.forward(name), expected.forward(plain_cell)),
            (step.backward(name), expected.backward(plain_cell)),
        ):
            for field in ("input_args", "output") if "input_args" in wanted_in else ("input", "output"):
                recorded, wanted = ([*leaves(entry[field])] for entry in (found_in, wanted_in))
                if field == "input_args":  # MindSpore puts a graph's keywords in their place
                    wanted += leaves(wanted_in["input_kwargs"])
                    recorded += leaves(found_in["input_kwargs"])
                assert len(recorded) == len(wanted) == 2
                for (_, leaf), (_, other) in zip(recorded, wanted, strict=True):
                    np.testing.assert_allclose(step.array(leaf), expected.array(other), rtol=1e-6, atol=1e-6)
    if level != "L1":
        parameters = step.data["Cell.affine.CompiledAffine.parameters_grad.0"]
        for key, gradient in zip(("weight", "bias"), gradients[1:], strict=True):
            np.testing.assert_allclose(step.array(parameters[key][0]), gradient, rtol=1e-6, atol=1e-6)


def test_every_shape_is_compiled_anew_and_recorded(ms: Any, dump_path: Path) -> None:
    function = mindspore.jit(scaled)
    values = [Tensor(np.full((rows, 2), 0.1 * rows, np.float32)) for rows in (1, 3, 2, 3)]

    def total(function: Any, *values: Tensor) -> Tensor:
        return sum((function(value, value * 2, index) * value).sum() for index, value in enumerate(values, 1))

    expected = mindspore.grad(lambda *values: total(scaled, *values), (0, 1, 2, 3))(*values)
    with recording(None, dump_path, level="L1", task="tensor"):
        found = mindspore.grad(lambda *values: total(function, *values), (0, 1, 2, 3))(*values)
    for gradient, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(gradient.asnumpy(), wanted.asnumpy(), rtol=1e-6)
    step = read_step(dump_path)
    for index, value in enumerate(values):
        forward, backward = step.forward("Jit.scaled", index), step.backward("Jit.scaled", index)
        assert np.array_equal(step.array(forward["input_args"][0]), value.asnumpy())
        assert forward["input_args"][2]["value"] == index + 1
        assert np.array_equal(step.array(backward["input"][0]), value.asnumpy())
        number = value.asnumpy()
        slope = (1 - np.tanh(2 * number**2) ** 2) * (index + 1) * number
        np.testing.assert_allclose(step.array(backward["output"][0]), slope * 2 * number, rtol=1e-5)
        np.testing.assert_allclose(step.array(backward["output"][1]), slope * number, rtol=1e-5)


def test_tensors_in_a_tuple_given_to_a_graph_take_no_gradient(ms: Any, dump_path: Path) -> None:
    """MindSpore 2.10 lets none through, with the tool or without; what is recorded is what happened."""

    def product(pair: Any, c: Tensor) -> Tensor:
        return pair[0] * pair[1] + c

    compiled = mindspore.jit(product)

    def total(a: Tensor, b: Tensor) -> Tensor:
        return compiled((a, b), a * 2).sum()

    expected = [gradient.asnumpy().tolist() for gradient in mindspore.grad(total, (0, 1))(x, y)]
    with recording(None, dump_path, level="L1", task="tensor"):
        assert [gradient.asnumpy().tolist() for gradient in mindspore.grad(total, (0, 1))(x, y)] == expected
    assert expected == [[[2, 2], [2, 2]], [[0, 0], [0, 0]]]
    step = read_step(dump_path)
    (first, second), third = step.backward("Jit.product")["output"]
    assert (first, second) == (None, None)
    assert step.array(third).tolist() == [[1, 1], [1, 1]]


def test_calls_are_kept_apart_and_keywords_come_in_their_place(ms: Any, dump_path: Path) -> None:
    @mindspore.jit
    def scale(a: Tensor, factor: int = 2) -> Tensor:
        return a * factor

    with recording(None, dump_path, level="L1", task="tensor"):
        gradient = mindspore.grad(lambda a: scale(scale(a), factor=3).sum())(x)
    step = read_step(dump_path)
    assert gradient.asnumpy().tolist() == [[6, 6], [6, 6]]
    assert step.calls("Jit.scale") == [
        "Jit.scale.0.forward", "Jit.scale.1.forward", "Jit.scale.1.backward", "Jit.scale.0.backward",
    ]  # fmt: skip
    assert step.forward("Jit.scale", 1)["input_args"][1] == {"type": "int", "value": 3}
    assert step.array(step.backward("Jit.scale", 1)["output"][0]).tolist() == [[3, 3], [3, 3]]
    assert step.array(step.backward("Jit.scale", 0)["output"][0]).tolist() == [[6, 6], [6, 6]]


@pytest.mark.parametrize("make", [CompiledBlock, lambda: mindspore.jit(Block())], ids=["method", "jit of a cell"])
def test_a_cell_is_one_entry(ms: Any, dump_path: Path, make: Callable[[], Any]) -> None:
    expected = mindspore.grad(lambda a: Block()(a).sum())(x).asnumpy()
    block = make()
    with recording(None, dump_path, level="L1", task="tensor"):
        gradient = mindspore.grad(lambda a: block(a).sum())(x)
    assert np.array_equal(gradient.asnumpy(), expected)
    step = read_step(dump_path, troubles=True)
    name = "CompiledBlock" if make is CompiledBlock else "Block"
    assert step.calls(f"Jit.{name}") == [f"Jit.{name}.0.forward", f"Jit.{name}.0.backward"]
    assert len(step.forward(f"Jit.{name}")["input_args"]) == 1
    assert np.array_equal(step.array(step.backward(f"Jit.{name}")["output"][0]), expected)


@pytest.mark.parametrize(("level", "compiled_before"), [("L0", True), ("L1", False), ("mix", False)])
def test_a_compiled_cell_of_a_net(
    ms: Any, dump_path: Path, caplog: pytest.LogCaptureFixture, level: str, compiled_before: bool
) -> None:
    expected = train(Net(CompiledBlock()))
    net = Net(CompiledBlock())
    if compiled_before:
        train(net)
    logging.getLogger("msprobe_ms").addHandler(caplog.handler)
    try:
        with recording(net, dump_path, level=level):
            assert train(net) == expected
            train(net)
    finally:
        logging.getLogger("msprobe_ms").removeHandler(caplog.handler)
    step = read_step(dump_path, troubles=True)
    graph = ["Jit.CompiledBlock.0.forward", "Jit.CompiledBlock.0.backward"] if level != "L0" else []
    assert [entry for entry in step.calls("Jit.CompiledBlock") if ".0." in entry] == graph
    if level == "mix":
        assert step.construct["Jit.CompiledBlock.0.forward"] == "Cell.block.CompiledBlock.forward.0"
        assert step.construct["Jit.CompiledBlock.0.backward"] == "Cell.block.CompiledBlock.backward.0"
    if level != "L1":
        assert len(step.calls("Cell.block.CompiledBlock")) == 4
        assert len(step.calls("Cell.head.Dense")) == 4
    calls = "API calls inside compiled graphs are not recorded; each run of a graph is one call, Jit.NAME. Set MS_JIT=0"
    assert caplog.text.count(calls) == (level == "mix"), "once, where calls outside are recorded"
    if level != "L1":
        graph_of = "MindSpore compiles Cell.block.CompiledBlock as a graph, and msprobe_ms records the Cells in it"
        assert caplog.text.count(graph_of) == 1
        inside = read_step(dump_path / "graph")
        assert len(inside.calls("Cell.block.fc.Dense")) == 4
        assert inside.construct["Cell.block.fc.Dense.forward.1"] == "Cell.block.CompiledBlock.forward.1"
        assert not caplog.records or "no entries of its own" not in caplog.text
        return
    said = (
        "Jit.CompiledBlock runs as one compiled graph; what is inside has no entries of its own: fc (Dense). "
        "Set MS_JIT=0 in the environment to run and record it call by call"
    )
    # Once, not once a call.
    assert (step.folder / ERROR_LOG).read_text().count(said) == 1
    assert [record.message for record in caplog.records].count(said) == 1


def test_every_step_says_what_it_hides_and_one_warns(
    ms: Any, dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dense = nn.Dense(2, 2)

    @mindspore.jit
    def forward(a: Tensor) -> Tensor:
        return dense(a) * 2

    logging.getLogger("msprobe_ms").addHandler(caplog.handler)
    try:
        debugger = msprobe_ms.PrecisionDebugger(write_config(dump_path, level="L1"))
        for _ in range(3):
            debugger.start()
            forward(x)
            debugger.stop()
            debugger.step()
    finally:
        logging.getLogger("msprobe_ms").removeHandler(caplog.handler)
    said = "Jit.forward runs as one compiled graph"
    assert all(said in (read_step(dump_path, step, troubles=True).folder / ERROR_LOG).read_text() for step in range(3))
    assert sum(said in record.message for record in caplog.records) == 1


def test_a_step_that_cannot_be_compiled_names_the_exception(
    ms: Any, dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net = Block()

    @mindspore.jit
    def forward(a: Tensor) -> Tensor:
        return net(a) @ "text"

    logging.getLogger("msprobe_ms").addHandler(caplog.handler)
    try:
        debugger = msprobe_ms.PrecisionDebugger(write_config(dump_path, level="L0"))
        debugger.start(net)
        try:
            forward(x)
        except TypeError:
            debugger.stop()
        debugger.step()
    finally:
        logging.getLogger("msprobe_ms").removeHandler(caplog.handler)
    (said,) = [record.message for record in caplog.records if "nothing was recorded" in record.message]
    assert "an exception ended the step before any module of Block was called (TypeError: " in said


def test_cells_that_a_function_reaches_by_name_are_said(ms: Any, dump_path: Path) -> None:
    dense = nn.Dense(2, 2)

    @mindspore.jit
    def forward(a: Tensor) -> Tensor:
        return dense(a) * 2

    with recording(None, dump_path, level="L1"):
        forward(x)
    step = read_step(dump_path, troubles=True)
    assert list(step.data) == ["Jit.forward.0.forward"]
    assert "dense (Dense)" in (step.folder / ERROR_LOG).read_text()


def trainer(net: nn.Cell) -> nn.Cell:
    cell = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.0))
    cell.set_train()
    return cell


#: Name of its entry → how a whole step is compiled.
WHOLE_STEPS: dict[str, Callable[[Any], Any]] = {
    "after_grad": lambda net: mindspore.jit(mindspore.value_and_grad(net, None, net.trainable_params())),
    "step": lambda net: graph_of_a_step(mindspore.value_and_grad(net, None, net.trainable_params())),
    "TrainOneStepCell": lambda net: mindspore.jit(trainer(net)),
}


@cache
def of_a_whole_step(name: str) -> list[Any]:
    """What it computes without the tool."""
    return [value.asnumpy() for value in tensors(WHOLE_STEPS[name](Around(Affine()))(x))]


@pytest.mark.parametrize(
    ("name", "level", "compiled_before"),
    [
        ("after_grad", "L1", True), ("step", "mix", True),
        ("TrainOneStepCell", "L0", True), ("TrainOneStepCell", "mix", False),
        thorough(("after_grad", "L0", False)), thorough(("step", "L1", False)),
        thorough(("TrainOneStepCell", "L1", True)),
    ],
)  # fmt: skip
def test_a_whole_step_in_one_graph(ms: Any, dump_path: Path, name: str, compiled_before: bool, level: str) -> None:
    """Forward and backward in one graph: its results are seen, and at L0 and mix the Cells inside."""
    expected = of_a_whole_step(name)
    net = Around(Affine())
    step_of = WHOLE_STEPS[name](net)
    if compiled_before:
        step_of(x)
    with recording(net, dump_path, level=level, task="tensor"):
        found = [value.asnumpy() for value in tensors(step_of(x))]
    assert [value.tobytes() for value in found] == [value.tobytes() for value in expected]
    if level != "L1":
        inside = read_step(dump_path / "graph" if level == "mix" else dump_path)
        names = ["Cell.affine.Affine.forward.0", "Cell.affine.Affine.backward.0"]
        assert [entry for entry in inside.data if ".parameters_grad." not in entry] == names
    if level != "L0":
        step = read_step(dump_path, troubles=True)
        assert list(step.data) == [f"Jit.{name}.0.forward"]
        results = [step.array(leaf) for _, leaf in leaves(step.data[f"Jit.{name}.0.forward"]["output"])]
        assert [result.tolist() for result in results] == [value.tolist() for value in expected]
    if level == "L1":
        said = (step.folder / ERROR_LOG).read_text()
        assert f"Jit.{name} runs as one compiled graph" in said
        assert "affine (Affine)" in said
    with calls_of_the_tool() as calls:
        step_of(x)
    assert calls == []


def graph_of_a_step(gradient: Callable[..., Any]) -> Callable[..., Any]:
    @mindspore.jit
    def step(a: Tensor) -> Any:
        return gradient(a)

    return step


@contextmanager
def calls_of_the_tool() -> Iterator[list[str]]:
    calls = list[str]()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def test_cells_behind_other_functions_are_said(ms: Any, dump_path: Path) -> None:
    dense, other = nn.Dense(2, 2), nn.SequentialCell(nn.Dense(2, 2))

    def helper(a: Tensor) -> Tensor:
        return dense(a)

    def forward(b: Tensor, a: Tensor) -> Tensor:
        return helper(a) * b + other(a)

    @mindspore.jit
    def graph(a: Tensor) -> Tensor:
        return forward(y, a)

    with recording(other, dump_path, level="L1"):
        graph(x)
    step = read_step(dump_path, troubles=True)
    assert list(step.data) == ["Jit.graph.0.forward"]
    said = (step.folder / ERROR_LOG).read_text()
    assert "no entries of its own: other (SequentialCell), other.0 (Dense), dense (Dense)." in said


class Parts(nn.Cell):
    """Compiled methods, each of which calls some of its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.f, self.g, self.h = nn.Dense(2, 2), nn.SequentialCell(nn.Dense(2, 2)), nn.Dense(2, 2)
        self.heads = [nn.Dense(2, 2), nn.Dense(2, 2)]

    def construct(self, a: Tensor) -> Tensor:
        return self.h(self.one(self.f(a)))

    def inner(self, a: Tensor) -> Tensor:
        return self.h(a)

    @property
    def last(self) -> nn.Cell:
        return self.f

    @mindspore.jit
    def one(self, a: Tensor) -> Tensor:
        return self.g(a)

    @mindspore.jit
    def two(self, a: Tensor) -> Tensor:
        return self.inner(self.g(a))

    def by_property(self, a: Tensor) -> Tensor:
        return self.last(a)

    def of_a_list(self, a: Tensor) -> Tensor:
        return self.heads[0](a)

    def any_by_name(self, a: Tensor) -> Tensor:
        return getattr(self, "f")(a)  # noqa: B009

    def whole(self, a: Tensor) -> Tensor:
        return self.construct(a)


@pytest.mark.parametrize(("name", "hidden"), [("one", "g g.0"), ("two", "g g.0 h")])
def test_a_method_of_a_cell_hides_only_what_it_calls(
    ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hidden: str
) -> None:
    net = Parts()
    monkeypatch.setitem(globals(), "g", net)  # what is called as an attribute is of the same name here
    with recording(net, dump_path, level="L1"):
        getattr(net, name)(x)
    classes = {"g": "SequentialCell", "g.0": "Dense", "h": "Dense"}
    parts = [f"{part} ({classes[part]})" for part in hidden.split()]
    log = (read_step(dump_path, troubles=True).folder / ERROR_LOG).read_text()
    said = f"Jit.{name} runs as one compiled graph; what is inside has no entries of its own: {', '.join(parts)}. "
    assert said in log


@pytest.mark.parametrize(
    ("name", "hidden"),
    [("by_property", "f"), ("of_a_list", "heads[0] heads[1]"), ("any_by_name", "f g g.0 h"), ("whole", "f g g.0 h")],
)
@pytest.mark.parametrize("bound", [False, True])
def test_what_a_method_can_name(ms: Any, name: str, hidden: str, bound: bool) -> None:
    net = Parts()
    function, owner = (getattr(net, name), None) if bound else (getattr(Parts, name), net)
    called = describe(SimpleNamespace(fn=function, obj=owner), ())
    assert {found.partition(" ")[0] for found, _ in called.modules()} - {name} >= set(hidden.split())
    if name in ("by_property", "of_a_list"):
        assert [found.partition(" ")[0] for found, _ in called.modules()] == hidden.split()


class Trainer:
    """Not a Cell, and holds one."""

    def __init__(self, held: nn.Cell) -> None:
        self.held = held
        self.table = {"nets": [held, nn.Dense(2, 2)]}

    def forward(self, a: Tensor) -> Tensor:
        return self.held(a).sum()

    @mindspore.jit
    def step(self, a: Tensor) -> Tensor:
        return self.held(a)


@pytest.mark.parametrize("name", ["step", "after_grad"])
def test_cells_of_an_object_are_said(ms: Any, dump_path: Path, name: str) -> None:
    net = nn.SequentialCell(nn.Dense(2, 2))
    trainer = Trainer(net)
    run = trainer.step if name == "step" else mindspore.jit(mindspore.grad(trainer.forward))
    with recording(net, dump_path, level="L1"):
        run(x)
    said = (read_step(dump_path, troubles=True).folder / ERROR_LOG).read_text()
    assert f"Jit.{name} runs as one compiled graph" in said
    assert "held (SequentialCell), held.0 (Dense), table['nets'][1] (Dense)." in said


#: Name of its entry, and what compiles.
TRANSFORMS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "vmap": ("after_vmap", lambda function: mindspore.vmap(function)(x)),
    "jvp": ("_wrap_container", lambda function: mindspore.jvp(function, x, x)),
    "jacfwd": ("wrapped", lambda function: mindspore.jacfwd(function)(x)),
    "jacrev": ("wrapped", lambda function: mindspore.jacrev(function)(x)),
}


@cache
def transformed(kind: str) -> tuple[nn.Cell, list[bytes]]:
    """A net, and what its transform computes without the tool."""
    net = nn.SequentialCell(nn.Dense(2, 2))

    def function(a: Tensor) -> Tensor:
        return net(a)

    return net, [value.asnumpy().tobytes() for value in tensors(TRANSFORMS[kind][1](function))]


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("vmap", "L1"), ("jvp", "L1"), ("jacfwd", "mix"), ("jacrev", "L0"),
        thorough(("vmap", "L0")), thorough(("jvp", "mix")), thorough(("jacfwd", "L1")), thorough(("jacrev", "L1")),
    ],
)  # fmt: skip
def test_transforms_that_compile(
    ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, level: str
) -> None:
    monkeypatch.chdir(dump_path.parent)  # where MindSpore leaves what it could not compile
    (name, transform), (net, expected) = TRANSFORMS[kind], transformed(kind)

    def function(a: Tensor) -> Tensor:
        return net(a)

    with recording(net, dump_path, level=level):
        assert [value.asnumpy().tobytes() for value in tensors(transform(function))] == expected
    step = read_step(dump_path, troubles=True)
    assert list(step.data) == ([f"Jit.{name}.0.forward"] if level != "L0" else [])
    if level == "L1":
        said = (
            "runs as one compiled graph; what is inside has no entries of its own: net (SequentialCell), net.0 (Dense)"
        )
    else:  # they are compiled without callbacks
        said = "Cells in a graph that does not compile with callbacks in it: RuntimeError"
    logs = [log.read_text() for log in dump_path.rglob(ERROR_LOG)]
    assert any(said in log for log in logs)


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_ms_jit_0_shows_what_is_inside(ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setenv("MS_JIT", "0")
    net = Net(CompiledBlock())
    with recording(net, dump_path, level=level):
        train(net)
    step = read_step(dump_path)
    assert ("Cell.block.fc.Dense.forward.0" in step.data) == (level != "L1")
    assert ("Functional.relu.0.forward" in step.data) == (level != "L0")
    assert not [entry for entry in step.data if entry.startswith("Jit.")]


@pytest.mark.parametrize("optimizer", [nn.SGD, nn.Momentum, nn.Adam, nn.AdamWeightDecay])
def test_optimizers_are_not_the_users_jit(ms: Any, dump_path: Path, optimizer: Any) -> None:
    weight = mindspore.Parameter(x * 1, name="w")
    update = optimizer([weight], 0.1, **({"momentum": 0.9} if optimizer is nn.Momentum else {}))
    with recording(None, dump_path, level="L1"):
        update((x,))
        update((x,))
    assert not [entry for entry in read_step(dump_path).data if entry.startswith("Jit.")]


def test_what_mindspore_compiles_itself_is_not_the_users() -> None:
    """Functions of its own are graphs; a cell of its own is one only where a user made it one."""
    assert describe(SimpleNamespace(fn=mindspore.amp.all_finite, obj=None), ()).frameworks_own
    net = nn.TrainOneStepCell(nn.WithLossCell(Block(), nn.MSELoss()), nn.SGD(nn.Dense(1, 1).trainable_params(), 0.1))
    users = describe(SimpleNamespace(fn=nn.TrainOneStepCell.construct, obj=net), (net,))
    assert not users.frameworks_own
    assert (users.name, users.leading) == ("TrainOneStepCell", 1)
    assert "network._backbone.fc (Dense)" in [name for name, _ in users.modules()]


def test_a_jitted_function_that_raises(ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dump_path.parent)  # MindSpore leaves its analysis behind

    @mindspore.jit
    def bad(a: Tensor, b: Tensor) -> Tensor:
        return ops.matmul(a, b)

    with recording(None, dump_path, level="L1"):
        with pytest.raises(RuntimeError, match="shape"):
            bad(x, Tensor(np.ones((5, 5), np.float32)))
        ops.relu(x)
    assert list(read_step(dump_path).data) == ["Functional.relu.0.forward"]


# -- bytecode and trace: back to Python --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capture_mode", "compiled_before"), [("bytecode", False), ("bytecode", True), ("trace", False)]
)
def test_dumped_call_by_call(ms: Any, dump_path: Path, capture_mode: str, compiled_before: bool) -> None:
    function = mindspore.jit(plain, capture_mode=capture_mode)
    expected = gradients(plain)
    if compiled_before:
        gradients(function)
    with recording(None, dump_path, level="L1", task="tensor"):
        found = gradients(function)
    assert found[0] == expected[0]
    assert [g.tobytes() for g in found[1]] == [g.tobytes() for g in expected[1]]
    step = read_step(dump_path)
    for entry in ("Tensor.__matmul__.0", "Functional.relu.0", "Tensor.sum.0", "Functional.exp.0"):
        assert {f"{entry}.forward", f"{entry}.backward"} <= set(step.data)


@pytest.mark.parametrize("capture_mode", ["bytecode", "trace"])
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_cells_inside_are_seen(ms: Any, dump_path: Path, capture_mode: str, level: str) -> None:
    class Captured(Block):
        @mindspore.jit(capture_mode=capture_mode)
        def construct(self, a: Tensor) -> Tensor:
            return ops.relu(self.fc(a)) + 1

    expected = train(Net(Block()))
    net = Net(Captured())
    with recording(net, dump_path, level=level):
        assert train(net) == expected
    step: Step = read_step(dump_path)
    for base in ("Cell.block.fc.Dense", "Cell.block.Captured", "Cell.head.Dense"):
        assert step.calls(base) == [f"{base}.forward.0", f"{base}.backward.0"]


TRACED = """
import sys
import mindspore
import numpy as np
from mindspore import Tensor, ops
from msprobe_ms import PrecisionDebugger

calls = []

@mindspore.jit(capture_mode="trace")
def traced(a):
    calls.append(a)
    return ops.relu(a) * 2

x = Tensor(np.array([1, -2], np.float32))
debugger = PrecisionDebugger(level="L1", dump_path=sys.argv[1])
traced(x), traced(x)
assert len(calls) == 1, "captured once, then run as a graph"
debugger.start()
assert traced(x).asnumpy().tolist() == [2, 0]
debugger.stop()
assert len(calls) == 2, "recording runs the function itself"
traced(x)
assert len(calls) == 2, "and afterwards the graph runs again"
debugger.step()
"""


def test_a_traced_function_is_a_graph_before_and_after(dump_path: Path) -> None:
    """In a script of its own: MindSpore cannot trace below frames without source, as a test runner has."""
    script = dump_path.with_name("traced.py")
    script.write_text(TRACED)
    ended = run_forked(script, dump_path, framework="mindspore", timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert list(read_step(dump_path).data) == ["Functional.relu.0.forward", "Tensor.__mul__.0.forward"]
