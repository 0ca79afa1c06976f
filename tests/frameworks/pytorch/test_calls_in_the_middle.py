"""A signal handler or a finalizer that calls the debugger in the middle of one of its own calls."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from repository import PACKAGE

from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.pytorch import PrecisionDebugger


class AtLine:
    """Calls ``handler`` once, before the line of ours of this number, as a signal's is called."""

    def __init__(self, number: int, handler: Any) -> None:
        self._left, self._handler = number, handler
        self.is_over = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE) or self.is_over:
            return None
        if event == "line":
            self._left -= 1
            if self._left == 0:
                self.is_over = True
                sys.settrace(None)
                self._handler()
                return None
        return self


@pytest.mark.parametrize("call", ["start", "stop", "step"])
def test_nothing_is_left_behind(call: str, tmp_path: Path) -> None:
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU()), torch.ones(3, 4)
    genuine = torch.relu, torch.Tensor.add
    debugger = PrecisionDebugger(dump_path=tmp_path, level="mix", task="statistics")

    def handler() -> None:
        debugger.stop()
        debugger.step()
        if call != "start":
            debugger.start(net)

    for number in (60, *range(200, 20_000, 900)):
        trace = AtLine(number, handler)
        for name in ("start", "stop", "step"):
            if name == call:
                sys.settrace(trace)
            try:
                getattr(debugger, name)(*[net] * (name == "start"))
            finally:
                sys.settrace(None)
            net(x).sum().backward()
        debugger.stop()
        debugger.step()
        assert (torch.relu, torch.Tensor.add) == genuine
        assert not any(each._forward_hooks or each._forward_pre_hooks for each in net.modules())
        if not trace.is_over:
            break
    debugger.begin_unused_step()
    debugger.start(net)
    net(x).sum().backward()
    debugger.stop()
    folder = debugger.folder
    debugger.step()
    assert {"Module.0.Linear.forward.0", "Module.0.Linear.backward.0"} <= read_dump(folder).entries.keys()
