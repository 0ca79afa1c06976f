"""One ``start`` and no ``step`` in compiled graphs: each iteration of the training is a step."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import nets_mindspore as nets
import numpy as np
import pytest
from recording import read_step, write_config
from thorough import sampled

from msprobe_ms.frameworks.mindspore import jit
from msprobe_ms.mindspore import MsprobeStep, PrecisionDebugger, record

ms = pytest.importorskip("mindspore")

from mindspore import Tensor, nn, ops  # noqa: E402
from mindspore.dataset import NumpySlicesDataset  # noqa: E402
from mindspore.train import Model  # noqa: E402

#: Every batch has one value of its own, by which it is known in a dump.
BATCHES = [np.full((2, 4), value, np.float32) for value in (1, 2, 3, 4)]


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.out = nn.Dense(4, 4)
        nets.set_weights(self, np.random.default_rng(3))

    def construct(self, x: Tensor) -> Tensor:
        return self.out(self.fc(x))


@pytest.fixture(autouse=True)
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)  # where MindSpore leaves what it could not compile
    logging.getLogger("msprobe_ms").addHandler(caplog.handler)
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)
    logging.getLogger("msprobe_ms").removeHandler(caplog.handler)


def forward(net: Net) -> None:
    for batch in BATCHES:
        net(Tensor(batch))


def varying_shapes(net: Net) -> None:
    for rows, batch in enumerate(BATCHES):
        net(Tensor(np.repeat(batch, 1 + rows // 2, 0)))


def gradient_of(net: Net) -> Any:
    def loss(x: Tensor) -> Tensor:
        return ((net(x) - x) ** 2).sum()

    return ms.value_and_grad(loss, None, net.trainable_params())


def gradients_alone(net: Net) -> None:
    """Of a function that is made anew each time, with nobody to use them."""
    for batch in BATCHES:
        gradient_of(net)(Tensor(batch))


def optimized(net: Net, every: int = 1, evaluated: bool = False) -> None:
    gradient, optimizer = gradient_of(net), nn.SGD(net.trainable_params(), 1e-3)
    for number, batch in enumerate(BATCHES, 1):
        if evaluated:
            net(Tensor(-batch))
        _, gradients = gradient(Tensor(batch))
        if number % every == 0:
            optimizer(gradients)


def jitted(net: Net) -> None:
    gradient, optimizer = gradient_of(net), nn.SGD(net.trainable_params(), 1e-3)

    @ms.jit
    def step(x: Tensor) -> Tensor:
        loss, gradients = gradient(x)
        return ops.depend(loss, optimizer(gradients))

    for batch in BATCHES:
        step(Tensor(batch))


def by_model(net: Net, *callbacks: Any, sink: bool = False) -> None:
    data = NumpySlicesDataset((np.concatenate(BATCHES),) * 2, shuffle=False).batch(2)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-3))
    model.train(1, data, callbacks=list(callbacks), dataset_sink_mode=sink)


def inputs(folder: Path, step: int) -> list[float]:
    """The values of the batches that the first Cell was given in a step, in the order of its calls."""
    data = json.loads((folder / f"step{step}" / f"proc{os.getpid()}" / "dump.json").read_text())["data"]
    return [data[name]["input_args"][0]["Max"] for name in data if name.startswith("Cell.fc.Dense.forward.")]


TRAININGS: dict[str, tuple[Callable[[Net], None], dict[int, list[float]]]] = {
    "forward": (forward, {1: [2], 2: [3]}),
    "varying shapes": (varying_shapes, {1: [2], 2: [3]}),
    "gradients alone": (gradients_alone, {1: [2], 2: [3]}),
    "optimized": (optimized, {1: [2], 2: [3]}),
    "evaluated before": (partial(optimized, evaluated=True), {1: [-2, 2], 2: [-3, 3]}),
    "accumulated": (partial(optimized, every=2), {1: [3, 4]}),
    "jitted": (jitted, {1: [2], 2: [3]}),
    "model": (by_model, {1: [2], 2: [3]}),
    "sink": (partial(by_model, sink=True), {1: [2], 2: [3]}),
}


_SAMPLE = {"gradients alone", "evaluated before", "accumulated", "jitted"}


@pytest.mark.parametrize("training", sampled(TRAININGS, _SAMPLE.__contains__))
def test_iterations_are_steps(training: str, dump_path: Path) -> None:
    train, expected = TRAININGS[training]
    net, bare = Net(), Net()
    debugger = PrecisionDebugger(write_config(dump_path, step=[1, 2]))
    debugger.start(net)
    train(net)
    debugger.retire()
    assert {int(folder.name[4:]): inputs(dump_path, int(folder.name[4:])) for folder in dump_path.iterdir()} == expected
    if train in (forward, varying_shapes, gradients_alone):
        return  # which change no parameter
    train(bare)
    for mine, theirs in zip(net.get_parameters(), bare.get_parameters(), strict=True):
        assert mine.asnumpy().tobytes() == theirs.asnumpy().tobytes()


def test_every_step_without_a_selection_and_nothing_stays(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    places = [(nn.Cell, "compile_and_run"), *jit.graph_calls()]
    genuine = [vars(holder)[name] for holder, name in places]
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path))
    debugger.start(net)
    forward(net)
    debugger.stop()
    assert [vars(holder)[name] for holder, name in places] == genuine
    net(Tensor(BATCHES[0]))
    debugger.retire()
    assert [inputs(dump_path, step) for step in range(4)] == [[1], [2], [3], [4]]
    assert [line for line in caplog.messages if line.startswith("steps:")] == [
        "steps: each run of Net is one, as step() has not been called"
    ]


def test_after_the_last_selected_step_nothing_is_watched(dump_path: Path) -> None:
    genuine = vars(nn.Cell)["compile_and_run"]
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, step=[0]))
    debugger.start(net)
    net(Tensor(BATCHES[0]))
    assert vars(nn.Cell)["compile_and_run"] is not genuine
    net(Tensor(BATCHES[1]))
    assert vars(nn.Cell)["compile_and_run"] is genuine
    debugger.retire()
    assert inputs(dump_path, 0) == [1]


def stepped(debugger: PrecisionDebugger, net: Net, batches: Sequence[int]) -> None:
    debugger.start(net)
    for index in batches:
        net(Tensor(BATCHES[index]))
    debugger.stop()
    debugger.step()


def test_where_step_is_called_it_alone_ends_steps(dump_path: Path) -> None:
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path))
    stepped(debugger, net, [0, 1])
    stepped(debugger, net, [2])
    stepped(debugger, net, [3, 0])
    assert [inputs(dump_path, step) for step in range(3)] == [[1, 2], [3], [4, 1]]
    debugger.retire()
    with record(net, level="L0", dump_path=dump_path.with_name("block")):
        forward(net)
    assert inputs(dump_path.with_name("block"), 0) == [1, 2, 3, 4]


def end(started: PrecisionDebugger) -> None:
    """Where nobody sees it from where it was started."""
    started.stop()
    started.step()


def test_what_stop_parts_is_one_step(dump_path: Path) -> None:
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path))
    for batch in BATCHES[:2]:
        debugger.start(net)
        net(Tensor(batch))
        debugger.stop()
    end(debugger)
    assert inputs(dump_path, 0) == [1, 2]
    debugger.retire()


def test_a_first_step_of_several_runs_that_shows_late_is_said(
    dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before the first `step` nothing may tell iterations from parts of one step; from it on numbers are right."""
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, step=[0, 1]))
    for batches in (BATCHES[:3], BATCHES[2:]):
        debugger.start(net)
        for batch in batches:
            net(Tensor(batch))
        end(debugger)
    (said,) = [line for line in caplog.messages if line.startswith("step:")]
    assert "step 0 holds the first run alone" in said and "run 3 times" in said
    assert [inputs(dump_path, step) for step in range(2)] == [[1], [3, 4]]
    debugger.retire()


