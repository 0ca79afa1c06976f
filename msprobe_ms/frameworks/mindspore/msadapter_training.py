"""Networks and optimizers of MSAdapter's ``torch``, in a process that MindSpore's training is watched in.

Asks for `torch` each time: the script may import it long after MindSpore, or not at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from mindspore import Tensor


def module_class() -> type | None:
    """Return ``torch.nn.Module`` where ``torch`` is MSAdapter's: its tensors are MindSpore's."""
    torch = sys.modules.get("torch")
    tensor, module = getattr(torch, "Tensor", None), getattr(getattr(torch, "nn", None), "Module", None)
    if not (isinstance(tensor, type) and issubclass(tensor, Tensor) and isinstance(module, type)):
        return None
    return module


def optimizer_class() -> type | None:
    """Return ``torch.optim.Optimizer`` where ``torch`` is MSAdapter's and has one."""
    if module_class() is None:
        return None
    found = getattr(getattr(sys.modules["torch"], "optim", None), "Optimizer", None)
    return found if isinstance(found, type) else None


def is_module(value: Any) -> bool:
    """Whether ``value`` is a module of MSAdapter."""
    module = module_class()
    return module is not None and issubclass(type(value), module)


def is_optimizer(value: Any) -> bool:
    """Whether ``value`` is an optimizer of MSAdapter."""
    optimizer = optimizer_class()
    return optimizer is not None and issubclass(type(value), optimizer)


def trainable(module: Any) -> list[Any]:
    """Return the parameters of a module, and of all below it, that are trained."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def of_optimizer(optimizer: Any) -> Iterable[Any]:
    """Return the parameters that an optimizer updates."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
