"""A PyTorch training as it goes: the outermost modules that are called, the optimizers' steps."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from msprobe_ms.frameworks.training import ClassPatches, Listener, Networks, answer
from msprobe_ms.support.translation import tr


class _Depth(threading.local):
    value = 0


class PyTorchNetworks(Networks):
    """Modules and ``torch.optim`` optimizers."""

    def trainable(self, network: Any) -> Iterable[Any]:
        return (parameter for parameter in network.parameters() if parameter.requires_grad)

    def modules(self, network: Any) -> Iterable[Any]:
        return network.modules()

    def device(self, network: Any) -> str:
        several = network if isinstance(network, (list, tuple)) else [network]
        parameters = (parameter for each in several if each is not None for parameter in each.parameters())
        return next((str(parameter.device.type) for parameter in parameters), "")

    def of_optimizer(self, optimizer: Any) -> Iterable[Any]:
        return (parameter for group in optimizer.param_groups for parameter in group["params"])

    def alive(self) -> Iterable[Any]:
        # Scripted modules' parameters are new objects at every look.
        return [
            value
            for value in gc.get_objects()
            if issubclass(type(value), nn.Module) and not issubclass(type(value), torch.jit.ScriptModule)
        ]


def find_networks() -> Networks:
    return PyTorchNetworks()


def watch_training(listener: Listener) -> ClassPatches:
    """Tell ``listener`` of the training steps of this process until the result's ``remove``.

    Computing is the call of a module that has parameters and stands in no other. Once there is an optimizer, calls
    with gradients off, and those in eval mode of a module that was called in training mode before, are an evaluation.
    """
    patches = ClassPatches()
    depth = _Depth()
    #: By identity: a script's optimizers may have no hash.
    optimizers: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
    trained_in_mode: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def is_evaluation(module: nn.Module) -> bool:
        if module.training:
            trained_in_mode.add(module)
        if not optimizers:
            return next(module.parameters(), None) is None
        if not torch.is_grad_enabled() or not any(parameter.requires_grad for parameter in module.parameters()):
            return True
        return not module.training and module in trained_in_mode

    def call_module(original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if depth.value == 0 and not answer(lambda: is_evaluation(module), False):
            listener.computes([module], tr("the outermost module called"))
        depth.value += 1
        try:
            return original(module, *args, **kwargs)
        finally:
            depth.value -= 1

    def make_optimizer(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        original(optimizer, *args, **kwargs)
        if optimizers.get(id(optimizer)) is optimizer:
            return  # its class and a class above it both came here
        optimizers[id(optimizer)] = optimizer
        answer(lambda: optimizer.register_step_pre_hook(lambda *_: listener.pauses()), None)
        answer(lambda: optimizer.register_step_post_hook(lambda made, *_: listener.optimizer_ran(made)), None)
        listener.optimizer_made(optimizer)

    def scaled_step(original: Any, scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        # Gradients that overflowed are not applied: the optimizer does not run, the step is over all the same.
        ran = False

        def note(*_: Any) -> None:
            nonlocal ran
            ran = True

        handle = answer(lambda: optimizer.register_step_post_hook(note), None)
        if handle is None:  # no optimizer of PyTorch's
            return original(scaler, optimizer, *args, **kwargs)
        try:
            return original(scaler, optimizer, *args, **kwargs)
        finally:
            handle.remove()
            if not ran:
                listener.pauses()
                listener.optimizer_ran(optimizer)

    patches.put(nn.Module, "__call__", call_module)
    patches.put(torch.optim.Optimizer, "__init__", make_optimizer)
    if hasattr(torch.amp, "GradScaler"):
        patches.put(torch.amp.GradScaler, "step", scaled_step)
    return patches
