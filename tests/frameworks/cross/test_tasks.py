"""Tasks structure and overflow_check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import nets_mindspore
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from recording import leaves, read_step, recording, write_config

from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.pytorch import PrecisionDebugger as TorchDebugger
from msprobe_ms.support.errors import ConfigError


class Net(nn.Cell):
    """The logarithm of what ``fc`` makes: NaN and infinities for the batches that ask for it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 2, Tensor(np.eye(2, dtype=np.float32)), "zeros")
        self.act = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(ops.log(self.fc(x)))


FINE = np.array([[1, 2]], np.float32)
ZERO = np.array([[1, 0]], np.float32)
NEGATIVE = np.array([[1, -1]], np.float32)


def train(net: nn.Cell, x: np.ndarray) -> None:
    mindspore.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(Tensor(x))


# -- structure -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_structure_has_the_names_stacks_and_parents_of_a_whole_dump(ms: Any, dump_path: Path, level: str) -> None:
    steps = {}
    for task in ("structure", "statistics"):
        net, x, labels = nets_mindspore.make("lenet")
        with recording(net, dump_path.with_name(task), level=level, task=task):
            nets_mindspore.value_and_grad(net, x, labels)
        steps[task] = read_step(dump_path.with_name(task))
    structure, whole = steps["structure"], steps["statistics"]
    assert list(structure.data) == [name for name in whole.data if ".parameters_grad." not in name]
    assert not any(structure.data.values())
    assert structure.construct == whole.construct
    assert [names for names, _ in structure.stack.values()] == [names for names, _ in whole.stack.values()]
    assert len(structure.data) > 10
    assert list(read_dump(structure.folder).entries) == list(structure.data)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"level": "debug"}, 'level: "debug" does not work with task structure; use one of L0, L1, mix, or task statistics'),  # noqa: E501
        ({"extra_info": False}, "task structure writes nothing else than these files; use true, or task statistics"),
        ({"summary_mode": "md5"}, "task structure stores no values; use task statistics, or remove this key"),
        ({"tensor_list": ["a"]}, "task structure stores no values; use task statistics, or remove this key"),
    ],
)  # fmt: skip
def test_structure_refuses_what_needs_values(dump_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        PrecisionDebugger(write_config(dump_path, task="structure", **keys))
    assert str(refused.value).endswith(message)


# -- overflow_check --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "bad"), [(ZERO, -np.inf), (NEGATIVE, np.nan)])
def test_the_first_call_that_overflows_is_recorded_with_its_tensors(
    ms: Any, dump_path: Path, batch: np.ndarray, bad: float
) -> None:
    net = Net()
    with recording(net, dump_path, level="mix", task="overflow_check"):
        train(net, batch)
    step = read_step(dump_path)
    assert list(step.data) == ["Functional.log.0.forward"]
    entry = step.data["Functional.log.0.forward"]
    assert np.array_equal(step.array(entry["input_args"][0]), batch)
    assert np.array_equal(step.array(entry["output"][0]), [[0, bad]], equal_nan=True)
    files = {leaf["data_name"] for _, leaf in leaves(step.data)}
    assert {path.name for path in (step.folder / "dump_tensor_data").iterdir()} == files
    assert read_dump(step.folder).mode == "tensor"


def test_all_that_overflows_and_nothing_else(ms: Any, dump_path: Path) -> None:
    whole, net = dump_path.with_name("whole"), Net()
    with recording(net, whole, level="mix", task="tensor"):
        train(net, ZERO)
    with recording(net, dump_path, level="mix", task="overflow_check", overflow_nums=-1):
        train(net, ZERO)
    everything, step = read_step(whole), read_step(dump_path)
    expected = {
        place[0] for place, leaf in leaves(everything.data) if not np.isfinite(everything.array(leaf)).all()
    }  # fmt: skip
    assert set(step.data) == expected
    assert 2 < len(expected) < len(everything.data)
    for name, entry in step.data.items():
        same = [{key: leaf[key] for key in ("shape", "data_name")} for _, leaf in leaves(entry)]
        assert same == [{key: leaf[key] for key in ("shape", "data_name")} for _, leaf in leaves(everything.data[name])]
    for _, leaf in leaves(step.data):
        assert np.array_equal(
            step.array(leaf), np.load(everything.folder / "dump_tensor_data" / leaf["data_name"]), True
        )


def test_overflow_nums_counts_over_steps_and_then_recording_ends(ms: Any, dump_path: Path) -> None:
    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", task="overflow_check", overflow_nums=4))
    log = ops.log
    for batch in (FINE, ZERO, FINE, ZERO, ZERO):
        debugger.start(net)
        assert (ops.log is log) == (batch is ZERO and debugger._step == 4)
        net(Tensor(batch))
        debugger.stop()
        debugger.step()
    entries = {step: list(read_step(dump_path, step).data) for step in range(4)}
    found = ["Functional.log.0.forward", "Primitive.relu.ReLU.0.forward"]
    assert entries == {0: [], 1: found, 2: [], 3: found}
    assert not (dump_path / "step4").exists()


def test_an_input_changed_by_the_call_is_saved_as_it_was(dump_path: Path) -> None:
    debugger = TorchDebugger(write_config(dump_path, level="L1", task="overflow_check"))
    x = torch.tensor([1.0, 2.0])
    debugger.start()
    x.div_(0)
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    (name,) = step.data
    leaf = step.data[name]["input_args"][0]
    assert torch.load(step.folder / "dump_tensor_data" / leaf["data_name"]).tolist() == [1, 2]
    assert step.data[name]["output"][0]["Max"] == np.inf


def test_gradients_that_overflow(dump_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
    net[0].weight.data = torch.eye(2)
    debugger = TorchDebugger(write_config(dump_path, level="L0", task="overflow_check", overflow_nums=-1))
    debugger.start(net)
    x = torch.tensor([[0.0, 1.0]], requires_grad=True)
    net(x).sqrt().sum().backward()
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    assert set(step.data) == {"Module.0.Linear.backward.0", "Module.0.Linear.parameters_grad.0"}
    backward = step.data["Module.0.Linear.backward.0"]
    assert backward["input"][0]["Max"] == np.inf
    assert np.isnan(backward["output"][0]["Max"])  # infinity times the weight's zeros


LINE = next(
    number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "self.act(ops.log" in line
)


@pytest.mark.parametrize(
    ("batch", "item", "what"),
    [
        (ZERO, "output.0", "an infinity"),
        (NEGATIVE, "output.0", "a NaN"),
        (np.array([[np.nan, 1]], np.float32), "input.0", "a NaN"),
    ],
)
def test_the_log_names_the_first_bad_item_and_the_line_of_the_call(
    ms: Any, dump_path: Path, caplog: pytest.LogCaptureFixture, batch: np.ndarray, item: str, what: str
) -> None:
    net, scope = Net(), ["Functional.log.0.forward", None]
    with recording(net, dump_path, level="L1", task="overflow_check", overflow_nums=2, scope=scope):
        train(net, batch)
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("overflow_check")]
    place = f"called at {__file__}:{LINE}"
    assert said[0] == f"overflow_check: Functional.log.0.forward: {item} holds {what}, {place}"
    assert said[1].startswith("overflow_check: Primitive.relu.ReLU.0.forward: input.0 holds ")
    assert said[2:] == ["overflow_check: overflow_nums 2 is reached, recording ends"]


def test_the_log_names_the_line_of_a_backward_too(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = TorchDebugger(write_config(dump_path, level="L1", task="overflow_check"))
    debugger.start()
    torch.zeros(1, requires_grad=True).sqrt().sum().backward()
    debugger.stop()
    debugger.step()
    said = [record.getMessage() for record in caplog.records if "holds" in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("overflow_check: Tensor.sqrt.0.backward: output.0 holds an infinity, called at ")
    assert f"{__file__}:" in said[0]


def test_many_that_overflow_are_counted_not_named(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = TorchDebugger(write_config(dump_path, level="L1", task="overflow_check", overflow_nums=-1))
    for count in (12, 10):
        caplog.clear()
        debugger.start()
        x = torch.tensor([torch.inf])
        for _ in range(count):
            torch.relu(x)
        debugger.stop()
        debugger.step()
        said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        named = [text.split(": ")[1] for text in said[:10]]
        assert named == [f"Torch.relu.{n}.forward" for n in range(10)]
        last = "overflow_check: 12 calls of this step hold an infinity or a NaN; the first 10 are named above"
        assert said[10:] == ([last] if count == 12 else [])


@pytest.mark.parametrize("number", [0, -2, 1.5, True, "1"])
def test_an_overflow_number_that_is_none(dump_path: Path, number: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"overflow_check\.overflow_nums: .* use an integer of 1 or more, or -1 for all"
    ):
        PrecisionDebugger(write_config(dump_path, task="overflow_check", overflow_nums=number))
