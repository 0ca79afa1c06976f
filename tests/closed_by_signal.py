"""Ends a recording in a signal handler, on one line after the other of what stores it.

``python closed_by_signal.py FOLDER STRIDE``: on every STRIDE-th line run in `msprobe_ms.store`, or in the standard
library below it. Prints how many recordings were ended.
"""

from __future__ import annotations

import faulthandler
import json
import queue
import signal
import sys
import threading
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import msprobe_ms
from msprobe_ms.pytorch import PrecisionDebugger

STORE = str(Path(msprobe_ms.__file__).parent / "store")
FILES = (STORE, queue.__file__, threading.__file__)


class OnLine:
    """Sends this process SIGTERM on a line of `FILES`, ``left`` of them later."""

    def __init__(self, left: int) -> None:
        self.left = left

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self.line if frame.f_code.co_filename.startswith(FILES) else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGTERM)
        return self.line


def main(folder: Path, stride: int) -> None:
    config = folder / "config.json"
    section = {"task": "tensor", "level": "mix", "async_dump": True}
    config.write_text(json.dumps({**section, "dump_path": str(folder / "dump")}))
    debugger = PrecisionDebugger(config)
    net = torch.nn.Linear(2, 2)

    def leave(*_: Any) -> None:
        debugger.stop()
        debugger.step()
        sys.exit(143)

    signal.signal(signal.SIGTERM, leave)
    for number in count(1, stride):
        faulthandler.dump_traceback_later(20, exit=True)
        debugger.start(net)
        sys.settrace(OnLine(number).enter)
        try:
            net(torch.ones(1, 2)).relu().sum().backward()
        except SystemExit:
            continue
        finally:
            sys.settrace(None)
        debugger.stop()
        debugger.step()
        return print(number // stride)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
