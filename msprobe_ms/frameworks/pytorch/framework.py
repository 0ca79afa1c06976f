"""PyTorch 2.x, eager mode, on CPU and CUDA."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import nn
from torch._guards import TracingContext

from msprobe_ms.arrays.one_pass import Elements, Kind, elements_at, is_built, kind_of
from msprobe_ms.arrays.repetition import MOST_READ, Distinct, distinct
from msprobe_ms.arrays.statistics import LARGE, checksum, statistics, summary, summary_of
from msprobe_ms.dump.dialects import PYTORCH
from msprobe_ms.frameworks.base import InputWatch, Namespace, OnGradients, OnInputGradients
from msprobe_ms.frameworks.gradient_graph import ConsumerWatch, watch_outputs
from msprobe_ms.frameworks.kernel_dump import DeviceDump
from msprobe_ms.frameworks.own_hooks import telling
from msprobe_ms.frameworks.pytorch import device_statistics, modes
from msprobe_ms.frameworks.pytorch.acl_dump import AclDump
from msprobe_ms.frameworks.pytorch.autograd import TensorHook, TorchGraph
from msprobe_ms.frameworks.pytorch.device_statistics import FiguresOfTensor
from msprobe_ms.frameworks.pytorch.repeating import TorchRepeater
from msprobe_ms.frameworks.repeating import Repeater
from msprobe_ms.frameworks.torch_modules import TorchModules
from msprobe_ms.support.log import logger
from msprobe_ms.support.patching import Hooks

_FOLDER = os.path.dirname(os.path.abspath(torch.__file__))

#: dtypes numpy has no twin of, and the wider one that holds their values exactly.
_WIDER: dict[torch.dtype, torch.dtype] = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64} | {
    dtype: torch.float32
    for name, dtype in vars(torch).items()
    if name.startswith("float8_") and isinstance(dtype, torch.dtype)
}

#: The dtypes that are read where they lie.
_KINDS: dict[torch.dtype, Kind] = {
    dtype: kind for dtype in vars(torch).values() if isinstance(dtype, torch.dtype) and (kind := kind_of(str(dtype)))
}

#: The dtypes of numbers; others, packed ones for instance, have no figures.
_NUMBERS = frozenset((*_KINDS, *_WIDER, torch.complex64, torch.complex128))

#: Whether a tensor is the stand-in of a transform, such as vmap, which may have left it to others.
_is_transformed: Callable[[Any], bool] = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", lambda _: False)

#: Classes of most tensors.
_COMMON = frozenset((torch.Tensor, nn.Parameter))

#: A tensor of more tensors is not taken apart.
_MOST_COMPONENTS = 1000

#: What torch.compile works in, None outside of it.
_tracing_context: Callable[[], Any] = getattr(TracingContext, "try_get", TracingContext.get)


def _is_readable(tensor: torch.Tensor) -> bool:
    """Whether the memory that a tensor names is its own: it may be freed, or that of a device that holds nothing."""
    # Asked of every tensor: no calls that find out what is so of few.
    try:
        storage = tensor.untyped_storage()
        if type(tensor) not in _COMMON and storage.device.type == "meta":
            return False  # one that is fake warns when it is asked for its address
        begin, address = storage.data_ptr(), tensor.data_ptr()
    except RecursionError:
        raise
    except RuntimeError:
        return _is_readable_in_parts(tensor)
    end = begin + storage.nbytes()
    if begin and address + tensor.nbytes <= end and tensor.is_contiguous():
        return not tensor.is_nested
    return not tensor.is_nested and (not tensor.numel() or bool(begin and address + _extent(tensor) <= end))


def _extent(tensor: torch.Tensor) -> int:
    """The bytes from a tensor's first element to the end of its last."""
    elements = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return elements * tensor.element_size()


def _is_readable_in_parts(tensor: torch.Tensor) -> bool:
    """The same of a tensor without a memory of its own: sparse or distributed, or else a stand-in of a transform."""
    if hasattr(tensor, "to_local"):
        return _is_readable(tensor.to_local())
    return tensor.layout is not torch.strided and not tensor.is_nested and all(map(_is_readable, _held(tensor)))


