"""Task grad_probe: what is written of a gradient is what the optimizer gets, and training is as without it."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import nn

import msprobe_ms
import msprobe_ms.pytorch
from msprobe_ms.support.errors import UsageError
from torture.interrupts.places import Interruption, Survey

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
WEIGHT = np.linspace(-0.5, 0.5, 6, dtype=np.float32).reshape(2, 3)

#: One training step, and the gradients that it gave the optimizer, in its order.
Step = Callable[[], list[np.ndarray]]


class Training:
    """A training of either framework, and what there is to watch in it."""

    def __init__(self, step: Step, network: Any, optimizer: Any, debugger: type, names: list[str]) -> None:
        self.step, self.network, self.optimizer, self.debugger, self.names = step, network, optimizer, debugger, names


def of_mindspore() -> Training:
    net = nn.SequentialCell(nn.Dense(3, 2), nn.Tanh())
    net[0].weight.set_data(mindspore.Tensor(WEIGHT))
    net[0].bias.set_data(mindspore.Tensor(np.zeros(2, np.float32)))
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    gradients = mindspore.value_and_grad(lambda x: (net(x) ** 2).sum(), None, optimizer.parameters)

    def step() -> list[np.ndarray]:
        found = gradients(mindspore.Tensor(X))[1]
        optimizer(found)
        return [each.asnumpy() for each in found]

    return Training(step, net, optimizer, msprobe_ms.PrecisionDebugger, ["0.weight", "0.bias"])


def of_torch() -> Training:
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor(WEIGHT))
        net[0].bias.zero_()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, 0.9)

    def step() -> list[np.ndarray]:
        optimizer.zero_grad()
        (net(torch.tensor(X)) ** 2).sum().backward()
        optimizer.step()
        return [parameter.grad.numpy().copy() for parameter in net.parameters()]

    return Training(step, net, optimizer, msprobe_ms.pytorch.PrecisionDebugger, ["0.weight", "0.bias"])


TRAININGS = {"mindspore": of_mindspore, "pytorch": of_torch}


@pytest.fixture(params=TRAININGS)
def training(request: pytest.FixtureRequest) -> Training:
    return TRAININGS[request.param]()


@pytest.fixture
def debugger_of(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    made = []

    def make(training: Training, folder: str = "out", **section: Any) -> Any:
        general = {key: section.pop(key) for key in ("step", "rank") if key in section}
        written = {"task": "grad_probe", "dump_path": str(tmp_path / folder), "grad_probe": section, **general}
        (tmp_path / "config.json").write_text(json.dumps(written))
        made.append(training.debugger(str(tmp_path / "config.json")))
        return made[-1]

    yield make
    for each in made:
        each.retire()


def watched(training: Training) -> Any:
    return training.optimizer if training.debugger is msprobe_ms.PrecisionDebugger else training.network


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_what_is_written_is_what_the_optimizer_gets(
    training: Training, debugger_of: Any, tmp_path: Path, level: str
) -> None:
    debugger_of(training, grad_level=level, bounds=[-0.5, 0, 0.5]).monitor(watched(training))
    expected = [training.step() for _ in range(2)]
    folder = tmp_path / "out" / "rank0"
    for step, gradients in enumerate(expected):
        found = rows(folder / f"grad_summary_{step}.csv")
        assert [row["param_name"] for row in found] == training.names
        for row, gradient in zip(found, gradients, strict=True):
            assert float(row["max"]) == gradient.max() and float(row["min"]) == gradient.min()
            assert float(row["norm"]) == pytest.approx(np.linalg.norm(gradient.astype(np.float64)), rel=1e-6)
            assert row["shape"] == str(list(gradient.shape))
            if level == "L0":
                assert row["MD5"] == hashlib.md5(gradient.tobytes()).hexdigest()
            file = folder / f"step{step}" / f"{row['param_name']}.npy"
            assert file.exists() == (level != "L0")
            if level != "L0":
                np.testing.assert_array_equal(np.load(file), gradient > 0)
            if level == "L2":
                shares = [float(row[title]) for title in ("(-inf, -0.5]", "(-0.5, 0]", "(0, 0.5]", "(0.5, inf)", "=0")]
                within = [gradient <= -0.5, (gradient > -0.5) & (gradient <= 0), (gradient > 0) & (gradient <= 0.5)]
                expect = [part.mean() for part in (*within, gradient > 0.5, gradient == 0)]
                np.testing.assert_allclose(shares, expect, rtol=1e-12)


def test_training_keeps_its_bits(training: Training, debugger_of: Any) -> None:
    other = TRAININGS["mindspore" if training.debugger is msprobe_ms.PrecisionDebugger else "pytorch"]()
    debugger_of(training, grad_level="L2").monitor(watched(training))
    for _ in range(3):
        for ours, theirs in zip(training.step(), other.step(), strict=True):
            assert ours.tobytes() == theirs.tobytes()


def test_steps_and_parameters_that_are_selected(training: Training, debugger_of: Any, tmp_path: Path) -> None:
    debugger = debugger_of(training, param_list=["0.bias", "0.bais"], step=[1, "3-4"])
    debugger.monitor(watched(training))
    for _ in range(5):
        training.step()
    folder = tmp_path / "out" / "rank0"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [f"grad_summary_{step}.csv" for step in (1, 3, 4)] + [f"step{step}" for step in (1, 3, 4)]
    )
    assert [row["param_name"] for row in rows(folder / "grad_summary_1.csv")] == ["0.bias"]


def test_another_run_is_left_as_it_is(training: Training, debugger_of: Any, tmp_path: Path) -> None:
    first = debugger_of(training)
    first.monitor(watched(training))
    training.step()
    first.retire()
    before = (tmp_path / "out" / "rank0" / "grad_summary_0.csv").read_bytes()
    second = debugger_of(training)
    second.monitor(watched(training))
    training.step(), training.step()
    assert (tmp_path / "out" / "rank0" / "grad_summary_0.csv").read_bytes() == before
    assert len(list((tmp_path / "out" / "1" / "rank0").glob("*.csv"))) == 2


def test_another_optimizer_and_the_other_calls_write_nothing(
    training: Training, debugger_of: Any, tmp_path: Path
) -> None:
    other = TRAININGS["mindspore" if training.debugger is msprobe_ms.PrecisionDebugger else "pytorch"]()
    debugger = debugger_of(training)
    debugger.monitor(watched(training))
    debugger.start(training.network)
    other.step()
    debugger.stop()
    debugger.step()
    assert not (tmp_path / "out").exists()
    training.step()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["rank0"]
    debugger.retire()
    training.step()
    assert not (tmp_path / "out" / "rank0" / "grad_summary_1.csv").exists()


def test_a_disk_that_takes_nothing_does_not_stop_the_training(
    training: Training, debugger_of: Any, tmp_path: Path
) -> None:
    debugger_of(training).monitor(watched(training))
    (tmp_path / "out").write_text("a file")
    for _ in range(2):
        training.step()
    assert (tmp_path / "out").read_text() == "a file"


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_errors_of_ours_do_not_end_a_call_of_the_optimizer(
    training: Training, debugger_of: Any, error: type[BaseException]
) -> None:
    debugger = debugger_of(training)
    debugger.monitor(watched(training))
    training.step()
    survey = Survey(error, after_calls=False)
    with survey:
        training.step()
    places = [place for place in survey.chosen(1) if not place.code.co_name.startswith("__")]
    for place in places[::5]:
        try:
            with Interruption(error, place):
                training.step()
            assert error is MemoryError, place
        except error:
            assert error is KeyboardInterrupt, place


def test_names_of_any_characters_are_written(debugger_of: Any, tmp_path: Path) -> None:
    names = ("..", "a/b", "\0", "\ud800", "=1")
    parameters = {name: torch.nn.Parameter(torch.ones(2)) for name in names}
    optimizer = torch.optim.SGD([*parameters.items()], 0.1)
    training = Training(list, None, optimizer, msprobe_ms.pytorch.PrecisionDebugger, [*names])
    debugger_of(training, grad_level="L1").monitor(optimizer)
    sum(each.sum() for each in parameters.values()).backward()
    optimizer.step()
    (table,) = tmp_path.rglob("grad_summary_0.csv")
    assert len(table.read_text().splitlines()) == 1 + len(names)
    assert len([*table.with_name("step0").iterdir()]) == len(names)


def test_the_callback_of_model_watches_its_optimizer(debugger_of: Any, tmp_path: Path) -> None:
    training = of_mindspore()
    data = mindspore.dataset.NumpySlicesDataset((X, X[:, :2]), ["x", "y"]).batch(2)
    model = mindspore.train.Model(training.network, nn.MSELoss(), training.optimizer)
    model.train(1, data, callbacks=[msprobe_ms.MsprobeStep(debugger_of(training))], dataset_sink_mode=False)
    assert sorted(path.name for path in (tmp_path / "out" / "rank0").glob("*.csv")) == [
        "grad_summary_0.csv",
        "grad_summary_1.csv",
    ]


def test_what_cannot_be_watched_is_refused(training: Training, debugger_of: Any) -> None:
    debugger = debugger_of(training)
    with pytest.raises(UsageError, match="3, a int, is not accepted; give the optimizer, or the network"):
        debugger.monitor(3)
    if training.debugger is msprobe_ms.pytorch.PrecisionDebugger:
        with pytest.raises(UsageError, match="does not know the names of its parameters; give the network"):
            debugger.monitor(training.optimizer)


def test_a_gradient_of_megatron_is_read_where_the_optimizer_has_copies(debugger_of: Any, tmp_path: Path) -> None:
    training = of_torch()
    copies = [torch.nn.Parameter(each.detach().clone()) for each in training.network.parameters()]
    for copied, parameter in zip(copies, training.network.parameters(), strict=True):
        parameter.main_grad = torch.full_like(parameter, -2.0)
        copied.grad = torch.ones_like(copied)
    debugger_of(training).monitor(training.network)
    torch.optim.SGD(copies, 0.1).step()
    assert [row["max"] for row in rows(tmp_path / "out" / "rank0" / "grad_summary_0.csv")] == ["-2.0", "-2.0"]
