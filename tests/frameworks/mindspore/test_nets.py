"""Five nets: a MindSpore that does not show its graph, networks with their loss, three steps of a training."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import mindspore
import nets_mindspore
import numpy as np
import pytest
from mindspore import nn, ops
from recording import FIGURES, Step, leaves, read_step, recording
from thorough import thorough

LEVELS = ("L0", "L1", "mix")


class Bare(dict):
    """A net's loss, gradients and calls without the tool."""


@pytest.fixture(scope="module")
def bare() -> dict[str, Any]:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    results = {}
    for name in nets_mindspore.NETS:
        net, x, labels = nets_mindspore.make(name)
        results[name] = (*nets_mindspore.value_and_grad(net, x, labels), called_cells(*nets_mindspore.make(name)))
    return results


def called_cells(net: nn.Cell, x: Any, labels: Any) -> Counter[str]:
    """How often each Cell below the net is called, counted by hooks of our own."""
    counts: Counter[str] = Counter()
    for name, cell in net.cells_and_names():
        if name:
            base = f"Cell.{name}.{type(cell).__name__}"
            cell.register_forward_hook(lambda cell, args, output, base=base: counts.update([base]))
    nets_mindspore.loss(net, x, labels)
    return counts


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("residual", "L0"), ("lstm", "L1"), ("residual", "mix"),
        thorough(("lstm", "L0")), thorough(("residual", "L1")), thorough(("lstm", "mix")),
    ],
)  # fmt: skip
def test_figures_do_not_depend_on_the_task(ms: Any, dump_path: Path, name: str, level: str) -> None:
    steps = []
    for task in ("tensor", "statistics"):
        net, x, labels = nets_mindspore.make(name)
        folder = dump_path.with_name(task)
        with recording(net, folder, level=level, task=task):
            nets_mindspore.value_and_grad(net, x, labels)
        steps.append(read_step(folder))
    assert list(steps[0].data) == list(steps[1].data)
    first, second = ({place: [leaf[key] for key in FIGURES] for place, leaf in leaves(step.data)} for step in steps)
    assert first == second


def assert_parameter_gradients(step: Step, net: nn.Cell, gradients: dict[str, np.ndarray]) -> None:
    """The gradient files of every Cell below the net hold what ``value_and_grad`` returned, bit for bit."""
    seen = 0
    for name, cell in net.cells_and_names():
        if not name:
            continue
        own = {key: parameter for key, parameter in cell._params.items() if parameter.requires_grad}
        entry = step.data.get(f"Cell.{name}.{type(cell).__name__}.parameters_grad.0", {})
        assert set(entry) == set(own), name
        for key, parameter in own.items():
            assert step.array(entry[key][0]).tobytes() == gradients[parameter.name].tobytes(), (name, key)
            seen += 1
    assert seen


def by_value_and_grad(net: nn.Cell, x: Any, labels: Any) -> list[Any]:
    return list(mindspore.value_and_grad(net, None, net.trainable_params())(x, labels)[1])


def by_grad(net: nn.Cell, x: Any, labels: Any) -> list[Any]:
    return list(mindspore.grad(net, None, net.trainable_params())(x, labels))


def by_gradient_of_function(net: nn.Cell, x: Any, labels: Any) -> list[Any]:
    return list(mindspore.grad(lambda x, labels: net(x, labels), None, net.trainable_params())(x, labels))


def by_grad_operation(net: nn.Cell, x: Any, labels: Any) -> list[Any]:
    return list(ops.GradOperation(get_by_list=True)(net, net.trainable_params())(x, labels))


