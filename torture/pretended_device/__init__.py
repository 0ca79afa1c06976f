"""A device for PyTorch where there is none: the host cannot read its memory, its backward has a thread of its own.

    MSPROBE_DEVICE=pretended pytest -q tests/frameworks/pytorch/test_cuda.py     # or: make device

What computes is the CPU. So it shows what becomes of recording where tensors are on a device, and counts what that is
sent; it says nothing of streams, of times, or of what a GPU's own kernels compute.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import cpp_extension

from msprobe_ms.frameworks.pytorch import device_statistics

NAME = "pretended"


def install() -> Any:
    """Compile the device, which takes a minute the first time, and have recording take it for a GPU.

    Returns what has ``counts()``: operations that were launched, and read-backs.
    """
    device = cpp_extension.load("pretended_device", [str(Path(__file__).with_name("device.cpp"))], ["-O1", "-g0"])
    torch.utils.rename_privateuse1_backend(NAME)
    backend: Any = ModuleType(f"torch.{NAME}")
    backend.is_available = backend.is_initialized = lambda: True
    backend.device_count = lambda: 1
    backend.current_device = lambda: 0
    backend.device = nullcontext
    backend._is_in_bad_fork = lambda: False
    backend._lazy_init = lambda: None
    backend.manual_seed_all = lambda seed: None
    backend.get_rng_state = lambda device=None: torch.get_rng_state()
    backend.set_rng_state = lambda state, device=None: None
    backend.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    torch._register_device_module(NAME, backend)
    sys.modules[backend.__name__] = backend
    device_statistics.is_on_device = lambda tensor: tensor.device.type == NAME
    return device
