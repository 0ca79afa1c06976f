"""PyTorch 2.x, eager mode, on CPU and CUDA."""

from __future__ import annotations

import logging
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from traceback import clear_frames
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import nn
from torch._guards import TracingContext

from msprobe_ms.arrays.bytes_writer import BytesWriter
from msprobe_ms.arrays.one_pass import Elements, Places, elements_at, is_built
from msprobe_ms.arrays.repetition import MOST_READ, Distinct, distinct
from msprobe_ms.arrays.statistics import checksum, statistics, summary, summary_of
from msprobe_ms.arrays.torch_writing import torch_writer
from msprobe_ms.dump.dialects import PYTORCH
from msprobe_ms.frameworks.compiled_call import CompilerCall
from msprobe_ms.frameworks.gradients.graph import ConsumerWatch, watch_outputs
from msprobe_ms.frameworks.interface.apis import Namespace
from msprobe_ms.frameworks.interface.gradients import InputWatch, OnGradients, OnInputGradients
from msprobe_ms.frameworks.kernel_dump import DeviceDump
from msprobe_ms.frameworks.pytorch import device_statistics, genuine, modes
from msprobe_ms.frameworks.pytorch.acl_dump import AclDump
from msprobe_ms.frameworks.pytorch.arrays import (
    KINDS,
    NUMBERS,
    PLACES,
    SAVED_AS,
    WIDER,
    as_array,
    as_bytes,
    dense,
    extent,
    in_own_storage,
    is_readable,
    strided,
)
from msprobe_ms.frameworks.pytorch.autograd import TensorHook, TorchGraph
from msprobe_ms.frameworks.pytorch.device_statistics import FiguresOfTensor
from msprobe_ms.frameworks.pytorch.genuine import COMMON
from msprobe_ms.frameworks.pytorch.repeating import TorchRepeater
from msprobe_ms.frameworks.repeating import Repeater
from msprobe_ms.frameworks.torch_modules import TorchModules
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import LogOnce
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.translation import tr

_FOLDER = os.path.dirname(os.path.abspath(torch.__file__))

#: Whether a tensor is the stand-in of a transform, such as vmap, which may have left it to others.
_is_transformed: Callable[[Any], bool] = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", lambda _: False)

#: A tensor of more tensors is not taken apart.
_MOST_COMPONENTS = 1000