def _held(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """The tensors that a sparse one consists of."""
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return ()


class PyTorch(TorchModules):
    """What the package needs to know of PyTorch."""

    dialect = PYTORCH
    watches_in_place = True
    recomputing = tuple(
        (f"{_FOLDER}/utils/checkpoint.py", name) for name in ("backward", "unpack_hook", "recompute_fn")
    )

    tracers = (f"{_FOLDER}/_subclasses/fake_tensor.py",)

    def __init__(self) -> None:
        super().__init__(torch)
        self._kept_out = False
        self._graph = TorchGraph()

    # -- tensors ---------------------------------------------------------------------------------------------------

    def is_tensor(self, value: Any) -> bool:
        kind = type(value)  # `isinstance` asks a property of the user's as well
        return kind is torch.Tensor or issubclass(kind, torch.Tensor)

    is_readable = staticmethod(_is_readable)

    def components(self, tensor: Any) -> Sequence[Any] | None:
        return tensor.detach().unbind() if tensor.is_nested and tensor.size(0) <= _MOST_COMPONENTS else None

    def distinct(self, tensor: Any) -> Distinct:
        if hasattr(tensor, "to_local"):
            return Distinct(tensor)
        if tensor.layout is torch.strided:
            return distinct(tensor, tuple(tensor.shape), tensor.stride())._replace(compact=True)
        if tensor.numel() <= MOST_READ or tensor.layout is torch._mkldnn:
            return Distinct(tensor)
        values = (tensor.coalesce() if tensor.layout is torch.sparse_coo else tensor).values()
        return Distinct(values, zeros=tensor.numel() - values.numel())

    def to_numpy(self, tensor: Any) -> np.ndarray:
        plain = type(tensor) is torch.Tensor and not tensor.requires_grad
        tensor = _dense(tensor if plain else tensor.detach())
        if (wider := _WIDER.get(tensor.dtype)) is not None:
            tensor = tensor.to(wider)
        return _array(tensor) if tensor.is_cpu else tensor.cpu().numpy()

    def on_host(self, tensor: Any) -> Any:
        return tensor if tensor.device.type == "cpu" else _strided(tensor).cpu()

    def copies(self, tensor: Any) -> bool:
        on_host = tensor.device.type == "cpu" and tensor.layout is torch.strided and tensor.is_contiguous()
        return not on_host or tensor.dtype in _WIDER

    def in_parts(self, tensor: Any) -> Iterator[np.ndarray]:
        return super().in_parts(_strided(tensor))

    def elements(self, tensor: Any) -> Elements | None:
        if type(tensor) not in _COMMON or (kind := _KINDS.get(tensor.dtype)) is None:
            return None
        if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_neg():
            return None
        strides = None if tensor.is_contiguous() else tensor.stride()
        return elements_at(tensor.data_ptr(), kind, tuple(tensor.shape), strides)

    def place(self, tensor: Any, array: np.ndarray) -> tuple[int, int]:
        if tensor.is_cpu and type(tensor) in _COMMON and tensor.layout is torch.strided:
            return tensor.data_ptr(), array.nbytes  # asking numpy takes ten times longer
        return super().place(tensor, array)

    def dtype_text(self, tensor: Any) -> str:
        return str(tensor.dtype)

    def device_statistics(self, tensor: Any, *, sketch: bool, md5: bool) -> Any:
        if not device_statistics.is_on_device(tensor):
            return None
        plain = _strided(tensor)
        if plain.dtype not in _NUMBERS:  # reading it back would fail, and with it that of others
            return None
        return device_statistics.start(plain, _WIDER.get(plain.dtype), sketch=sketch, md5=md5)

    def read_statistics(self, on_device: Sequence[Any]) -> Sequence[Sequence[Any]]:
        with self.unseen(), self.quiet():
            return device_statistics.read(on_device, self._figures)

    def _figures(self, tensor: torch.Tensor, sketch: bool, md5: bool) -> FiguresOfTensor:
        """Statistics of a small tensor on the host, its sketch and its checksum where asked for."""
        crc = checksum(self.to_numpy(tensor)) if md5 else None
        if is_built() and (elements := self.elements(tensor)) is not None:
            return *summary_of(elements, sketch=sketch), crc
        array = self.to_numpy(tensor)
        return *(summary(array) if sketch else (statistics(array), None)), crc

    def requires_grad(self, tensor: Any) -> bool | None:
        return bool(tensor.requires_grad)

    def special_leaf(self, value: Any) -> dict[str, Any] | None:
        if (leaf := super().special_leaf(value)) is not None:
            return leaf
        kind = type(value)
        if issubclass(kind, torch.memory_format):
            return {"type": "torch.memory_format", "format": str(value).removeprefix("torch.")}
        if torch.distributed.is_available() and issubclass(kind, torch.distributed.ProcessGroup):
            ranks = torch.distributed.get_process_group_ranks(value)
            group_id = f"{zlib.crc32(str(ranks).encode()):08x}"
            return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": group_id}
        return None

    def save_tensor(self, tensor: Any, array: np.ndarray | None, file: BinaryIO) -> None:
        # A file holds a tensor's whole storage: of a view, only the part that is the view.
        torch.save(_alone(_strided(tensor)), file)

    def detached(self, tensor: Any, array: np.ndarray) -> tuple[Any, np.ndarray | None]:
        return _alone(_strided(tensor), copy=True), None

    # -- gradients -------------------------------------------------------------------------------------------------

    def can_watch(self, tensor: Any, *, parameters: bool) -> bool:
        return bool(tensor.requires_grad) and torch.is_grad_enabled() and not _is_transformed(tensor)

    def watch_inputs(self, tensors: Sequence[Any], on_gradients: OnInputGradients, *, is_module: bool) -> InputWatch:
        return ConsumerWatch(self._graph, tensors, on_gradients, bounded=is_module)

    def watch_outputs(
        self, tensors: Sequence[Any], on_gradients: OnGradients, inputs: InputWatch | None
    ) -> Sequence[Any]:
        watch_outputs(self._graph, tensors, on_gradients, inputs if isinstance(inputs, ConsumerWatch) else None)
        return tensors

    def leave_leaves(self) -> None:
        self._graph.leave_leaves()

    def hook_parameter(self, parameter: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        with self.unseen():
            watched = parameter.requires_grad and not nn.parameter.is_lazy(parameter)
        # On a leaf this fires once a backward, with the sum of what that backward adds to `.grad`.
        return TensorHook(parameter, telling(on_gradient)) if watched else None

    def watch_gradient(self, tensor: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        return TensorHook(tensor, telling(on_gradient))

    # -- kernels (level L2) ----------------------------------------------------------------------------------------

    def device_dump(self, configuration: Path | None) -> DeviceDump:
        return AclDump(configuration)

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

    def direct(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return modes.direct(function)

    def beside_wrappers(self) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        return modes.beside_wrappers()

    def compiler_calls(self) -> Sequence[tuple[Any, str]]:
        compilers: list[tuple[Any, str]] = [(torch.jit, name) for name in ("script", "trace", "trace_module")]
        if (optimized := _optimized_module()) is not None:
            compilers.append((optimized, "__call__"))
        # Printing a tensor computes with it.
        return [*compilers, (torch.fx.Tracer, "trace"), (torch.Tensor, "__repr__")]

    def prepare(self) -> None:
        """Keep torch.compile out of this package: a function it compiles while recording, it splits at our hooks.

        And have PyTorch know its functions before they are wrapped.
        """
        modes.fill_tables()
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
            or modes.is_fake()
            # Reading a value back would break the capture of a CUDA graph.
            or (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
        )

    quiet = modes.Quiet

    unseen = staticmethod(modes.unseen)

    def repeater(self) -> Repeater:
        return TorchRepeater()

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


def _alone(tensor: torch.Tensor, *, copy: bool = False) -> torch.Tensor:
    """A tensor on the host in a storage of its own; what a large one only shows once more is not copied."""
    shown = tensor.shape
    known = distinct(tensor, tuple(shown), tensor.stride(), LARGE).elements
    tensor = tensor if known is None else known
    on_host = tensor.cpu()
    alone = on_host.is_contiguous() and on_host.untyped_storage().nbytes() == on_host.nbytes
    if not alone or (copy and on_host is tensor):
        on_host = on_host.clone(memory_format=torch.contiguous_format)
    return on_host.expand(shown)


def _array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's own memory as an array, to read.

    ``Tensor.numpy`` would forbid for good that the memory is resized or freed, as FSDP does with it.
    """
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError):  # dtypes that some releases do not hand out in this way
        return tensor.clone().numpy()


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values as a plain dense tensor outside every graph; of a distributed tensor, this rank's part."""
    return _dense(tensor.detach())


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    if type(tensor) is not torch.Tensor and hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg() if tensor.is_conj() or tensor.is_neg() else tensor