def test_an_optimizer_that_never_runs_is_said(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path))
    debugger.start(net)
    optimized(net, every=9)
    debugger.retire()
    assert inputs(dump_path, 0) == [1, 2, 3, 4]
    (said,) = [line for line in caplog.messages if line.startswith("steps:")]
    assert said.startswith("steps: after_grad ran several times and no optimizer after it")


def test_no_selected_step_is_said(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, step=[7]))
    debugger.start(net)
    forward(net)
    debugger.end()
    assert "nothing was recorded: no step that is selected (7) was reached" in caplog.messages


def test_start_before_a_training_with_the_callback(dump_path: Path) -> None:
    """Every Cell once a step, in order."""
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, step=[0, 2]))
    debugger.start(net)
    by_model(net, MsprobeStep(debugger))
    assert sorted(folder.name for folder in dump_path.iterdir()) == ["step0", "step2"]
    for step in (0, 2):
        assert list(read_step(dump_path, step, troubles=True).data) == [
            "Cell.fc.Dense.forward.0",
            "Cell.out.Dense.forward.0",
            *(name for name in read_step(dump_path, step).data if ".forward." not in name),
        ]
        assert inputs(dump_path, step) == [step + 1]
        names = [name for name in read_step(dump_path, step).data if ".backward." in name]
        assert names == ["Cell.out.Dense.backward.0", "Cell.fc.Dense.backward.0"]
    debugger.retire()
