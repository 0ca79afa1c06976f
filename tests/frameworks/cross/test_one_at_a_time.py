"""One debugger of a process records at a time, whatever its framework; calls on a class go to that class's."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mindspore import Tensor, ops

import msprobe_ms.mindspore
import msprobe_ms.pytorch
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger


@pytest.fixture
def both(ms: Any, tmp_path: Path) -> Any:
    debuggers = (
        msprobe_ms.mindspore.PrecisionDebugger(dump_path=tmp_path / "mindspore", level="L1"),
        msprobe_ms.pytorch.PrecisionDebugger(dump_path=tmp_path / "pytorch", level="L1"),
    )
    yield debuggers
    for debugger in debuggers:
        debugger.retire()


def dumps(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).parts[0] for path in folder.rglob("dump.json"))


def test_start_ends_the_step_of_another_framework(both: Any, tmp_path: Path) -> None:
    first, second = both
    first.start()
    ops.relu(Tensor(np.ones(2, np.float32)))
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    second.start()
    logger.removeHandler(handler)
    assert "start: ends the step of another PrecisionDebugger: one records at a time" in said
    assert dumps(tmp_path) == ["mindspore"]
    assert not list(tmp_path.glob(f"mindspore/**/{JOURNAL_NAME}")), "it is complete"
    ops.relu(Tensor(np.ones(2, np.float32)))
    torch.relu(torch.ones(2))
    second.stop()
    second.step()
    assert dumps(tmp_path) == ["mindspore", "pytorch"]
    assert not list(tmp_path.rglob(JOURNAL_NAME))


def test_a_step_that_ends_before_anything_was_called_says_why(both: Any, caplog: pytest.LogCaptureFixture) -> None:
    first, second = both
    logger.addHandler(caplog.handler)
    try:
        first.start()
        second.start()
    finally:
        logger.removeHandler(caplog.handler)
    assert "nothing was recorded: another PrecisionDebugger was started before anything was called" in caplog.text
    assert "between start and stop" not in caplog.text


def test_calls_on_a_class_go_to_its_own_debugger(both: Any, tmp_path: Path) -> None:
    msprobe_ms.pytorch.PrecisionDebugger.start()
    torch.relu(torch.ones(2))
    msprobe_ms.pytorch.PrecisionDebugger.stop()
    msprobe_ms.mindspore.PrecisionDebugger.step()
    assert list(tmp_path.rglob(JOURNAL_NAME)), "the step of the other class goes on"
    msprobe_ms.pytorch.PrecisionDebugger.step()
    assert dumps(tmp_path) == ["pytorch"] and not list(tmp_path.rglob(JOURNAL_NAME))


def test_a_class_without_a_debugger(both: Any) -> None:
    both[1].retire()
    with pytest.raises(UsageError, match=r"PrecisionDebugger\.step: construct a PrecisionDebugger before calling step"):
        msprobe_ms.pytorch.PrecisionDebugger.step()
    msprobe_ms.mindspore.PrecisionDebugger.step()


def test_a_class_of_the_users_own(both: Any, tmp_path: Path) -> None:
    """Without a debugger of its own, calls on it go to the one of the class it derives from."""

    class Own(msprobe_ms.pytorch.PrecisionDebugger):
        pass

    assert Own.current() is both[1]
    own = Own(dump_path=tmp_path / "own", level="L1")
    assert Own.current() is own and msprobe_ms.pytorch.PrecisionDebugger.current() is both[1]
    own.retire()
    assert Own.current() is both[1]
