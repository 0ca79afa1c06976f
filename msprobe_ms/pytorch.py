"""What a PyTorch script imports: ``PrecisionDebugger``, ``seed_all``."""

from __future__ import annotations

import os

import torch

from msprobe_ms.debugger import BaseDebugger
from msprobe_ms.errors import UsageError
from msprobe_ms.frameworks.pytorch import PyTorch
from msprobe_ms.seed import seed_process

__all__ = ["PrecisionDebugger", "seed_all"]


class PrecisionDebugger(BaseDebugger):
    """Records a PyTorch network (eager mode): ``start(net)``, one training step, ``stop()``, ``step()``."""

    def _load_framework(self) -> PyTorch:
        return PyTorch()


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False) -> None:
    """Seed Python, numpy and PyTorch on every device; ``mode`` asks PyTorch, cuDNN and cuBLAS for deterministic kernels.

    Raises UsageError for values that are not accepted. ``rm_dropout`` is not: PyTorch networks have dropout switched off
    by ``p = 0`` on their Dropout modules.
    """
    if rm_dropout is not False:
        raise UsageError(
            f"seed_all: rm_dropout {rm_dropout!r} is not accepted for PyTorch, only False; "
            "set p = 0 on the network's Dropout modules instead"
        )
    seed_process(seed, mode)
    torch.manual_seed(seed)  # every device, those that start later included
    if mode:
        # Read by cuBLAS when its first handle is made; without it PyTorch refuses cuBLAS calls in this mode.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
