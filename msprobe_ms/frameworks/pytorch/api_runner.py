"""Single PyTorch APIs, run alone, with gradients."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import NOTHING, ApiOutcome, Value
from msprobe_ms.frameworks.api_values import Call, attribute, flattened, wanted
from msprobe_ms.frameworks.base import Namespace
from msprobe_ms.frameworks.framework_runner import FrameworkRunner
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.frameworks.pytorch.mindspore_twins import find_twin


class PyTorchRunner(FrameworkRunner):
    """Calls single APIs of PyTorch."""

    no_kernel = re.compile(
        r"not implemented for|Could not run '|not (currently )?(supported|implemented) (on|for) (the )?'?(CPU|CUDA|NPU)"
    )
    no_gradient = re.compile(r"derivative for '?[\w:.]+'? is not implemented|don't support automatic differentiation")

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
        torch.manual_seed(seed)

    def find(self, prefix: str, api: str, attributes: Mapping[str, Value] = NOTHING) -> Callable[..., Any] | None:
        if prefix == "Aten":
            found = attribute(torch.ops.aten, api.removeprefix("aten."))
            return found if callable(found) else None
        return super().find(prefix, api)

    def twin(self, prefix: str, api: str) -> Callable[..., Any] | None:
        """Return a function that takes what MindSpore's entries ``{prefix}.{api}.{n}`` take, and computes with torch.

        None where there is none; APIs whose results are random have none.
        """
        return find_twin(prefix, api)

    def _undifferentiated(self, function: Callable[..., Any], call: Call) -> tuple[TypedArray | Any, ...]:
        with torch.no_grad():
            return super()._undifferentiated(function, call)

    def _differentiated(
        self, function: Callable[..., Any], call: Call, output_gradients: Sequence[TypedArray | None]
    ) -> ApiOutcome:
        leaves = [tensor.requires_grad_() for tensor in call.floats]
        with torch.enable_grad():
            # Functions may not write into a leaf.
            outputs = flattened(call.make(function, [tensor.clone() for tensor in leaves]))
        pairs = [(output, self._tensor(seed)) for output, seed in wanted(outputs, output_gradients)]
        roots = [(output, seed.to(output.dtype)) for output, seed in pairs if output.requires_grad]
        if not roots:
            return ApiOutcome(self._read(outputs), (None,) * len(leaves))
        gradients = torch.autograd.grad(
            [output for output, _ in roots], leaves, [seed for _, seed in roots], allow_unused=True
        )
        found = (None if gradient is None else self._array(gradient) for gradient in gradients)
        return ApiOutcome(self._read(outputs), tuple(found))

    def _tensor(self, array: TypedArray) -> Any:
        # A copy: functions may write into it.
        return torch.from_numpy(np.array(array.values)).to(self._device, self._dtype(array.dtype))

    def _dtype(self, name: str) -> torch.dtype:
        return getattr(torch, parse_dtype(name).name)
