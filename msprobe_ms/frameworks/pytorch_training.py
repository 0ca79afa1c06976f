"""A PyTorch training as it goes: the outermost module that is called, the optimizer's step."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import nn

from msprobe_ms.frameworks.training import ClassPatches, Listener


class _Depth(threading.local):
    value = 0


def watch_training(listener: Listener) -> ClassPatches:
    """Tell ``listener`` of the training steps of this process until the result's ``remove``.

    A step's computing begins with the call of the first module that has something to train and stands in no other,
    while gradients are on, and ends with the optimizer's step.
    """
    patches = ClassPatches()
    depth = _Depth()

    def call_module(original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if depth.value == 0 and torch.is_grad_enabled() and _trains(module):
            listener.computes([module], "the outermost module called")
        depth.value += 1
        try:
            return original(module, *args, **kwargs)
        finally:
            depth.value -= 1

    def make_optimizer(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        original(optimizer, *args, **kwargs)
        optimizer.register_step_pre_hook(lambda *_: listener.pauses())
        optimizer.register_step_post_hook(lambda *_: listener.step_ends(type(optimizer).__name__))

    patches.put(nn.Module, "__call__", call_module)
    patches.put(torch.optim.Optimizer, "__init__", make_optimizer)
    return patches


def _trains(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())
