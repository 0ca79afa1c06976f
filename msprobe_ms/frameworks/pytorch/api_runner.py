"""Single PyTorch APIs, run alone, with gradients."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload, OpOverloadPacket

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import NOTHING, ApiOutcome, Value
from msprobe_ms.frameworks.api_values import Call, attribute, flattened, wanted
from msprobe_ms.frameworks.framework_runner import FrameworkRunner
from msprobe_ms.frameworks.interface.apis import Namespace
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.frameworks.pytorch.mindspore_twins import find_twin


class PyTorchRunner(FrameworkRunner):
    """Calls single APIs of PyTorch."""

    no_kernel = re.compile(
        r"not implemented for|Could not run '|not (currently )?(supported|implemented) (on|for) (the )?'?(CPU|CUDA|NPU)"
    )
    #: What it says where it knows no derivative: of an argument, or of anything.
    no_derivative = re.compile(r"derivative for '?[\w:. ]+'? is not implemented|is not differentiable with respect to")
    no_gradient = re.compile(rf"{no_derivative.pattern}|don't support automatic differentiation")

    def __init__(self) -> None:
        super().__init__(PyTorch())
        if find_spec("torch_npu") is not None:
            self._namespaces = [*self._namespaces, Namespace("torch_npu", "NPU", importlib.import_module("torch_npu"))]
        self._device = "cpu"
        self.version = f"pytorch {torch.__version__} on cpu"

    def use_accelerator(self) -> None:
        """Run on the accelerator from here on, where there is one: an NPU, or else a GPU."""
        for device in ("npu", "cuda"):
            module = getattr(torch, device, None)
            if module is not None and module.is_available():
                self._device = device
                self.version = f"pytorch {torch.__version__} on {device}"
                return

    def seed(self, seed: int) -> None:
        if self._device == "cpu":  # the other keeps the call, with its stack, for each device that is not in use
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def find(self, prefix: str, api: str, attributes: Mapping[str, Value] = NOTHING) -> Callable[..., Any] | None:
        if prefix == "Aten":
            found = attribute(torch.ops.aten, api.removeprefix("aten."))
            return found if _computes(found) else None
        return super().find(prefix, api)

    def is_operator(self, namespace: Namespace, api: str) -> bool:
        """Other tools record more APIs than this package does: those that PyTorch has a kernel for."""
        kernels = torch.ops.npu if namespace.prefix == "NPU" else torch.ops.aten
        return super().is_operator(namespace, api) or _computes(getattr(kernels, api, None))

    def twin(self, prefix: str, api: str) -> Callable[..., Any] | None:
        """Return a function that takes what MindSpore's entries ``{prefix}.{api}.{n}`` take, and computes with torch.

        None where there is none; APIs whose results are random, or come in no certain order, have none. Entries of
        MSAdapter need none: what they call has torch's names, and is found by ``find``.
        """
        return find_twin(prefix, api)

    def _undifferentiated(self, function: Callable[..., Any], call: Call) -> tuple[TypedArray | Any, ...]:
        with torch.no_grad():
            return super()._undifferentiated(function, call)

    def _differentiated(
        self, function: Callable[..., Any], call: Call, output_gradients: Sequence[TypedArray | None]
    ) -> ApiOutcome:
        leaves = call.floats
        chosen: Sequence[int] = range(len(leaves))
        try:
            outputs, gradients = self._derived(function, call, chosen, output_gradients)
        except (RuntimeError, NotImplementedError) as error:
            if not self.no_derivative.search(str(error)):
                raise
            # Of some arguments there is no derivative, such as a loss's weights: they are found one by one.
            chosen = [place for place in chosen if self._has_derivative(function, call, place, output_gradients)]
            if not chosen:
                raise
            outputs, gradients = self._derived(function, call, chosen, output_gradients)
        found = dict(zip(chosen, gradients, strict=True))
        arrays = (None if found.get(place) is None else self._array(found[place]) for place in range(len(leaves)))
        return ApiOutcome(self._read(outputs), tuple(arrays))

    def _derived(
        self,
        function: Callable[..., Any],
        call: Call,
        chosen: Sequence[int],
        output_gradients: Sequence[TypedArray | None],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Outputs, and the gradients of the chosen floating-point tensors; None where none reaches."""
        leaves = [tensor.detach().clone().requires_grad_(place in chosen) for place, tensor in enumerate(call.floats)]
        with torch.enable_grad():
            # Functions may not write into a leaf.
            outputs = flattened(call.make(function, [leaf.clone() for leaf in leaves]))
        pairs = [(output, self._tensor(seed)) for output, seed in wanted(outputs, output_gradients)]
        roots = [(output, seed.to(output.dtype)) for output, seed in pairs if output.requires_grad]
        if not roots:
            return outputs, [None] * len(chosen)
        results, seeds = zip(*roots, strict=True)
        return outputs, torch.autograd.grad(results, [leaves[place] for place in chosen], seeds, allow_unused=True)

    def _has_derivative(
        self, function: Callable[..., Any], call: Call, place: int, output_gradients: Sequence[TypedArray | None]
    ) -> bool:
        try:
            self._derived(function, call, [place], output_gradients)
        except (RuntimeError, NotImplementedError):
            return False
        return True

    def _array(self, tensor: Any) -> TypedArray:
        # A gradient of zeros may have no memory, only a sign that says so.
        return super()._array(tensor.clone() if tensor._is_zerotensor() else tensor)

    def _tensor(self, array: TypedArray) -> Any:
        # A copy: functions may write into it.
        return torch.from_numpy(np.array(array.values)).to(self._device, self._dtype(array.dtype))

    def _dtype(self, name: str) -> torch.dtype:
        return getattr(torch, parse_dtype(name).name)


def _computes(found: Any) -> bool:
    """Whether this is an operator that gives tensors, and has nothing to do with files."""
    if isinstance(found, OpOverloadPacket):
        overloads = [getattr(found, name) for name in found.overloads()]
    else:
        overloads = [found] if isinstance(found, OpOverload) else []
    schemas = [each._schema for each in overloads]
    gives_tensors = any("Tensor" in str(each.type) for schema in schemas for each in schema.returns)
    return gives_tensors and all(each.name != "filename" for schema in schemas for each in schema.arguments)
