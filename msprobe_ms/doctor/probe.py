"""Run as a program, with ``mindspore`` or ``pytorch``: what this framework can record here, as JSON on the last line.

A process of its own, as importing a framework may hang, end the process, or start threads and devices.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.modes import WAYS


def _mindspore() -> tuple[str, str, dict[str, list[str]]]:
    import mindspore  # noqa: TID251 - a program of its own, which exists to import it

    from msprobe_ms.frameworks.mindspore.framework import MindSpore

    found = {}
    for name, mode in (("dynamic graphs", mindspore.PYNATIVE_MODE), ("compiled graphs", mindspore.GRAPH_MODE)):
        mindspore.set_context(mode=mode)
        found[name] = _levels(MindSpore())
    return mindspore.__version__, str(mindspore.get_context("device_target")), found


def _pytorch() -> tuple[str, str, dict[str, list[str]]]:
    import torch  # noqa: TID251 - a program of its own, which exists to import it

    from msprobe_ms.frameworks.pytorch.framework import PyTorch

    device = "CUDA" if torch.cuda.is_available() else "CPU"
    return torch.__version__, device, {"eager mode": _levels(PyTorch())}


def _levels(framework: Framework) -> list[str]:
    mode: Any = framework.execution_mode()
    return [level for level in WAYS[mode] if level != "L2" or framework.no_kernels is None]


if __name__ == "__main__":
    version, device, modes = {"mindspore": _mindspore, "pytorch": _pytorch}[sys.argv[1]]()
    print(json.dumps({"version": version, "device": device, "modes": modes}))
