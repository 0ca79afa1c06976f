"""Level L2 of PyTorch: an Ascend device dumps its kernels between start and stop, as ``acl_config`` says.

There is none here: what ``torch_npu`` documents stands in its place and writes the folder that a device would.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.support.errors import UsageError

DUMP = {"dump_list": [], "dump_path": "kernels", "dump_mode": "all", "dump_op_switch": "on"}


class Npu(SimpleNamespace):
    """The calls of ``torch_npu.npu`` that are documented, in the order in which they came."""

    def __init__(self, *, available: bool = True) -> None:
        super().__init__(calls=[], writes=True)
        self.is_available = lambda: available

    def init_dump(self) -> None:
        self.calls.append("init_dump")

    def set_dump(self, path: str) -> None:
        self.calls.append(f"set_dump {Path(path).name}")
        if self.writes:
            number = sum(call.startswith("set_dump") for call in self.calls)
            Path(json.loads(Path(path).read_text())["dump"]["dump_path"], f"2026111{number}").mkdir(parents=True)

    def synchronize(self) -> None:
        self.calls.append("synchronize")

    def finalize_dump(self) -> None:
        self.calls.append("finalize_dump")


@pytest.fixture
def npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Npu:
    monkeypatch.chdir(tmp_path)
    write_acl(DUMP)
    device = Npu()
    monkeypatch.setitem(sys.modules, "torch_npu", SimpleNamespace(npu=device))
    return device


def write_acl(dump: Any) -> None:
    Path("acl.json").write_text(json.dumps({"dump": dump}))


def debugger(**keys: Any) -> PrecisionDebugger:
    settings = {"acl_config": "acl.json", **keys}
    return PrecisionDebugger(dump_path="dump", level="L2", settings=settings)


def train(recording: PrecisionDebugger, steps: int, npu: Npu) -> None:
    net = torch.nn.Linear(2, 2)
    for step in range(steps):
        recording.start(net)
        npu.calls.append(f"step {step}")
        net(torch.ones(1, 2)).sum().backward()
        recording.stop()
        recording.step()


def test_the_device_dumps_between_start_and_stop_of_selected_steps(npu: Npu, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "msprobe_ms")
    train(debugger(step=[0, 2]), 4, npu)
    dumped = ["init_dump", "set_dump acl.json"]
    ends = ["synchronize", "finalize_dump"]
    assert npu.calls == [*dumped, "step 0", *ends, "step 1", *dumped, "step 2", *ends, "step 3"]
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(";")[0] for line in said if "kernels" in line] == [
        "kernels: the device dumped its kernels to 20261111",
        "kernels: the device dumped its kernels to 20261112",
    ]
    assert any("msprobe ends successfully" in line for line in said)


def test_a_device_that_writes_nothing_is_told_of(npu: Npu, caplog: pytest.LogCaptureFixture) -> None:
    npu.writes = False
    train(debugger(), 1, npu)
    assert "the device dumped nothing between start and stop" in caplog.text


def test_a_training_goes_on_where_the_device_raises(npu: Npu, caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> None:
        raise RuntimeError("507033")

    npu.init_dump = refuse
    train(debugger(), 1, npu)
    assert "step 0" in npu.calls and "507033" in caplog.text


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"acl_config": None}, "acl_config is missing"),
        ({"list": ["relu"]}, "list does not select among kernels that a device dumps"),
        ({"task": "structure"}, "a device dumps tensors; use task statistics or tensor"),
    ],
)
def test_what_such_a_dump_does_not_know_is_refused(npu: Npu, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        debugger(**keys)


@pytest.mark.parametrize(
    ("dump", "said"),
    [
        ([], "dump: "),
        ({**DUMP, "dump_path": ""}, "dump_path"),
        ({**DUMP, "dump_op_switch": "off"}, "nothing would be dumped"),
    ],
)
def test_a_configuration_that_dumps_nothing_is_refused(npu: Npu, dump: Any, said: str) -> None:
    write_acl(dump)
    with pytest.raises(UsageError, match=said):
        debugger()


def test_without_a_device_it_is_refused(npu: Npu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_npu", SimpleNamespace(npu=Npu(available=False)))
    with pytest.raises(UsageError, match=r"Ascend device, and there is none here \(torch_npu finds none\)"):
        debugger()
    monkeypatch.delitem(sys.modules, "torch_npu")
    with pytest.raises(UsageError, match=r"torch_npu is not imported\); use one of L0, L1, mix"):
        debugger()
