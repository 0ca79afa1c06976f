"""What a MindSpore script imports: ``PrecisionDebugger``, ``MsprobeStep``, ``seed_all``."""

from __future__ import annotations

from msprobe_ms.debugger import BaseDebugger
from msprobe_ms.frameworks import msadapter
from msprobe_ms.frameworks.mindspore import MindSpore
from msprobe_ms.frameworks.mindspore_callback import MsprobeStep
from msprobe_ms.frameworks.mindspore_random import seed_framework, set_dropout
from msprobe_ms.seed import seed_process

__all__ = ["MsprobeStep", "PrecisionDebugger", "seed_all"]


class PrecisionDebugger(BaseDebugger):
    """Records a MindSpore network (dynamic graphs): ``start(net)``, one training step, ``stop()``, ``step()``.

    Where ``torch`` is MSAdapter's, PyTorch code on MindSpore, it records that: import torch before constructing it.
    """

    def _load_framework(self) -> MindSpore:
        return msadapter.MSAdapter() if msadapter.is_in_use() else MindSpore()


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False) -> None:
    """Seed Python, numpy and MindSpore.

    ``mode`` asks for deterministic kernels, ``rm_dropout`` makes every dropout the identity; a later call with
    ``rm_dropout=False`` gives dropout back. Raises UsageError for values that are not accepted.
    """
    seed_process(seed, mode)
    seed_framework(seed, mode)
    set_dropout(not rm_dropout)
