"""PyTorch's random numbers and its choice of kernels, for ``seed_all``."""

from __future__ import annotations

import os

import torch


def seed_framework(seed: int, mode: bool) -> None:
    """Seed every device, those that start later included; with ``mode`` use deterministic kernels from now on.

    Without ``mode`` the choice of kernels stays as the script made it.
    """
    torch.manual_seed(seed)
    if mode:
        # Read by cuBLAS when its first handle is made; without it PyTorch refuses cuBLAS calls in this mode.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
