"""``record``: one step in a ``with`` block."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import msprobe_ms
import msprobe_ms.mindspore
import msprobe_ms.pytorch
from msprobe_ms.support.errors import ConfigError, MissingTensorError, UsageError
from msprobe_ms.support.log import logger


def torch_net() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))


@pytest.fixture
def said() -> Any:
    """What the package logs, as text."""
    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(f"{record.levelname} {record.getMessage()}")

    handler = Handler()
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)


def test_a_mindspore_step_gives_its_entries_and_tensors(ms: Any, dump_path: Path) -> None:
    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = ms.nn.Dense(4, 3)

        def construct(self, x: Any) -> Any:
            return ms.ops.relu(self.fc1(x)).sum()

    net = Net()
    x = np.random.standard_normal((5, 4)).astype(np.float32)
    with msprobe_ms.record(net, level="mix", task="tensor", dump_path=dump_path) as dump:
        ms.value_and_grad(net, None, net.trainable_params())(ms.Tensor(x))

    call = dump["Cell.fc1.Dense.forward.0"]
    expected = x @ net.fc1.weight.asnumpy().T + net.fc1.bias.asnumpy()
    np.testing.assert_allclose(call["output.0"].numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(call["parameters.weight"]), net.fc1.weight.asnumpy())
    assert call["output.0"].maximum == pytest.approx(expected.max(), rel=1e-5)
    assert call["output.0"].shape == (5, 3)
    assert any(__file__ in frame for frame in call.stack)
    assert dump["Functional.relu.0.forward"].parent is None
    assert "Cell.fc1.Dense.backward.0" in dump
    assert len(dump) == len(list(dump)) >= 5
    assert dump.path.parent == dump_path / "step0" and (dump.path / "dump.json").is_file()


def test_pytorch_has_it_too_and_every_recording_keeps_its_own_step(dump_path: Path) -> None:
    net, x = torch_net(), torch.randn(2, 4)
    dumps = []
    for factor in (1, 2):
        with msprobe_ms.pytorch.record(net, level="L0", task="tensor", dump_path=dump_path) as dump:
            net(x * factor).sum().backward()
        dumps.append(dump)
    for factor, dump in enumerate(dumps, 1):
        np.testing.assert_array_equal(dump["Module.0.Linear.forward.0"]["input.0"].numpy(), (x * factor).numpy())
    assert [dump.path.parent.name for dump in dumps] == ["step0", "step1"]


def test_texts_say_what_was_recorded(dump_path: Path) -> None:
    net = torch_net()
    recording = msprobe_ms.pytorch.record(net, level="L0", dump_path=dump_path)
    assert repr(recording) == "<recording to nowhere yet>"
    with recording as dump:
        assert repr(dump) == f"<recording to {dump.path}>"
        net(torch.ones(2, 4))
    assert repr(dump).splitlines() == [
        f"3 entries in {dump.path}",
        "  Module.0.Linear.forward.0",
        "  Module.1.ReLU.forward.0",
        "  Module.2.Linear.forward.0",
    ]
    first = repr(dump["Module.0.Linear.forward.0"]).splitlines()
    assert first[:2] == ["Module.0.Linear.forward.0", "  input.0: torch.float32 (2, 4) Max 1 Min 1 Mean 1 Norm 2.82843"]


def test_a_recording_takes_every_selection(dump_path: Path) -> None:
    net, x = torch_net(), torch.ones(2, 4, requires_grad=True)

    def entries(**selection: Any) -> list[str]:
        with msprobe_ms.pytorch.record(net, level="L1", dump_path=dump_path, **selection) as dump:
            torch.relu(net(x)).sum().backward()
        return list(dump)

    every = entries(data_mode=["forward"], numbers="by_position", layers=True)
    assert every == [
        "Layer.Linear.1.forward", "Layer.ReLU.2.forward", "Layer.Linear.3.forward", "Torch.relu.4.forward",
        "Tensor.sum.5.forward", "loss.0.debug",
    ]  # fmt: skip
    positions = {"numbers": "by_position", "layers": True}
    assert entries(list=["class:relu"], data_mode=["forward"], **positions) == [every[1], every[3]]
    half_open = {"from": "Layer.ReLU.2.forward", "until": "Torch.relu.4.forward"}
    assert entries(scope=half_open, data_mode=["forward"], **positions) == every[1:3]
    assert entries(skip=2, data_mode=["forward"], **positions) == [every[1], every[3], every[5]]
    assert entries(places=["1", "3"], data_mode=["output", "forward"], **positions)[:2] == [every[1], every[3]]
    with pytest.raises(ConfigError, match=r"argument lst: unknown key.*\nargument skip: -1 is not accepted"):
        entries(lst=["relu"], skip=-1)
    with pytest.raises(UsageError, match="step is not accepted: a recording holds one step"):
        entries(step=[0])


def test_a_layer_has_its_parameters_strides_and_no_call_site(dump_path: Path) -> None:
    net = torch_net()
    with msprobe_ms.pytorch.record(
        level="L1", layers=True, strides=True, call_sites=False, dump_path=dump_path
    ) as dump:
        net(torch.ones(4, 2).T)
    call = dump["Layer.Linear.0.forward"]
    assert list(call) == ["input.0", "output.0", "parameters.weight", "parameters.bias"] and call.stack == ()
    content = json.loads((dump.path / "dump.json").read_text())["data"]["Layer.Linear.0.forward"]
    assert content["input_args"][0]["stride"] == [1, 2] and content["parameters"]["weight"]["stride"] == [4, 1]


def test_layers_of_mindspore_are_calls_too(ms: Any, dump_path: Path) -> None:
    net = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.ReLU())
    with msprobe_ms.record(level="L1", layers=True, numbers="by_position", strides=True, dump_path=dump_path) as dump:
        ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(ms.Tensor(np.ones((2, 4), np.float32)))
    assert list(dump)[:3] == ["Layer.Dense.1.forward", "Layer.ReLU.2.forward", "Tensor.sum.3.forward"]
    assert {"Layer.ReLU.2.backward", "Layer.Dense.1.backward"} <= set(dump)


def test_weights_alone(dump_path: Path) -> None:
    net = torch_net()
    with msprobe_ms.pytorch.record(net, data_mode=["parameters"], dump_path=dump_path) as dump:
        net(torch.ones(2, 4)).sum().backward()
    assert {name: list(call) for name, call in dump.items()} == {
        f"Module.{place}.Linear.forward.0": ["parameters.weight", "parameters.bias"] for place in (0, 2)
    }


def test_calls_are_chosen_by_their_places(dump_path: Path, said: list[str]) -> None:
    net = torch.nn.Sequential(torch_net(), torch.nn.ReLU())

    def entries(level: str, *places: str) -> list[str]:
        with msprobe_ms.pytorch.record(
            net, level=level, places=places, data_mode=["forward"], dump_path=dump_path
        ) as dump:
            net(torch.ones(2, 4))
        return list(dump)

    assert entries("L0", "*") == ["Module.0.Sequential.forward.0", "Module.1.ReLU.forward.0"]
    assert entries("L0", "0_1", "1") == ["Module.0.1.ReLU.forward.0", "Module.1.ReLU.forward.0"]
    assert entries("mix", "0_2_**") == ["Functional.linear.1.forward"]
    assert entries("L0", "7") == []
    there = "0 Module.0.Sequential, 0_0 Module.0.0.Linear, 0_1 Module.0.1.ReLU, 0_2 Module.0.2.Linear, 1 Module.1.ReLU"
    nothing = f'places ["7"]: none of the 5 calls in this step stands there; the first are {there}'
    assert any(nothing in text for text in said)


def test_an_exception_passes_and_what_was_recorded_is_there(dump_path: Path) -> None:
    class Breaks(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fine = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            self.fine(x)
            raise ZeroDivisionError("mine")

    net = Breaks()
    with (
        pytest.raises(ZeroDivisionError, match=r"^mine$"),
        msprobe_ms.pytorch.record(net, level="L0", dump_path=dump_path) as dump,
    ):
        net(torch.ones(1, 4))
    assert list(dump) == ["Module.fine.Linear.forward.0"]


def test_wrong_uses_are_told(dump_path: Path) -> None:
    net = torch_net()
    with msprobe_ms.pytorch.record(net, level="L0", dump_path=dump_path) as dump:
        net(torch.ones(1, 4))
        with pytest.raises(UsageError, match="still being recorded; read it after the with block"):
            len(dump)
    with pytest.raises(KeyError, match=r"'Module\.0\.Linear\.forward' was not recorded; did you mean Module\.0"):
        dump["Module.0.Linear.forward"]
    with pytest.raises(KeyError, match=r"has input\.0, output\.0, parameters\.weight, parameters\.bias, not 'output'"):
        dump["Module.0.Linear.forward.0"]["output"]
    with pytest.raises(MissingTensorError) as missing:
        dump["Module.0.Linear.forward.0"]["output.0"].numpy()
    assert str(missing.value) == (
        "Module.0.Linear.forward.0.output.0: no tensor was stored, only its figures; "
        'record(…, task="tensor") stores tensors'
    )
    with pytest.raises(UsageError, match="one step; call record again"), dump:
        pass
    with pytest.raises(UsageError, match="level mix records modules"), msprobe_ms.pytorch.record(dump_path=dump_path):
        pass
    with pytest.raises(ConfigError, match="argument level"):
        msprobe_ms.pytorch.record(net, level="L9", dump_path=dump_path)


def test_a_recording_leaves_nothing_behind(dump_path: Path) -> None:
    before = torch.nn.functional.relu, torch.Tensor.__add__, torch.add
    net = torch_net()
    with msprobe_ms.pytorch.record(net, dump_path=dump_path):
        assert torch.nn.functional.relu is not before[0]
        net(torch.ones(1, 4))
    assert (torch.nn.functional.relu, torch.Tensor.__add__, torch.add) == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())
    with pytest.raises(UsageError, match="construct a PrecisionDebugger"):
        msprobe_ms.pytorch.PrecisionDebugger.step()


def test_one_line_at_the_start_one_at_the_end(dump_path: Path, said: list[str]) -> None:
    net = torch_net()
    with msprobe_ms.pytorch.record(net, level="L0", task="tensor", dump_path=dump_path) as dump:
        net(torch.ones(1, 4))
    start, end = said
    assert start == f"INFO recording every step at level L0, task tensor, to {dump_path}"
    files = [path.stat() for path in dump.path.rglob("*") if path.is_file()]
    written = sum({file.st_ino: file.st_size for file in files}.values())  # some are links of one another
    assert end.startswith(f"INFO {dump.path}: 3 entries, {written / 1000:.1f} kB; the step took ")
    assert end.endswith(" s, training included")


def test_other_ranks_are_quiet(dump_path: Path, said: list[str]) -> None:
    net = torch_net()
    for rank in (0, 1):
        debugger = msprobe_ms.pytorch.PrecisionDebugger(level="L0", dump_path=dump_path, step=[0])
        debugger.start(net, rank_id=rank)
        net(torch.ones(1, 4))
        debugger.stop()
        debugger.step()
    assert (dump_path / "step0" / "rank1" / "dump.json").is_file()
    start, end, last = said
    assert start == f"INFO recording step 0 at level L0, task statistics, to {dump_path}"
    assert end.startswith(f"INFO {dump_path / 'step0' / 'rank0'}: 3 entries, ")
    assert last.startswith("INFO msprobe ends successfully: step 0 was the last")


def test_what_is_no_tensor_is_said_so(dump_path: Path) -> None:
    with msprobe_ms.pytorch.record(level="L1", task="tensor", dump_path=dump_path) as dump:
        torch.sum(torch.ones(2, 2), 1)
    with pytest.raises(MissingTensorError, match=r"sum\.0\.forward\.input\.1 holds no tensor but int 1; \.value gives"):
        dump["Torch.sum.0.forward"]["input.1"].numpy()


def test_one_entry_is_one_entry(dump_path: Path, said: list[str]) -> None:
    with msprobe_ms.pytorch.record(level="L1", dump_path=dump_path) as dump:
        torch.relu(torch.ones(2))
    assert repr(dump).splitlines()[0] == f"1 entry in {dump.path}"
    assert said[-1].startswith(f"INFO {dump.path}: 1 entry, ")


def test_two_recordings_can_be_compared(dump_path: Path) -> None:
    net, x = torch_net(), torch.linspace(-1, 1, 20).reshape(5, 4)
    recordings = []
    for factor in (1.0, 1.0, 1.5):
        with torch.no_grad():
            net[2].weight *= factor
        with msprobe_ms.pytorch.record(net, level="L0", dump_path=dump_path) as dump:
            net(x)
        recordings.append(dump)
    msprobe_ms.assert_consistent(recordings[1], recordings[0])
    assert (
        msprobe_ms.compare(recordings[2], recordings[0]).origins[0].target
        == "Module.2.Linear.forward.0.parameters.weight"
    )
