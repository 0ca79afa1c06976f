"""``async_dump``: the same dump, written by a thread of its own."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import nets_mindspore
import numpy as np
import pytest
import torch
from forked import run_forked
from mindspore import Tensor
from recording import leaves, read_step, recording, step_folder, write_config

from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.recording.output.tensor_writer import TensorWriter


def workers() -> list[FrameType]:
    """Threads that write tensors; they are over when the recording is, but may take a moment to leave."""
    time.sleep(0.01)
    return [frame for frame in sys._current_frames().values() if _works(frame)]


def _works(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is TensorWriter._work.__code__:
            return True
        frame = frame.f_back
    return False


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


WITHOUT_MEMORY = """
import resource, sys, threading
from pathlib import Path
import torch
from msprobe_ms.pytorch import PrecisionDebugger

debugger = PrecisionDebugger(sys.argv[1])
torch.relu(torch.ones(3))
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
threading.stack_size(256 << 20)  # there is room for all but that
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), resource.RLIM_INFINITY))
debugger.start()
torch.relu(torch.ones(3))
debugger.stop()
debugger.step()
print("trained")
"""


def test_without_a_thread_files_are_written_at_once(dump_path: Path) -> None:
    """No memory for a thread's stack is no reason to stop training, or to wait for it."""
    config = write_config(dump_path, level="L1", task="tensor", async_dump=True)
    ended = run_forked("-c", WITHOUT_MEMORY, config, framework="torch", timeout=120)
    assert (ended.returncode, ended.stdout) == (0, "trained\n"), ended.stderr[-2000:]
    step = read_step_with_troubles(dump_path)
    assert "async_dump: RuntimeError: can't start new thread" in (step.folder / "dump_error_info.log").read_text()
    (file,) = (step.folder / "dump_tensor_data").glob("Torch.relu.0.forward.output.0.pt")
    assert torch.equal(torch.load(file), torch.ones(3))
