"""Which of ours records the ``torch`` of this process: PyTorch's own, or MSAdapter's on MindSpore."""

from __future__ import annotations

import importlib
import sys

from msprobe_ms.frameworks.torch_modules import TorchModules
from msprobe_ms.recording.debugger import BaseDebugger


def is_on_mindspore() -> bool:
    """Whether ``torch`` is MSAdapter's; false where it is not imported yet."""
    if "torch" not in sys.modules or "mindspore" not in sys.modules:
        return False
    return bool(importlib.import_module("msprobe_ms.frameworks.msadapter").is_in_use())


def torch_debugger() -> type[BaseDebugger]:
    """Return the class of debuggers that record it."""
    ours = "mindspore" if is_on_mindspore() else "pytorch"
    debugger: type[BaseDebugger] = importlib.import_module(f"msprobe_ms.{ours}").PrecisionDebugger
    return debugger


def torch_framework() -> TorchModules:
    """Return what is known of it."""
    module, name = ("msadapter", "MSAdapter") if is_on_mindspore() else ("pytorch.framework", "PyTorch")
    framework: TorchModules = getattr(importlib.import_module(f"msprobe_ms.frameworks.{module}"), name)()
    return framework
