"""What `docs/coverage.md` says, net by net and level by level, against lists written by hand and an own trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import mindspore
import nets_mindspore
import numpy as np
import pytest
from combinations import pairwise
from mindspore import Tensor, nn, ops
from nets_dynamic import CASES, LOSS, Case, make
from recording import Step, assert_figures, leaves, read_step, recording
from thorough import thorough
from tracing import Traced, trace

LEVELS = ("L0", "L1", "mix")


@cache
def traced(name: str) -> list[Traced]:
    """The net's calls, found without the tool."""
    case = CASES[name]
    return trace(case.plain or case.make, nets_mindspore.loss, (*case.apis, *LOSS), lambda cell: cell in case.hidden)


@cache
def trained(name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Loss and gradients without the tool."""
    case = CASES[name]
    return nets_mindspore.value_and_grad(*(case.uncaptured or case.make)())


def seen(level: str, name: str) -> bool:
    """Whether a call of this name has an entry at this level."""
    return level == "mix" or name.startswith("Cell.") == (level == "L0")


def numbered(names: list[str]) -> list[str]:
    counts: Counter[str] = Counter()
    found = []
    for name in names:
        is_cell, index = name.startswith("Cell."), counts[name]
        found.append(f"{name}.forward.{index}" if is_cell else f"{name}.{index}.forward")
        counts[name] += 1
    return found


@pytest.mark.parametrize(
    ("name", "level"),
    [
        each if row % len(LEVELS) == column else thorough(each)
        for row, name in enumerate(CASES)
        for column, level in enumerate(LEVELS)
        for each in [(name, level)]
    ],
)
def test_a_recorded_training_step(ms: Any, dump_path: Path, name: str, level: str) -> None:
    case = CASES[name]
    expected_loss, expected_gradients = trained(name)
    net, x, labels = case.make()
    with recording(net, dump_path, level=level, task="tensor"):
        loss, gradients = nets_mindspore.value_and_grad(net, x, labels)
    # Invariant 1, neutral.
    assert loss.tobytes() == expected_loss.tobytes()
    assert gradients.keys() == expected_gradients.keys()
    assert all(gradients[key].tobytes() == expected_gradients[key].tobytes() for key in gradients)

    step = read_step(dump_path, troubles=bool(case.hidden))
    assert_complete(step, case, level, traced(name))
    assert_calls(step, name, level)
    assert_parameter_gradients(step, net, gradients if level != "L1" else {})
    # Invariant 5, right numbers.
    assert assert_figures(step) > 3


def assert_complete(step: Step, case: Case, level: str, calls: list[Traced]) -> None:
    """Every call is there, in its order and its place, and not one more."""
    assert [call.base for call in calls if call.is_cell] == list(case.cells)
    assert [call.base for call in calls if not call.is_cell] == [*case.apis, *LOSS]
    found = [entry for entry in step.data if "forward" in entry]
    first = [call.base for call in calls if seen(level, call.base)]
    again = [name.rpartition(".")[0] for name in case.again if seen(level, name)]
    assert sorted(found) == sorted(numbered([*first, *again]))
    assert found[: len(first)] == [call.entry("forward") for call in calls if seen(level, call.base)]
    assert [entry.split(".")[:2] for entry in found[len(first) :]] == [base.split(".")[:2] for base in again]
    marked = [entry for entry in found if step.data[entry].get("recompute")]
    assert marked == found[len(first) :]
    if level == "mix":
        assert {call.entry("forward"): call.parent for call in calls}.items() <= step.construct.items()


def assert_calls(step: Step, name: str, level: str) -> None:
    case = CASES[name]
    for call in traced(name):
        if seen(level, call.base):
            assert_values(step, call, exact=case.plain is None)
            assert_gradients(step, call, case)


def assert_values(step: Step, call: Traced, *, exact: bool) -> None:
    """Inputs and outputs are the tensors that the call got and gave."""
    entry = step.data[call.entry("forward")]
    inputs = {**dict(leaves(entry["input_args"])), **dict(leaves(entry.get("input_kwargs", {})))}
    outputs = dict(leaves(entry["output"]))
    assert inputs.keys() == call.inputs.keys(), call
    scratch = call.outputs.keys() - outputs.keys()
    assert scratch == SCRATCH.get(call.base, set()), call
    for recorded, expected in ((inputs, call.inputs), (outputs, call.outputs)):
        for place, leaf in recorded.items():
            if exact:
                assert np.array_equal(step.array(leaf), expected[place]), (call, place)
            else:
                np.testing.assert_allclose(step.array(leaf), expected[place], rtol=1e-5, atol=1e-6)


#: Results that CPU kernels never write.
SCRATCH = {"Primitive.bn_train.BatchNorm": {("1",), ("2",)}, "Primitive.LSTM.LSTM": {("3",), ("4",)}}


def assert_gradients(step: Step, call: Traced, case: Case) -> None:
    """What came back to a call's results, and what it gave back to its inputs, is what zeros added there say."""
    # Of what is called again the second call may be the one that gradients flow through.
    again = [name for name in case.again if case.gradients_again and name.startswith(f"{call.base}.")]
    numbers = {name: index for index, name in enumerate(again, start=case.count(call.base))}
    name = replace(call, index=numbers.get(f"{call.base}.{call.index}", call.index)).entry("backward")
    entry = step.data.get(name)
    if call.base in case.hand_on:
        assert entry is None
        return
    if entry is None:
        assert not any(gradient.needed for gradient in call.output_gradients.values()), name
        return
    for field, expected in (("input", call.output_gradients), ("output", call.input_gradients)):
        recorded = dict(leaves(entry[field]))
        assert recorded.keys() <= expected.keys(), (name, field)
        for place, (gradient, needed) in expected.items():
            if place in recorded:
                bound = 1e-6 * float(np.abs(gradient).max(initial=0))
                found = step.array(recorded[place])
                np.testing.assert_allclose(found, gradient, rtol=1e-4, atol=bound, err_msg=f"{name} {field} {place}")
            else:
                assert not needed, (name, field, place)


def assert_parameter_gradients(step: Step, net: nn.Cell, gradients: dict[str, np.ndarray]) -> None:
    """The gradient files of every Cell hold what the user was given, bit for bit."""
    found = {}
    for name, cell in net.cells_and_names():
        base = ".".join(filter(None, ("Cell", name, type(cell).__name__)))
        entry = step.data.get(f"{base}.parameters_grad.0", {})
        for key, (leaf,) in entry.items():
            found[cell._params[key].name] = step.array(leaf).tobytes()
    assert found == {name: gradient.tobytes() for name, gradient in gradients.items()}
    assert len([entry for entry in step.data if "parameters_grad.1" in entry]) == 0


# -- several models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_models_in_a_list(ms: Any, dump_path: Path, level: str) -> None:
    """Two networks in one loss: each has its own names, both have all their calls, values and gradients."""

    def train(nets: list[Any]) -> tuple[Any, list[Any]]:
        def total(*_: Any) -> Tensor:
            first, second = (nets_mindspore.loss(net, x, labels) for net, x, labels in nets)
            return first + second

        weights = [weight for net, *_ in nets for weight in net.trainable_params()]
        value, gradients = mindspore.value_and_grad(total, None, weights)(nets[0][1])
        return value.asnumpy().tobytes(), [gradient.asnumpy().tobytes() for gradient in gradients]

    names = ["looped", "tokens"]
    expected = train([CASES[name].make() for name in names])
    nets = [CASES[name].make() for name in names]
    with recording([net for net, *_ in nets], dump_path, level=level, task="tensor"):
        assert train(nets) == expected
    step = read_step(dump_path)
    calls = []
    before: Counter[str] = Counter()
    for number, name in enumerate(names):
        for call in traced(name):
            if call.is_cell:
                calls.append(replace(call, base=call.base.replace("Cell.", f"Cell.{number}.")))
            else:
                calls.append(replace(call, index=call.index + before[call.base]))
        before.update(call.base for call in traced(name) if not call.is_cell)
    calls = [call for call in calls if seen(level, call.base)]
    last = [f"Tensor.__add__.{before['Tensor.__add__']}.forward"] if level != "L0" else []
    assert [entry for entry in step.data if "forward" in entry] == [call.entry("forward") for call in calls] + last
    for call in calls:
        assert_values(step, call, exact=True)
        assert_gradients(step, call, Case(CASES["looped"].make, (), ()))


# -- other ways to a gradient ------------------------------------------------------------------------------------------


class Loss(nn.Cell):
    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return nets_mindspore.cross_entropy(logits, labels)


def by_grad(net: nn.Cell, x: Tensor, labels: Tensor) -> list[Any]:
    return list(mindspore.grad(nets_mindspore.loss, None, net.trainable_params())(net, x, labels))


def by_grad_operation(net: nn.Cell, x: Tensor, labels: Tensor) -> list[Any]:
    gradient = ops.GradOperation(get_by_list=True)(nn.WithLossCell(net, Loss()), net.trainable_params())
    return list(gradient(x, labels))


def by_train_one_step_cell(net: nn.Cell, x: Tensor, labels: Tensor) -> list[Any]:
    train = nn.TrainOneStepCell(nn.WithLossCell(net, Loss()), nn.SGD(net.trainable_params(), 0.1))
    train.set_train()
    return [train(x, labels), *net.trainable_params()]


def by_model(net: nn.Cell, x: Tensor, labels: Tensor) -> list[Any]:
    data = mindspore.dataset.NumpySlicesDataset((x.asnumpy(), labels.asnumpy()), ["x", "y"], shuffle=False).batch(2)
    model = mindspore.train.Model(net, Loss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(1, data, dataset_sink_mode=False)
    return net.trainable_params()


WAYS = [by_grad, by_grad_operation, by_train_one_step_cell, by_model]


@cache
def bare(way: Callable[..., list[Any]], name: str) -> list[bytes]:
    case = CASES[name]
    return [value.asnumpy().tobytes() for value in way(*(case.uncaptured or case.make)())]


@pytest.mark.parametrize(
    ("way", "name", "level"),
    [
        case if (place // 4 + place) % 2 == 0 else thorough(case)  # each way and each net twice
        for place, case in enumerate(pairwise(WAYS, ["residual", "jitted", "recomputed", "dropped"], LEVELS))
    ],
)
def test_every_way_to_a_gradient(
    ms: Any, dump_path: Path, way: Callable[..., list[Any]], name: str, level: str
) -> None:
    expected = bare(way, name)
    net, x, labels = CASES[name].make()
    with recording(net, dump_path, level=level, task="tensor"):
        found = [value.asnumpy().tobytes() for value in way(net, x, labels)]
    assert found == expected
    step = read_step(dump_path, troubles=bool(CASES[name].hidden))
    assert_complete(step, CASES[name], level, traced(name))
    assert_calls(step, name, level)
    assert_parameter_gradients(step, net, trained(name)[1] if level != "L1" else {})


# -- what a gradient of a result is ------------------------------------------------------------------------------------


class LossAndLogits(nn.Cell):
    """Returns a value that it has gone on to use itself, as many heads do."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 10)

    def construct(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.fc(x)
        return nets_mindspore.cross_entropy(logits, labels), logits


class Head(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.head = LossAndLogits()

    def construct(self, x: Tensor, labels: Tensor) -> Tensor:
        return self.head(x, labels)[0]


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_a_result_that_only_its_call_used_has_no_gradient(ms: Any, dump_path: Path, level: str) -> None:
    net, x, labels = make(Head)
    with recording(net, dump_path, level=level, task="tensor"):
        mindspore.value_and_grad(net, None, net.trainable_params())(x, labels)
    step = read_step(dump_path)
    of_loss, of_logits = step.backward("Cell.head.LossAndLogits")["input"]
    assert (step.array(of_loss), of_logits) == (1, None)
