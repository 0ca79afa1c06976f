"""The factory: which level and task record in which execution mode, and the exact text where none does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore
import pytest
from mindspore import Tensor, nn
from recording import read_step, write_config

from msprobe_ms.config.fields import Level
from msprobe_ms.config.vocabulary import DUMP_TASKS
from msprobe_ms.frameworks.compiled_call import ExecutionMode
from msprobe_ms.frameworks.mindspore.framework import MindSpore
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.recording.modes import WAYS
from msprobe_ms.support.errors import ConfigError, UsageError

LEVELS = Level.__origin__.__args__  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def mode_is_put_back(ms: Any) -> Iterator[None]:
    yield
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, jit_config={"jit_level": "O0"})


def enter(mode: ExecutionMode) -> None:
    levels = {ExecutionMode.KBYK: "O0", ExecutionMode.GRAPH: "O2"}
    if mode in levels:
        mindspore.set_context(mode=mindspore.GRAPH_MODE, jit_config={"jit_level": levels[mode]})
    else:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


@pytest.mark.parametrize(
    ("context", "mode", "text"),
    [
        ({"mode": mindspore.PYNATIVE_MODE}, ExecutionMode.PYNATIVE, "dynamic graphs (PYNATIVE_MODE)"),
        (
            {"mode": mindspore.PYNATIVE_MODE, "jit_config": {"jit_level": "O2"}},
            ExecutionMode.PYNATIVE,
            "dynamic graphs (PYNATIVE_MODE)",
        ),
        ({"jit_config": {"jit_level": "O0"}}, ExecutionMode.KBYK, "compiled graphs (GRAPH_MODE, jit_level O0)"),
        ({"jit_config": {"jit_level": "O1"}}, ExecutionMode.KBYK, "compiled graphs (GRAPH_MODE, jit_level O1)"),
        ({"jit_config": {"jit_level": "O2"}}, ExecutionMode.GRAPH, "compiled graphs (GRAPH_MODE, jit_level O2)"),
    ],
)
def test_the_mode_is_that_of_the_jit_configuration(context: dict[str, Any], mode: ExecutionMode, text: str) -> None:
    mindspore.set_context(**{"mode": mindspore.GRAPH_MODE, **context})
    assert MindSpore().execution_mode() is mode
    assert MindSpore().mode_text() == text


def test_the_jit_configuration_counts_before_the_context() -> None:
    mindspore.set_context(mode=mindspore.GRAPH_MODE, jit_config={"jit_level": "O2"})
    mindspore.set_context(jit_level="O1")
    assert MindSpore().execution_mode() is ExecutionMode.GRAPH


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("task", DUMP_TASKS)
def test_every_combination_of_dynamic_graphs_is_made_or_refused(level: str, task: str, tmp_path: Path) -> None:
    if (level == "debug" and task in ("structure", "overflow_check")) or (task == "exception_dump" and level != "L2"):
        with pytest.raises(ConfigError, match=f"does not work with task {task}"):
            PrecisionDebugger(dump_path=tmp_path / "dump", level=level, task=task)
    elif task in WAYS[ExecutionMode.PYNATIVE][level].tasks:
        PrecisionDebugger(dump_path=tmp_path / "dump", level=level, task=task).retire()
    else:
        with pytest.raises(UsageError, match=f"^PrecisionDebugger: level {level} with task {task} does not record "):
            PrecisionDebugger(dump_path=tmp_path / "dump", level=level, task=task)
    assert not (tmp_path / "dump").exists()


def test_what_no_way_records_is_refused_when_constructed(tmp_path: Path) -> None:
    enter(ExecutionMode.KBYK)
    with pytest.raises(UsageError) as caught:
        PrecisionDebugger(dump_path=tmp_path / "dump", level="L1")
    assert str(caught.value) == (
        "PrecisionDebugger: level L1 with task statistics does not record compiled graphs (GRAPH_MODE, jit_level O0); "
        "use level L0 (statistics, tensor, structure), or level L2 (statistics, tensor, exception_dump), "
        "or level debug (statistics, tensor), or "
        "dynamic graphs: mindspore.set_context(mode=mindspore.PYNATIVE_MODE)"
    )


def test_a_mode_that_changes_is_followed_at_start(dump_path: Path) -> None:
    net = nn.SequentialCell(nn.Dense(2, 2))
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    for mode in (ExecutionMode.KBYK, ExecutionMode.PYNATIVE):
        enter(mode)
        debugger.start(net)
        net(Tensor([[1.0, 2.0]], mindspore.float32))
        debugger.step()
    for step in range(2):
        assert list(read_step(dump_path, step).data) == ["Cell.0.Dense.forward.0"]


def test_a_mode_that_cannot_be_recorded_is_refused_at_start(dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="mix"))
    enter(ExecutionMode.KBYK)
    with pytest.raises(UsageError) as caught:
        debugger.start(nn.SequentialCell(nn.Dense(2, 2)))
    assert str(caught.value).startswith("start: level mix with task statistics does not record compiled graphs (GRAPH")
    assert not dump_path.exists()


@pytest.mark.parametrize("level", ["mix", "L1"])
def test_a_mode_that_cannot_be_recorded_later_ends_no_training(
    level: str, dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net = nn.SequentialCell(nn.Dense(2, 2))
    debugger = PrecisionDebugger(write_config(dump_path, level=level))
    modes = (ExecutionMode.PYNATIVE, ExecutionMode.KBYK, ExecutionMode.KBYK, ExecutionMode.PYNATIVE)
    for mode in modes:
        enter(mode)
        debugger.start(net)
        net(Tensor([[1.0, 2.0]], mindspore.float32))
        debugger.stop()
        debugger.step()
    (warned,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warned.startswith(
        f"cannot record: start: level {level} with task statistics does not record compiled graphs"
    )
    assert "PYNATIVE_MODE" in warned and warned.endswith("training goes on, such steps are not recorded")
    assert sorted(path.name for path in dump_path.iterdir()) == ["step0", "step3"]


def test_saved_values_come_from_python_in_every_mode(dump_path: Path) -> None:
    net = nn.Dense(2, 2, "ones", "zeros")
    debugger = PrecisionDebugger(write_config(dump_path, level="debug"))
    for mode in ExecutionMode:
        enter(mode)
        debugger.save(net(Tensor([[1.0, 2.0]], mindspore.float32)), "y", save_backward=False)
    debugger.step()
    (found,) = dump_path.glob("step0/*/debug.json")
    assert found.read_text().count('"Max": 3.0') == len(ExecutionMode)
