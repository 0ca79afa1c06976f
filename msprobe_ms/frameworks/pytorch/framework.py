"""PyTorch 2.x, eager mode, on CPU and CUDA."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import nn
from torch._guards import TracingContext

from msprobe_ms.dump.dialects import PYTORCH
from msprobe_ms.frameworks.base import InputWatch, Namespace, OnGradients, OnInputGradients, Removable
from msprobe_ms.frameworks.gradient_graph import ConsumerWatch, watch_outputs
from msprobe_ms.frameworks.pytorch import device_statistics
from msprobe_ms.frameworks.pytorch.autograd import TorchGraph
from msprobe_ms.frameworks.torch_modules import TorchModules
from msprobe_ms.support.log import logger

_FOLDER = os.path.dirname(os.path.abspath(torch.__file__))

#: dtypes numpy has no twin of, and the wider one that holds their values exactly.
_WIDER: dict[torch.dtype, torch.dtype] = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64} | {
    dtype: torch.float32
    for name, dtype in vars(torch).items()
    if name.startswith("float8_") and isinstance(dtype, torch.dtype)
}

#: What torch.compile works in, None outside of it.
_tracing_context: Callable[[], Any] = getattr(TracingContext, "try_get", TracingContext.get)


class PyTorch(TorchModules):
    """What the package needs to know of PyTorch."""

    dialect = PYTORCH
    watches_in_place = True
    recomputing = tuple(
        (f"{_FOLDER}/utils/checkpoint.py", name) for name in ("backward", "unpack_hook", "recompute_fn")
    )

    def __init__(self) -> None:
        super().__init__(torch)
        self._kept_out = False
        self._graph = TorchGraph()

    # -- tensors ---------------------------------------------------------------------------------------------------

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def to_numpy(self, tensor: Any) -> np.ndarray:
        tensor = _strided(tensor)
        if tensor.is_meta:
            return np.empty(0, np.float32)  # there are no values to read
        if (wider := _WIDER.get(tensor.dtype)) is not None:
            tensor = tensor.to(wider)
        return tensor.cpu().numpy()

    def copies(self, tensor: Any) -> bool:
        on_host = tensor.device.type == "cpu" and tensor.layout is torch.strided and tensor.is_contiguous()
        return not on_host or tensor.dtype in _WIDER

    def in_parts(self, tensor: Any) -> Iterator[np.ndarray]:
        return super().in_parts(_strided(tensor))

    def dtype_text(self, tensor: Any) -> str:
        return str(tensor.dtype)

    def device_statistics(self, tensor: Any, *, sketch: bool) -> Any:
        if not device_statistics.is_on_device(tensor):
            return None
        return device_statistics.start(_strided(tensor), _WIDER.get(tensor.dtype), sketch=sketch)

    def read_statistics(self, on_device: Sequence[Any]) -> Sequence[Sequence[Any]]:
        return device_statistics.read(on_device)

    def requires_grad(self, tensor: Any) -> bool | None:
        return bool(tensor.requires_grad)

    def special_leaf(self, value: Any) -> dict[str, Any] | None:
        if (leaf := super().special_leaf(value)) is not None:
            return leaf
        if isinstance(value, torch.memory_format):
            return {"type": "torch.memory_format", "format": str(value).removeprefix("torch.")}
        if torch.distributed.is_available() and isinstance(value, torch.distributed.ProcessGroup):
            ranks = torch.distributed.get_process_group_ranks(value)
            group_id = f"{zlib.crc32(str(ranks).encode()):08x}"
            return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": group_id}
        return None

    def save_tensor(self, tensor: Any, array: np.ndarray | None, file: BinaryIO) -> None:
        tensor = _strided(tensor)
        if not tensor.is_meta:
            tensor = tensor.cpu()
        # A file holds a tensor's whole storage: of a view, only the part that is the view.
        if not tensor.is_contiguous() or tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size():
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        torch.save(tensor, file)

    def detached(self, tensor: Any, array: np.ndarray) -> tuple[Any, np.ndarray | None]:
        tensor = _strided(tensor).detach()
        return (tensor if tensor.is_meta else tensor.to("cpu", copy=True)), None

    # -- gradients -------------------------------------------------------------------------------------------------

    def can_watch(self, tensor: Any, *, parameters: bool) -> bool:
        return bool(tensor.requires_grad) and torch.is_grad_enabled()

    def watch_inputs(self, tensors: Sequence[Any], on_gradients: OnInputGradients, *, is_module: bool) -> InputWatch:
        return ConsumerWatch(self._graph, tensors, on_gradients, bounded=is_module)

    def watch_outputs(
        self, tensors: Sequence[Any], on_gradients: OnGradients, inputs: InputWatch | None
    ) -> Sequence[Any]:
        watch_outputs(self._graph, tensors, on_gradients, -1 if inputs is None else inputs.floor)
        return tensors

    def hook_parameter(self, parameter: Any, on_gradient: Callable[[Any], None]) -> Removable | None:
        if not parameter.requires_grad or nn.parameter.is_lazy(parameter):
            return None

        def report(gradient: Any) -> None:
            on_gradient(gradient)

        # On a leaf this fires once a backward, with the sum of what that backward adds to `.grad`.
        return parameter.register_hook(report)

    def watch_gradient(self, tensor: Any, on_gradient: Callable[[Any], None]) -> Removable | None:
        def report(gradient: Any) -> None:
            on_gradient(gradient)

        return tensor.register_hook(report)

    # -- modules ---------------------------------------------------------------------------------------------------

    def named_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        """As ``Module.named_modules``, without modules that were compiled or scripted and what lies below them."""
        sealed: list[str] = []
        for name, module in super().named_modules(model):
            if any(name.startswith(prefix) for prefix in sealed):
                continue
            if _is_compiled(module):
                sealed.append(f"{name}." if name else "")
                where = f"the module {name}" if name else "the model"
                logger.warning("%s is compiled or scripted: its modules are not recorded; give the eager one", where)
            else:
                yield name, module

    # -- APIs ------------------------------------------------------------------------------------------------------

    def namespaces(self) -> Sequence[Namespace]:
        found = [*super().namespaces(), Namespace("torch._VF", "VF", torch._VF)]
        if torch.distributed.is_available():
            found.append(Namespace("torch.distributed", "Distributed", torch.distributed, True))
        return found

    def compiler_calls(self) -> Sequence[tuple[Any, str]]:
        compilers: list[tuple[Any, str]] = [(torch.jit, name) for name in ("script", "trace", "trace_module")]
        if (optimized := _optimized_module()) is not None:
            compilers.append((optimized, "__call__"))
        # Printing a tensor computes with it.
        return [*compilers, (torch.fx.Tracer, "trace"), (torch.Tensor, "__repr__")]

    def prepare(self) -> None:
        """Keep torch.compile out of this package: a function it compiles while recording, it splits at our hooks."""
        dynamo = sys.modules.get("torch._dynamo")
        if dynamo is not None and not self._kept_out:
            rules = getattr(dynamo, "trace_rules", None) or getattr(dynamo, "skipfiles", None)  # before 2.2
            if rules is not None:
                rules.add(__name__.partition(".")[0])
                self._kept_out = True

    def is_tracing(self) -> bool:
        return (
            torch._C._get_tracing_state() is not None
            or torch._C._functorch.peek_interpreter_stack() is not None
            or _tracing_context() is not None
            # Reading a value back would break the capture of a CUDA graph.
            or (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
        )

    def quiet(self) -> AbstractContextManager[Any]:
        return torch.no_grad()

    # -- process ---------------------------------------------------------------------------------------------------

    def group(self, group: Any) -> Any:
        return torch.distributed.group.WORLD if group is None else group

    def in_backward(self) -> bool:
        return torch._C._current_graph_task_id() != -1

    def rank(self) -> int | None:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
        return None


def _is_compiled(module: nn.Module) -> bool:
    if isinstance(module, torch.jit.ScriptModule) or getattr(module, "_compiled_call_impl", None) is not None:
        return True
    optimized = _optimized_module()
    return optimized is not None and isinstance(module, optimized)


def _optimized_module() -> Any:
    """The class of what torch.compile makes of a module; its package is imported only once something was compiled."""
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values as a plain dense tensor outside every graph; of a distributed tensor, this rank's part."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()