#: What torch.compile works in, None outside of it.
_tracing_context: Callable[[], Any] = getattr(TracingContext, "try_get", TracingContext.get)


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
        self._say_once = LogOnce()
        self._graph = TorchGraph()

    # -- tensors ---------------------------------------------------------------------------------------------------

    def is_tensor(self, value: Any) -> bool:
        kind = type(value)  # `isinstance` asks a property of the user's as well
        return kind is torch.Tensor or issubclass(kind, torch.Tensor)

    plain = staticmethod(genuine.plain)
    tells_of_questions = staticmethod(modes.tells_of_questions)
    is_readable = staticmethod(is_readable)

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
        tensor = dense(tensor if plain else tensor.detach())
        if (wider := WIDER.get(tensor.dtype)) is not None:
            tensor = tensor.to(wider)
        return as_array(tensor) if tensor.is_cpu else tensor.cpu().numpy()

    def on_host(self, tensor: Any) -> Any:
        return tensor if tensor.device.type == "cpu" else strided(tensor).cpu()

    def copies(self, tensor: Any) -> bool:
        on_host = tensor.device.type == "cpu" and tensor.layout is torch.strided and tensor.is_contiguous()
        return not on_host or tensor.dtype in WIDER

    def in_parts(self, tensor: Any) -> Iterator[np.ndarray]:
        return super().in_parts(strided(tensor))

    def elements(self, tensor: Any) -> Elements | None:
        if type(tensor) not in COMMON or tensor.__dict__ or (kind := KINDS.get(tensor.dtype)) is None:
            return None
        if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_neg() or tensor.is_nested:
            return None
        try:
            storage = tensor.untyped_storage()
            begin, address = storage.data_ptr(), tensor.data_ptr()
        except RuntimeError as error:  # the stand-in of a transform
            if isinstance(error, RecursionError) or interrupts(error):
                raise
            return None
        if not begin:
            return None
        contiguous = tensor.is_contiguous()
        if address + (tensor.nbytes if contiguous else extent(tensor)) > begin + storage.nbytes():
            return None
        return elements_at(address, kind, tuple(tensor.shape), None if contiguous else tensor.stride())

    def places(self) -> Places | None:
        return PLACES

    def place(self, tensor: Any, array: np.ndarray) -> tuple[int, int]:
        if tensor.is_cpu and type(tensor) in COMMON and tensor.layout is torch.strided:
            return tensor.data_ptr(), array.nbytes  # asking numpy takes ten times longer
        return super().place(tensor, array)

    def dtype_text(self, tensor: Any) -> str:
        return str(tensor.dtype)

    def device_statistics(self, tensor: Any, *, sketch: bool, md5: bool) -> Any:
        if not device_statistics.is_on_device(tensor):
            return None
        plain = strided(tensor)
        if plain.dtype not in NUMBERS:  # reading it back would fail, and with it that of others
            return None
        return device_statistics.start(plain, WIDER.get(plain.dtype), sketch=sketch, md5=md5)

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
        return bool(genuine.requires_grad(tensor))

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
        alone = in_own_storage(strided(tensor))
        if (written := SAVED_AS.get(alone.dtype)) is not None:
            alone = alone.view(written)
        writer = torch_writer(str(alone.dtype).removeprefix("torch."), tuple(alone.shape))
        if writer is not None and alone.is_contiguous():
            return writer(file, as_bytes(alone))
        try:
            torch.save(alone, file)
        except BaseException as error:
            # PyTorch's writer ends the file as it is freed, once nothing holds the traceback: a closed file, by then.
            clear_frames(error.__traceback__)
            raise

    def file_writer(self, elements: Elements) -> BytesWriter | None:
        return torch_writer(elements.dtype.removeprefix("torch."), elements.shape)

    def detached(self, tensor: Any, array: np.ndarray) -> tuple[Any, np.ndarray | None]:
        return in_own_storage(strided(tensor), copy=True), None

    # -- gradients -------------------------------------------------------------------------------------------------

    def can_watch(self, tensor: Any, *, parameters: bool) -> bool:
        if not genuine.requires_grad(tensor) or not torch.is_grad_enabled() or _is_transformed(tensor):
            return False
        kind: Any = type(tensor)
        return kind in COMMON or genuine.takes_hooks(kind)

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
        return TensorHook(parameter, on_gradient) if watched else None

    def watch_gradient(self, tensor: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        return TensorHook(tensor, on_gradient)

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
                where = tr("the module {name}", name=name) if name else tr("the model")
                self._say_once(
                    logging.WARNING,
                    tr(
                        "{where} is compiled or scripted: its modules are not recorded; give the eager one", where=where
                    ),
                )
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

    def compiler_calls(self) -> Sequence[CompilerCall]:
        compilers = [CompilerCall(torch.jit, name) for name in ("script", "trace", "trace_module")]
        compilers += [CompilerCall(torch, "compile"), CompilerCall(torch.fx.Tracer, "trace")]
        if hasattr(torch, "export"):
            compilers.append(CompilerCall(torch.export, "export"))
        if (optimized := _optimized_module()) is not None:
            compilers.append(CompilerCall(optimized, "__call__"))
        converter = getattr(sys.modules.get("torch._dynamo.convert_frame"), "ConvertFrameAssert", None)
        if converter is not None:
            compilers.append(CompilerCall(converter, "__call__", _compiles_one_graph))
        # Printing a tensor computes with it.
        return [*compilers, CompilerCall(torch.Tensor, "__repr__")]

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


def _compiles_one_graph(converter: Any, *_: Any, **__: Any) -> bool:
    """Whether what is compiled may not be split (``fullgraph=True``): at a hook it would raise."""
    return bool(getattr(converter, "_one_graph", True))


def _optimized_module() -> Any:
    """The class of what torch.compile makes of a module; its package is imported only once something was compiled."""
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)
