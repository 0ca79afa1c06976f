"""What a MindSpore script imports: ``PrecisionDebugger``, ``MsprobeStep``, ``seed_all``."""

from __future__ import annotations

from msprobe_ms.debugger import BaseDebugger
from msprobe_ms.frameworks.mindspore import MindSpore


class PrecisionDebugger(BaseDebugger):
    """Records a MindSpore network (dynamic graphs): ``start(net)``, one training step, ``stop()``, ``step()``."""

    def _load_framework(self) -> MindSpore:
        return MindSpore()
