"""Gradients that a graph has before its forward pass has ended: graphs run what they can as soon as they can."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording import read_step, write_config

from msprobe_ms.config import load_config
from msprobe_ms.dump.writing.memory_budget import MIB, MemoryBudget
from msprobe_ms.dump.writing.writer import process_folder
from msprobe_ms.frameworks.graph_observer import Described, Place
from msprobe_ms.frameworks.mindspore.framework import MindSpore
from msprobe_ms.recording.graphs.graph_recorder import GraphRecorder
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.progress import Status

ONES = np.ones((2, 2), np.float32)
TENSOR = Described("Float32", (2, 2), True)


def entries(dump_path: Path, scope: Sequence[str]) -> set[str]:
    """Of relu(fc(x)), where all of backward runs before the end of forward is told."""
    config = load_config(write_config(dump_path, level="L0", **({"scope": scope} if scope else {})))
    dump = StepDump(config, MindSpore(), process_folder(dump_path, 0, None), MemoryBudget(64 * MIB), set())
    dump.sinks.start(MindSpore().quiet)
    recorder = GraphRecorder(config, MindSpore(), dump)
    recorder.observe(["Cell.Net", "Cell.fc.Dense", "Cell.relu.ReLU"])

    def tell(call: int, field: str, *, gradient: bool) -> None:
        path = ("0",) if field == "input" else ()
        recorder.value(call, Place(field, path, gradient, "Float32"), ONES)

    net = recorder.begins(0, [TENSOR], {})
    calls = []
    for module in (1, 2):
        calls.append(recorder.begins(module, [TENSOR], {}))
        tell(calls[-1], "input", gradient=False)
        tell(calls[-1], "output", gradient=False)
        if module == 2:
            tell(calls[-1], "output", gradient=True)
        recorder.ends(calls[-1], TENSOR)
    tell(calls[1], "input", gradient=True)
    tell(calls[0], "output", gradient=True)
    recorder.parameter_gradient(1, "weight", "Float32", ONES)
    recorder.ends(net, TENSOR)
    recorder.pause()
    dump.export(Status(config, None))
    dump.close(Status(config, None), lambda: None)
    return set(read_step(dump_path).data)


FORWARD = {"Cell.Net.forward.0", "Cell.fc.Dense.forward.0", "Cell.relu.ReLU.forward.0"}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ([], {*FORWARD, "Cell.relu.ReLU.backward.0", "Cell.fc.Dense.backward.0", "Cell.fc.Dense.parameters_grad.0"}),
        (["Cell.fc.Dense.forward.0", "Cell.relu.ReLU.forward.0"], FORWARD - {"Cell.Net.forward.0"}),
        (["Cell.relu.ReLU.backward.0", "Cell.relu.ReLU.backward.0"], {"Cell.relu.ReLU.backward.0"}),
    ],
    ids=["everything", "forward", "backward"],
)
def test_a_scope_is_that_of_the_program(ms: Any, dump_path: Path, scope: list[str], expected: set[str]) -> None:
    assert entries(dump_path, scope) == expected
