"""``async_dump``: the same dump, written by a thread of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import nets_mindspore
import numpy as np
import pytest
import torch
from mindspore import Tensor
from recording import leaves, read_step, recording, step_folder, write_config

from msprobe_ms.pytorch import PrecisionDebugger


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "msprobe_ms tensors"]


@pytest.mark.parametrize("keys", [{"task": "tensor"}, {"tensor_list": ["conv", "relu"]}])
def test_the_dump_is_the_same(ms: Any, dump_path: Path, keys: dict[str, Any]) -> None:
    steps = []
    for later in (False, True):
        net, x, labels = nets_mindspore.make("lenet")
        folder = dump_path.with_name(f"dump{later}")
        with recording(net, folder, level="mix", async_dump=later, **keys):
            loss, _ = nets_mindspore.value_and_grad(net, x, labels)
        steps.append((read_step(folder), loss.tobytes()))
    (first, loss), (second, same_loss) = steps
    assert loss == same_loss
    assert first.data == second.data
    files = [leaf["data_name"] for _, leaf in leaves(first.data) if "data_name" in leaf]
    assert len(files) > 20
    for name in files:
        a, b = ((step.folder / "dump_tensor_data" / name).read_bytes() for step in (first, second))
        assert a == b, name
    assert not workers()


def test_a_tensor_changed_afterwards_is_written_as_it_was(ms: Any, dump_path: Path) -> None:
    values = np.arange(1 << 20, dtype=np.float32)
    with recording(None, dump_path, level="L1", task="tensor", async_dump=True):
        x = Tensor(values.copy())
        for _ in range(20):
            x.reshape(-1)
            x += 1
    step = read_step(dump_path)
    for number in range(20):
        entry = step.data[f"Tensor.reshape.{number}.forward"]
        assert np.array_equal(step.array(entry["input_args"][0]), values + number)


def test_pytorch_files_and_no_call_of_the_writer_is_recorded(dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", task="tensor", async_dump=True))
    x = torch.zeros(100, 100)
    debugger.start()
    for _ in range(50):
        torch.relu(x[:50])
        x.add_(1)
    debugger.stop()
    names = {path.name for path in (step_folder(dump_path) / "dump_tensor_data").iterdir()}
    debugger.step()
    step = read_step(dump_path)
    assert {leaf["data_name"] for _, leaf in leaves(step.data)} == names, "all is there after stop"
    assert {name.rsplit(".", 2)[0] for name in step.data} == {"Torch.relu", "Tensor.__getitem__", "Tensor.add_"}
    for number in range(50):
        name = step.data[f"Torch.relu.{number}.forward"]["input_args"][0]["data_name"]
        stored = torch.load(step.folder / "dump_tensor_data" / name)
        assert stored.shape == (50, 100) and (stored == number).all()
    assert not workers()


def test_without_tensor_files_there_is_no_thread(dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", async_dump=True))
    debugger.start()
    assert not workers()
    debugger.stop()
    debugger.step()


def test_a_disk_that_refuses_is_told_and_training_goes_on(dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", task="tensor", async_dump=True))
    debugger.start()
    folder = step_folder(dump_path) / "dump_tensor_data"
    folder.rmdir()
    folder.write_text("in the way")
    torch.relu(torch.ones(3))
    debugger.stop()
    debugger.step()
    step = read_step_with_troubles(dump_path)
    assert "Torch.relu.0.forward" in step.data
    assert "Torch.relu.0.forward.input.0.pt" in (step.folder / "dump_error_info.log").read_text()
    assert not workers()


def read_step_with_troubles(dump_path: Path) -> Any:
    return read_step(dump_path, troubles=True)
