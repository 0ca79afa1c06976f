"""Repeat single calls of PyTorch within a training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import saved_tensors_hooks

from msprobe_ms.arrays.changes import Change, bits_of, measure
from msprobe_ms.frameworks.repeating import SMALL, Repeater, Restore, bounds_of, first_and_last, one_of

_FLOATS = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}
_INTEGERS = {16: torch.int16, 32: torch.int32, 64: torch.int64}
_COMMON = frozenset((torch.Tensor, torch.nn.Parameter))
#: Kinds of devices with generators of their own.
_ACCELERATORS = ("cuda", "npu", "xpu")

#: Whether hooks on what graphs save may be set; not in the oldest releases.
_hooks_are_allowed: Callable[[], bool] = getattr(torch._C._autograd, "_saved_tensors_hooks_is_enabled", lambda: True)

_is_transformed: Callable[[Any], bool] = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", lambda _: False)


class TorchRepeater(Repeater):
    """Repeats calls of PyTorch."""

    def float_name(self, tensor: Any) -> str | None:
        return _FLOATS.get(tensor.dtype)

    def is_plain(self, tensor: Any) -> bool:
        plain = type(tensor) in _COMMON and tensor.layout is torch.strided and not tensor.is_nested
        return plain and tensor.device.type != "meta" and not tensor.is_quantized and not _is_transformed(tensor)

    def version(self, tensor: Any) -> int | None:
        return None if tensor.is_inference() else tensor._version

    def memory(self, tensor: Any) -> object:
        return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()

    def storage(self, tensor: Any) -> object:
        return tensor.untyped_storage().data_ptr()

    def detached(self, tensor: Any) -> Any:
        return tensor.detach()

    def size(self, tensor: Any) -> int:
        return tensor.nbytes

    def alias(self, tensor: Any) -> Any:
        # A batch normalisation writes its moving averages, and no version tells; what takes part in a graph is safe.
        return tensor.detach() if tensor.requires_grad else self.copy(tensor)

    def copy(self, tensor: Any) -> Any:
        return tensor.detach().clone()

    def with_bits(self, tensor: Any, change: Callable[[Any, str], Any]) -> Any:
        name = _FLOATS[tensor.dtype]
        tensor = tensor.detach()
        # What is only shown many times is not multiplied in memory.
        shown = tuple(
            slice(0, 1) if stride == 0 and size > 1 else slice(None)
            for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        )
        held = tensor[shown] if shown else tensor
        found = change(held.view(_INTEGERS[bits_of(name)]), name).view(tensor.dtype)
        return found.expand(tensor.shape)

    def exchanged(self, tensor: Any) -> Any:
        if tensor.numel() < 2:
            return None
        found = tensor.detach().clone(memory_format=torch.contiguous_format)
        first, last = first_and_last(found.dim())
        found[first], found[last] = found[last].clone(), found[first].clone()
        return found

    def widened(self, tensor: Any) -> Any:
        return tensor.to(torch.float32)

    def on_cpu(self, tensor: Any) -> Any:
        return tensor.cpu()

    def like(self, tensor: Any, original: Any) -> Any:
        return tensor.to(original.device, original.dtype)

    def magnitudes(self, tensor: Any) -> Any:
        return tensor.detach().abs()

    def measure(self, original: Any, other: Any, limit: float, noise: float = 0.0) -> Change:
        name = _FLOATS[original.dtype]
        smallest, largest = bounds_of(name)
        original, other = original.detach(), other.detach()
        if original.is_cpu and original.numel() <= SMALL:
            own, others = (each.cpu().to(torch.float64).numpy() for each in (original, other))
            with np.errstate(all="ignore"):
                return measure(np, own, others, limit, smallest, largest, noise)
        wide = torch.float64 if name == "float64" else torch.float32
        device = original.device
        return measure(torch, original.to(wide), other.to(device, wide), limit, smallest, largest, noise)

    # -- calls -----------------------------------------------------------------------------------------------------

    differentiates_in_backward = True

    def generators(self, values: Sequence[Any]) -> Callable[[], Restore]:
        found = [torch.default_generator, *(each for each in values if isinstance(each, torch.Generator))]
        for kind in _ACCELERATORS:
            module = getattr(torch, kind, None)
            if module is not None and module.is_available() and module.is_initialized():
                found.append(module.default_generators[module.current_device()])
        return partial(_state_of, found)

    def casts(self) -> bool:
        return torch.is_autocast_enabled() or torch._C._is_any_autocast_enabled()

    def casting(self) -> Callable[[], AbstractContextManager[Any]]:
        if not self.casts() or not hasattr(torch, "get_autocast_dtype"):
            return nullcontext
        return partial(_autocast, [(kind, torch.get_autocast_dtype(kind)) for kind in _kinds() if _casts_on(kind)])

    def at_full_precision(self) -> AbstractContextManager[Any]:
        return _autocast([(kind, None) for kind in _kinds()] if self.casts() else [])

    def is_made(self, tensor: Any) -> bool:
        return tensor.grad_fn is not None

    def watch_gradient(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        tensor.grad_fn.register_prehook(one_of(tensor.output_nr, hook))

    def gradients(
        self,
        function: Callable[[Sequence[Any]], Sequence[Any]],
        tensors: Sequence[Any],
        output_gradients: Sequence[Any],
    ) -> Sequence[Any]:
        with torch.enable_grad(), _unpacked():
            leaves = [tensor.detach().requires_grad_() for tensor in tensors]
            outputs = function(leaves)
            pairs = [
                (output, gradient.detach())
                for output, gradient in zip(outputs, output_gradients, strict=True)
                if gradient is not None and output.requires_grad
            ]
            if not pairs:
                return [None] * len(leaves)
            results, seeds = zip(*pairs, strict=True)
            return torch.autograd.grad(results, leaves, seeds, allow_unused=True)


def _unpacked() -> AbstractContextManager[Any]:
    """A context in which the script's hooks on what a graph saves are not asked for graphs of ours."""
    if not _hooks_are_allowed():
        return nullcontext()
    return saved_tensors_hooks(torch.Tensor.detach, _itself)


def _itself(saved: Any) -> Any:
    return saved


def _kinds() -> list[str]:
    """The kinds of devices that there are."""
    return ["cpu", *(kind for kind in _ACCELERATORS if hasattr(torch, kind))]


def _casts_on(kind: str) -> bool:
    return torch.is_autocast_enabled(kind)


def _autocast(dtypes: Sequence[tuple[str, torch.dtype | None]]) -> AbstractContextManager[Any]:
    """A context in which arguments are cast to a dtype, by the kind of device; to none where that is None."""
    stack = ExitStack()
    for kind, dtype in dtypes:
        stack.enter_context(torch.autocast(kind, dtype, enabled=dtype is not None))
    return stack


def _state_of(generators: Sequence[Any]) -> Restore:
    states = [(generator, generator.get_state()) for generator in generators]

    def restore() -> None:
        for generator, state in states:
            generator.set_state(state)

    return restore
