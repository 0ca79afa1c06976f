"""Jitted functions and cells: one entry with true gradients, or call by call; what is hidden is said."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from recording import ERROR_LOG, Step, read_step, recording

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


def test_gradients_equal_those_of_the_plain_function(ms: Any, dump_path: Path) -> None:
    with recording(None, dump_path, level="L1", task="tensor"):
        gradients(mindspore.jit(plain))
    backward = read_step(dump_path).backward("Jit.plain")
    step = read_step(dump_path)
    sensitivity = ops.exp(x).asnumpy()
    assert np.allclose(step.array(backward["input"][0]), sensitivity, rtol=1e-6)
    expected = mindspore.grad(lambda a, b: (plain(a, b) * Tensor(sensitivity)).sum(), (0, 1))(x, y)
    for leaf, gradient in zip(backward["output"], expected, strict=True):
        assert np.allclose(step.array(leaf), gradient.asnumpy(), rtol=1e-6)


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


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("compiled_before", [False, True])
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
    hidden = "fc (Dense)" if level == "L1" else "Cell.block.fc.Dense"
    said = (
        f"Jit.CompiledBlock runs as one compiled graph; what is inside has no entries of its own: {hidden}. "
        "Set MS_JIT=0 in the environment to run and record it call by call"
    )
    # Once, not once a call.
    assert (step.folder / ERROR_LOG).read_text().count(said) == 1
    assert [record.message for record in caplog.records].count(said) == 1


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


def test_ms_jit_0_shows_what_is_inside(ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_JIT", "0")
    net = Net(CompiledBlock())
    with recording(net, dump_path, level="mix"):
        train(net)
    step = read_step(dump_path)
    assert "Cell.block.fc.Dense.forward.0" in step.data
    assert not [entry for entry in step.data if entry.startswith("Jit.")]


@pytest.mark.parametrize("optimizer", [nn.SGD, nn.Momentum, nn.Adam, nn.AdamWeightDecay])
def test_optimizers_are_not_the_users_jit(ms: Any, dump_path: Path, optimizer: Any) -> None:
    weight = mindspore.Parameter(x * 1, name="w")
    update = optimizer([weight], 0.1, **({"momentum": 0.9} if optimizer is nn.Momentum else {}))
    with recording(None, dump_path, level="L1"):
        update((x,))
        update((x,))
    assert not [entry for entry in read_step(dump_path).data if entry.startswith("Jit.")]


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
    subprocess.run(
        [sys.executable, str(script), str(dump_path)],
        check=True,
        timeout=120,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert list(read_step(dump_path).data) == ["Functional.relu.0.forward", "Tensor.__mul__.0.forward"]


def test_no_trace_after_stop(ms: Any, dump_path: Path) -> None:
    from mindspore.graph import api, jit_trace
    from mindspore.graph._utils.pijit_context import PIJitCaptureContext

    def state() -> list[Any]:
        return [dict(vars(api._JitExecutor)), dict(vars(PIJitCaptureContext)), dict(vars(jit_trace))]

    before = state()
    with recording(None, dump_path, level="L1"):
        assert state() != before
        mindspore.jit(plain)(x, y)
    assert state() == before
