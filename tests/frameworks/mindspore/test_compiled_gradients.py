"""Task grad_probe in compiled steps: what is written is what the optimizer in them gets, and no bit changes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, _c_expression, nn, ops

from msprobe_ms import PrecisionDebugger

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
NAMES = ["scale", "dense.weight", "dense.bias"]


class Net(nn.Cell):
    """With dropout, whose draws must be those of a run without us, and a parameter without dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = mindspore.Parameter(Tensor(1.5, mindspore.float32), name="scale")
        self.dense = nn.Dense(3, 2, weight_init=Tensor(np.linspace(-0.5, 0.5, 6, dtype=np.float32).reshape(2, 3)))
        self.dropout = nn.Dropout(p=0.5)

    def construct(self, x: Any) -> Any:
        return (self.dropout(ops.tanh(self.dense(x)) * self.scale) ** 2).sum()


class Training:
    """A training whose step is compiled as a whole."""

    def __init__(self, way: str) -> None:
        mindspore.set_seed(3)
        self.net = Net().set_train()
        self.optimizer = nn.Momentum(self.net.trainable_params(), 0.1, 0.9)
        self.step: Callable[[Tensor], Tensor] = self._step(way)

    def _step(self, way: str) -> Callable[[Tensor], Tensor]:
        if way == "cell":
            return nn.TrainOneStepCell(self.net, self.optimizer).set_train()  # type: ignore[no-any-return]
        gradients = mindspore.value_and_grad(self.net, None, self.optimizer.parameters)
        optimizer = self.optimizer

        def step(x: Any) -> Any:
            loss, found = gradients(x)
            optimizer(found)
            return loss

        return mindspore.jit(step) if way == "jit" else step

    def run(self, steps: int) -> list[bytes]:
        told = [self.step(Tensor(X)).asnumpy().tobytes() for _ in range(steps)]
        return told + [parameter.asnumpy().tobytes() for parameter in self.optimizer.parameters]


@pytest.fixture(params=["cell", "jit"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "cell":
        mindspore.set_context(mode=mindspore.GRAPH_MODE)
    yield request.param
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


def watching(folder: Path, watched: Any, **section: Any) -> PrecisionDebugger:
    written = {"task": "grad_probe", "dump_path": str(folder), "grad_probe": section}
    config = folder.parent / f"{folder.name}.json"
    config.write_text(json.dumps(written))
    debugger = PrecisionDebugger(str(config))
    debugger.monitor(watched)
    return debugger


def written(folder: Path) -> dict[str, list[dict[str, str]]]:
    found = {}
    for file in sorted((folder / "rank0").glob("*.csv")):
        with file.open(newline="") as opened:
            found[file.name] = list(csv.DictReader(opened))
    return found


def test_a_compiled_step_writes_each_gradient_and_keeps_its_bits(tmp_path: Path, way: str) -> None:
    before = Training(way).run(3)
    training = Training(way)
    debugger = watching(tmp_path / "compiled", training.optimizer)
    assert training.run(3) == before
    debugger.retire()
    compiled = written(tmp_path / "compiled")
    assert [row["param_name"] for row in compiled["grad_summary_2.csv"]] == NAMES
    signs = np.load(tmp_path / "compiled" / "rank0" / "step1" / "dense.weight.npy")
    assert signs.shape == (2, 3) and signs.dtype == np.bool_
    assert training.run(1) and list(written(tmp_path / "compiled")) == [f"grad_summary_{n}.csv" for n in range(3)]
    assert [row["shape"] for row in compiled["grad_summary_0.csv"]] == ["[]", "[2, 3]", "[2]"]


def test_gradients_of_compiled_steps_are_the_optimizers(tmp_path: Path, way: str) -> None:
    """Without momentum and dropout a step changes a parameter by its gradient."""
    training = Training(way)
    training.net.dropout = nn.Identity()
    training.optimizer = nn.SGD(training.net.trainable_params(), learning_rate=1.0)
    training.step = training._step(way)
    before = [parameter.asnumpy().copy() for parameter in training.optimizer.parameters]
    debugger = watching(tmp_path / "out", training.net, param_list=["scale", "dense.bias"])
    training.run(1)
    debugger.retire()
    (rows,) = written(tmp_path / "out").values()
    assert [row["param_name"] for row in rows] == ["scale", "dense.bias"]
    for row, place in zip(rows, (0, 2), strict=True):
        gradient = before[place] - training.optimizer.parameters[place].asnumpy()
        assert float(row["max"]) == pytest.approx(gradient.max(), rel=1e-4)
        assert float(row["min"]) == pytest.approx(gradient.min(), rel=1e-4)


def compilers() -> list[dict[str, int]]:
    """Attributes by identity: what stands in place of a function is equal to it."""
    executors = (_c_expression.JitExecutor_, _c_expression.GraphExecutor_)
    return [{name: id(value) for name, value in vars(executor).items()} for executor in executors]


def test_monitors_leave_nothing_in_whatever_order_they_end(tmp_path: Path) -> None:
    before, optimizers = compilers(), [nn.SGD(Net().trainable_params(), 0.1) for _ in range(3)]
    for number, order in enumerate(permutations(range(3))):
        watches = [watching(tmp_path / f"{number}_{each}", optimizers[each]) for each in range(3)]
        assert compilers() != before
        for each in order:
            watches[each].retire()
        assert compilers() == before


class Noisy(Net):
    """Gets the seed of its operator when it is compiled."""

    def construct(self, x: Any) -> Any:
        return super().construct(x) + ops.randn(1).sum()


def test_a_step_compiled_again_takes_no_random_numbers_from_the_training(tmp_path: Path) -> None:
    def drawn(*, watch: bool) -> list[str]:
        training = Training("jit")
        training.net = Noisy().set_train()
        training.optimizer = nn.Momentum(training.net.trainable_params(), 0.1, 0.9)
        training.step = training._step("jit")
        told = [str(ops.randn(2))] if training.run(1) else []
        debugger = watching(tmp_path / "out", training.optimizer) if watch else None
        told += [str(ops.randn(2)) for _ in range(2) if training.run(1)]
        if debugger is not None:
            debugger.retire()
        return told

    assert drawn(watch=True) == drawn(watch=False)
