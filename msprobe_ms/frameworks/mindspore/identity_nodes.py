"""Gradients of single calls before MindSpore 2.8, which does not show its graph: nodes of our own on the tensors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from mindspore import Tensor, ops

from msprobe_ms.frameworks.base import InputWatch, OnGradients


class Hooked(InputWatch):
    """Tensors that stand on a node of their own in the gradient graph, which reports what flows through it.

    They are the very tensors that were given: another object in their place would change what `is`, views and writes in
    place do in the user's code. A twin stands in for a leaf, by which the framework finds gradients, and for a tensor
    that was written in place, whose version the framework checks.
    """

    def __init__(self, tensors: Sequence[Any], on_gradients: OnGradients) -> None:
        super().__init__(tensors)
        #: The tensors that have twins, and the others with what they stood on before.
        self._twins: list[tuple[Any, Any]] = []
        self._moved: list[tuple[Any, Any]] = []
        self.tensors = [self._move(*pair) for pair in zip(tensors, _hook(tensors, on_gradients), strict=True)]

    def _move(self, tensor: Any, hooked: Any) -> Any:
        if not _is_hooked(hooked):
            return tensor  # gradients are switched off, as in the first run of a recomputed cell
        if getattr(tensor, "_is_leaf", True) or _version(tensor):
            # As MindSpore links a view to its tensor: what is written into a part of the twin reaches the tensor.
            hooked.parent_tensor_, hooked.index_of_parent_ = tensor, ...
            self._twins.append((tensor, hooked))
            return hooked
        self._moved.append((tensor, Tensor(tensor)))
        return tensor.assign_value(hooked)

    def settle(self, outputs: Sequence[Any]) -> None:
        """Put the tensors back where they stood, unless the call wrote into them or handed them on."""
        handed_on = {id(tensor) for tensor in outputs}
        for tensor, before in self._moved:
            if _is_hooked(tensor) and not _version(tensor) and id(tensor) not in handed_on:
                tensor.assign_value(before)
        for tensor, twin in self._twins:
            if not _is_hooked(twin):
                tensor.assign_value(twin)


def can_be_hooked() -> bool:
    """Whether hooks do no harm here: MindSpore cannot take the gradient of a gradient through one."""
    levels, frame = 0, sys._getframe(1)
    while frame is not None and levels < 2:
        levels += frame.f_code.co_name == "_pynative_forward_run"
        frame = frame.f_back  # type: ignore[assignment]
    return levels < 2


def _hook(tensors: Sequence[Any], on_gradients: OnGradients) -> Sequence[Any]:
    # A primitive that is the identity forward, and backward hands over one gradient a tensor (zeros if unused).
    def report(gradients: Sequence[Any]) -> None:
        on_gradients(gradients)

    hooked = ops.HookBackward(report)(*tensors)
    return hooked if isinstance(hooked, tuple) else (hooked,)


def _version(tensor: Any) -> int:
    """How often the tensor was written in place."""
    return getattr(tensor, "_version", 0)


def _is_hooked(tensor: Any) -> bool:
    """Whether the tensor stands where a hook put it; before 2.8 nothing tells, and nothing is taken for changed."""
    return str(getattr(tensor, "_grad_node", "<HookBackward")).startswith("<HookBackward")
