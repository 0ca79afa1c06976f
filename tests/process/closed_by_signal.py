"""Ends a recording in a signal handler, on one line after the other of what stores it.

``python closed_by_signal.py FOLDER STRIDE KIND``: on every STRIDE-th line of what is meant. With KIND ``files`` tensors
are stored by a thread, and lines of what writes them and of the standard library below it are meant; with ``device``
figures are read back as from a device, and lines of that are meant. Prints how many recordings were ended.
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

import msprobe_ms.recording.output.deferred_statistics
from msprobe_ms.frameworks.pytorch import device_statistics
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.pytorch import PrecisionDebugger

PACKAGE = Path(msprobe_ms.__file__).parent
STORING = ("dump", "arrays/npy.py", "recording/output/tensor_writer.py", "support/files.py", "support/folder.py")
FILES = {
    "files": (*(str(PACKAGE / name) for name in STORING), queue.__file__, threading.__file__),
    "device": (str(PACKAGE / "recording" / "output" / "deferred_statistics.py"), device_statistics.__file__),
}
SECTIONS = {
    "files": {"task": "tensor", "level": "mix", "async_dump": True},
    "device": {"task": "statistics", "level": "mix"},
}


class OnLine:
    """Sends this process SIGTERM on a line of ``files``, ``left`` of them later."""

    def __init__(self, left: int, files: tuple[str, ...]) -> None:
        self.left = left
        self.files = files

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self.line if frame.f_code.co_filename.startswith(self.files) else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGTERM)
        return self.line


def main(folder: Path, stride: int, kind: str) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps({**SECTIONS[kind], "dump_path": str(folder / "dump")}))
    if kind == "device":
        device_statistics.is_on_device = lambda tensor: True
        PyTorch.elements = lambda self, tensor: None
        msprobe_ms.recording.output.deferred_statistics.MOST = 3
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
        sys.settrace(OnLine(number, FILES[kind]).enter)
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
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