class Loss(nn.Cell):
    def construct(self, logits: Any, labels: Any) -> Any:
        return nets_mindspore.cross_entropy(logits, labels)


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize("gradient", [by_value_and_grad, by_grad, by_gradient_of_function, by_grad_operation])
def test_the_recorded_network_itself_is_differentiated(ms: Any, dump_path: Path, gradient: Any, level: str) -> None:
    def with_loss() -> tuple[nn.Cell, Any, Any]:
        net, x, labels = nets_mindspore.make("two_linear")
        return nn.WithLossCell(net, Loss()), x, labels

    expected = [each.asnumpy().copy() for each in gradient(*with_loss())]
    net, x, labels = with_loss()
    with recording(net, dump_path, level=level, task="tensor"):
        gradients = [each.asnumpy().copy() for each in gradient(net, x, labels)]
    assert [each.tobytes() for each in gradients] == [each.tobytes() for each in expected]
    step = read_step(dump_path)
    by_name = dict(zip((p.name for p in net.trainable_params()), gradients, strict=True))
    assert_parameter_gradients(step, net, by_name)
    for base in (
        "_backbone.fc1.Dense",
        "_backbone.relu.ReLU",
        "_backbone.fc2.Dense",
        "_backbone.TwoLinear",
        "_loss_fn.Loss",
    ):
        assert step.calls(f"Cell.{base}") == [f"Cell.{base}.forward.0", f"Cell.{base}.backward.0"]


@pytest.mark.parametrize("level", LEVELS)
def test_train_one_step_cell(ms: Any, dump_path: Path, level: str) -> None:
    """Three optimizer steps of nn.TrainOneStepCell: losses and weights bit for bit, gradients recorded each step."""

    def train(debugger_of: Any) -> tuple[list[bytes], dict[str, bytes]]:
        net, x, labels = nets_mindspore.make("two_linear")
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        trainer = nn.TrainOneStepCell(nn.WithLossCell(net, Loss()), optimizer)
        trainer.set_train()
        losses = []
        for step in range(3):
            with debugger_of(net, step):
                losses.append(trainer(x, labels).asnumpy().tobytes())
        return losses, {p.name: p.asnumpy().tobytes() for p in net.trainable_params()}

    from contextlib import nullcontext

    expected = train(lambda net, step: nullcontext())
    found = train(lambda net, step: recording(net, dump_path.with_name(str(step)), level=level))
    assert found == expected
    for number in range(3):
        step = read_step(dump_path.with_name(str(number)))
        if level != "L1":
            assert set(step.data["Cell.fc1.Dense.parameters_grad.0"]) == {"weight", "bias"}
            assert step.backward("Cell.fc2.Dense")["input"][0]["shape"] == [4, 10]


@pytest.mark.parametrize(
    ("name", "level"),
    [
        each if (row + column) % 2 == 0 else thorough(each)
        for row, name in enumerate(nets_mindspore.NETS)
        for column, level in enumerate(["L0", "mix"])
        for each in [(name, level)]
    ],
)
def test_a_mindspore_that_does_not_show_its_graph(
    ms: Any, bare: dict[str, Any], dump_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, level: str
) -> None:
    """As before 2.8: gradients are observed by nodes of our own, which changes no bit either."""
    monkeypatch.setattr("msprobe_ms.frameworks.mindspore.framework.has_graph", lambda: False)
    expected_loss, expected_gradients, calls = bare[name]
    net, x, labels = nets_mindspore.make(name)
    with recording(net, dump_path, level=level, task="tensor"):
        loss, gradients = nets_mindspore.value_and_grad(net, x, labels)
    assert loss.tobytes() == expected_loss.tobytes()
    assert nets_mindspore.same_bits(gradients, expected_gradients)
    step = read_step(dump_path)
    for base, count in calls.items():
        assert len(step.calls(base)) == 2 * count, base
    assert_parameter_gradients(step, net, expected_gradients)


@pytest.mark.parametrize("level", LEVELS)
def test_a_forward_without_gradient_has_no_backward(ms: Any, dump_path: Path, level: str) -> None:
    net, x, _ = nets_mindspore.make("two_linear")
    expected = net(x).asnumpy().tobytes()
    with recording(net, dump_path, level=level):
        assert net(x).asnumpy().tobytes() == expected
    assert not [entry for entry in read_step(dump_path).data if "backward" in entry or "parameters_grad" in entry]
