"""``mindspore.train.Model`` with ``MsprobeStep``: each step recorded, training untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import nn
from recording import read_step, write_config

from msprobe_ms.mindspore import MsprobeInitStep, MsprobeStep, PrecisionDebugger
from msprobe_ms.support.errors import UsageError

STEPS = 3


class Net(nn.Cell):
    def __init__(self, raise_at: int = -1) -> None:
        super().__init__()
        self.fc1 = nn.Dense(4, 8, "ones", "zeros")
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(8, 2, "ones", "zeros")
        self.calls, self.raise_at = 0, raise_at

    def construct(self, x: Any) -> Any:
        self.calls += 1
        x = self.relu(self.fc1(x))
        if self.calls - 1 == self.raise_at:
            raise KeyError("the user's own")
        return self.fc2(x)


class Losses(mindspore.train.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.values: list[bytes] = []

    def on_train_step_end(self, run_context: Any) -> None:
        self.values.append(run_context.original_args().net_outputs.asnumpy().tobytes())


def fresh_executor() -> None:
    """After an exception in a Model, MindSpore itself runs every forward twice until its executor is cleared."""
    mindspore.common.api._pynative_executor.clear_res()


@pytest.fixture(autouse=True)
def undisturbed(ms: Any) -> None:
    fresh_executor()


def train(net: Net, callbacks: list[Any], epochs: int = 1, **keys: Any) -> list[bytes]:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((STEPS * 2, 4)).astype(np.float32)
    y = generator.standard_normal((STEPS * 2, 2)).astype(np.float32)
    data = mindspore.dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(2)
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    losses = Losses()
    model = mindspore.train.Model(net, nn.MSELoss(), optimizer)
    model.train(epochs, data, callbacks=[*callbacks, losses], dataset_sink_mode=False, **keys)
    return losses.values


def hooks_on(net: nn.Cell) -> int:
    tables = ("_forward_hook", "_forward_pre_hook")
    return sum(len(getattr(cell, table)) for _, cell in net.cells_and_names() for table in tables)


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_every_step_is_recorded_and_losses_stay(ms: Any, dump_path: Path, level: str) -> None:
    bare = train(Net(), [])
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, level=level))
    assert train(net, [MsprobeStep(debugger)]) == bare
    assert sorted(path.name for path in dump_path.iterdir()) == [f"step{step}" for step in range(STEPS)]
    for step in range(STEPS):
        data = read_step(dump_path, step).data
        cells = {
            f"Cell.{name}.{d}.0" for name in ("fc1.Dense", "relu.ReLU", "fc2.Dense") for d in ("forward", "backward")
        }
        cells |= {f"Cell.{name}.Dense.parameters_grad.0" for name in ("fc1", "fc2")}
        assert {name for name in data if name.startswith("Cell.")} == (set() if level == "L1" else cells)
        assert {"Functional.square.0.forward", "Functional.square.0.backward"} <= set(data) or level == "L0"
    assert hooks_on(net) == 0


def test_the_network_given_to_start_wins(ms: Any, dump_path: Path) -> None:
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start([net])
    debugger.stop()
    train(net, [MsprobeStep(debugger)])
    assert "Cell.0.fc1.Dense.forward.0" in read_step(dump_path, 1).data


def test_another_model_brings_its_own_network(ms: Any, dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    callback = MsprobeStep(debugger)
    for _ in range(2):
        train(Net(), [callback])
    assert "Cell.fc1.Dense.backward.0" in read_step(dump_path, 2 * STEPS - 1).data


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_training_that_raises_ends_cleanly(ms: Any, dump_path: Path, level: str) -> None:
    net = Net(raise_at=1)
    debugger = PrecisionDebugger(write_config(dump_path, level=level))
    relu = mindspore.ops.relu
    with pytest.raises(KeyError, match="the user's own"):
        train(net, [MsprobeStep(debugger)])
    assert hooks_on(net) == 0
    assert mindspore.ops.relu is relu
    whole, broken = read_step(dump_path, 0).data, read_step(dump_path, 1).data
    assert "Cell.fc2.Dense.backward.0" in whole
    assert "Cell.relu.ReLU.forward.0" in broken
    assert "Cell.fc2.Dense.forward.0" not in broken
    # The same objects go on with the next step, whole.
    fresh_executor()
    train(net, [MsprobeStep(debugger)])
    assert read_step(dump_path, 2).data.keys() == whole.keys()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("named", [True, False])
def test_a_resumed_training_counts_on(ms: Any, dump_path: Path, order: int, named: bool) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    callbacks = [MsprobeInitStep(debugger) if named else MsprobeInitStep(), MsprobeStep(debugger)][::order]
    train(Net(), callbacks, epochs=3, initial_epoch=2)
    assert sorted(path.name for path in dump_path.iterdir()) == [f"step{2 * STEPS + step}" for step in range(STEPS)]


def test_selected_steps(ms: Any, dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L0", step=[1]))
    train(Net(), [MsprobeStep(debugger)])
    assert [path.name for path in dump_path.iterdir()] == ["step1"]


@pytest.mark.parametrize("callback", [MsprobeStep, MsprobeInitStep])
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("config.json", "'config.json', a str,"),
        ({"level": "L0"}, "{'level': 'L0'}, a dict,"),
        (PrecisionDebugger, "the class PrecisionDebugger"),
    ],
)
def test_what_is_no_debugger_is_refused_before_training(callback: Any, given: Any, shown: str) -> None:
    with pytest.raises(UsageError) as refused:
        callback(given)
    name = callback.__name__
    accepted = f"give a PrecisionDebugger: {name}(PrecisionDebugger(config_path))"
    assert str(refused.value) == f"{name}: {shown} is not accepted; {accepted}"


def test_a_step_without_debugger_is_refused() -> None:
    with pytest.raises(UsageError, match="MsprobeStep: None, a NoneType, is not accepted"):
        MsprobeStep(None)  # type: ignore[arg-type]


def test_an_evaluation_alone_is_said_not_to_be_recorded(ms: Any, dump_path: Path, caplog: Any) -> None:
    x, y = np.ones((4, 4), np.float32), np.ones((4, 2), np.float32)
    data = mindspore.dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(2)
    model = mindspore.train.Model(Net(), nn.MSELoss(), metrics={"loss"})
    callback = MsprobeStep(PrecisionDebugger(write_config(dump_path, level="L0")))
    for _ in range(2):
        model.eval(data, callbacks=[callback], dataset_sink_mode=False)
    said = [record.message for record in caplog.records if "Model.eval" in record.message]
    assert len(said) == 1 and said[0].startswith("MsprobeStep records the steps of Model.train, nothing of Model.eval")
    assert not dump_path.exists()


def test_an_evaluation_between_epochs_is_not_spoken_of(ms: Any, dump_path: Path, caplog: Any) -> None:
    x, y = np.ones((4, 4), np.float32), np.ones((4, 2), np.float32)
    data = mindspore.dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(2)
    net = Net()
    model = mindspore.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), metrics={"loss"})
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start([net])
    debugger.stop()
    model.fit(2, data, data, callbacks=[MsprobeStep(debugger)], dataset_sink_mode=False)
    assert not [record for record in caplog.records if "Model.eval" in record.message]
    for step in (1, 3):
        assert "Cell.0.fc1.Dense.forward.0" in read_step(dump_path, step).data, "the network given to start, still"


def test_an_optimizer_of_its_own_graph_is_none_that_is_recorded(ms: Any, dump_path: Path, caplog: Any) -> None:
    """`Model` compiles the optimizer alone; no Cell of the network's is in there, and nothing is said of a graph."""
    caplog.set_level("INFO")
    train(Net(), [MsprobeStep(PrecisionDebugger(write_config(dump_path, level="mix")))])
    assert "recording every step" in caplog.text
    assert "as a graph" not in caplog.text and "compiled graph" not in caplog.text
