"""MindSpore launches kernels from threads of its own unless it is told not to; the other tests tell it.

What is recorded is the same either way, and the training as well. Each way has a process of its own, as
`launch_blocking` has no effect on gradients once an operator has run without it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mindspore
import nets_mindspore as nets
import pytest
from forked import run_forked
from processes import environment
from recording import Step, read_step, recording
from thorough import thorough

BLOCKING, ASYNCHRONOUS = "blocking", "asynchronous"


@pytest.mark.parametrize(
    ("level", "task"),
    [
        ("L0", "tensor"), ("mix", "statistics"), ("L2", "statistics"),
        thorough(("L1", "tensor")), thorough(("mix", "tensor")), thorough(("L2", "tensor")),
    ],
)  # fmt: skip
def test_what_is_recorded_does_not_depend_on_how_kernels_are_launched(tmp_path: Path, level: str, task: str) -> None:
    for launch in (BLOCKING, ASYNCHRONOUS):
        done = run_forked(__file__, tmp_path / launch, launch, level, task, framework="mindspore", env=environment())
        assert done.returncode == 0, done.stderr
    for name in nets.NETS:
        blocking, asynchronous = (read_step(tmp_path / launch / name) for launch in (BLOCKING, ASYNCHRONOUS))
        assert asynchronous.data == blocking.data and blocking.data
        assert list(asynchronous.data) == list(blocking.data)
        assert asynchronous.construct == blocking.construct
        assert contents(asynchronous) == contents(blocking)


def contents(step: Step) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in step.folder.glob("dump_tensor_data/*")}


def train_and_record(folder: Path, launch: str, level: str, task: str) -> None:
    """Record a step of each net, which is that of the bare net, and so is the step after it."""
    folder.mkdir()
    # On several threads sums are added in another order each time.
    mindspore.device_context.cpu.op_tuning.threads_num(1)
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if launch == BLOCKING:
        mindspore.runtime.launch_blocking()
    assert mindspore._c_expression.RuntimeConf.get_instance().is_launch_blocking() == (launch == BLOCKING)
    for name in nets.NETS:
        net, x, labels = nets.make(name)
        bare = [nets.value_and_grad(net, x, labels) for _ in range(2)]
        net, x, labels = nets.make(name)
        with recording(net, folder / name, level=level, task=task):
            steps = [nets.value_and_grad(net, x, labels)]
        steps.append(nets.value_and_grad(net, x, labels))
        for (value, gradients), (bare_value, bare_gradients) in zip(steps, bare, strict=True):
            assert value == bare_value and nets.same_bits(gradients, bare_gradients), name


if __name__ == "__main__":
    train_and_record(Path(sys.argv[1]), *sys.argv[2:])
