"""What PyTorch itself tells of a tensor, whatever its class or the tensor has in the place of PyTorch's own methods.

A user's subclass may compute in its ``shape`` or ``detach``, raise there or wait: none of it runs while its tensors are
recorded. A class with a ``__torch_dispatch__`` (fake and distributed tensors) holds no memory of its own; what it tells
of itself is all there is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import nn

#: PyTorch's class beneath ``torch.Tensor``, written in C.
_BASE: Any = torch.Tensor.__mro__[1]

#: Classes of most tensors.
COMMON = frozenset((torch.Tensor, nn.Parameter))

# Called a thousand times a step: without frames of Python of their own.
requires_grad, grad_fn, output_number = (
    vars(_BASE)[name].__get__ for name in ("requires_grad", "grad_fn", "output_nr")
)
base, is_nested, layout = (vars(_BASE)[name].__get__ for name in ("_base", "is_nested", "layout"))
backward_hooks = vars(_BASE)["_backward_hooks"].__get__
size, stride, storage_offset = _BASE.size, _BASE.stride, _BASE.storage_offset
#: What the class has under a name: a method, or an attribute written in C.
own: Callable[[str], Any] = vars(_BASE).__getitem__
register_hook = torch.Tensor.register_hook
_as_subclass = _BASE.as_subclass

#: What PyTorch reads of a tensor to put a hook on it.
_READ_FOR_HOOKS = ("requires_grad", "grad_fn", "_backward_hooks", "_register_hook_dict")


def plain(tensor: Any) -> Any:
    """The tensor as one of PyTorch's own class, with the same memory and nothing set on it; itself where it is one, or
    tells all there is."""
    kind: Any = type(tensor)
    if kind in COMMON:
        return _as_subclass(tensor, torch.Tensor) if tensor.__dict__ else tensor
    return _as_subclass(tensor, torch.Tensor) if _holds_memory(kind) else tensor


@lru_cache(maxsize=256)
def takes_hooks(kind: type) -> bool:
    """Whether a hook is put on tensors of a class without code of the class."""
    above = kind.__mro__[: kind.__mro__.index(torch.Tensor)]
    return not any(name in vars(each) for each in above for name in _READ_FOR_HOOKS)


def is_read(tensor: Any) -> bool:
    """Whether the elements of a tensor are recorded."""
    kind: Any = type(tensor)
    return kind in COMMON or _holds_memory(kind) or hasattr(kind, "to_local")


@lru_cache(maxsize=256)
def _holds_memory(kind: type) -> bool:
    if issubclass(kind, nn.parameter.UninitializedTensorMixin):  # has neither shape nor memory yet
        return False
    return type.__getattribute__(kind, "__torch_dispatch__") is torch.Tensor.__torch_dispatch__
