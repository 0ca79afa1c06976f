"""MindSpore 2.7 to 2.10."""

from __future__ import annotations

import os
import weakref
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, _c_expression, mint, nn, ops
from mindspore.communication import GlobalComm, comm_func, get_process_group_ranks, get_rank
from mindspore.ops import Primitive

from msprobe_ms.arrays.bytes_writer import BytesWriter
from msprobe_ms.arrays.npy import npy_writer, write_npy, write_npy_in_parts
from msprobe_ms.arrays.one_pass import Elements, Places
from msprobe_ms.dump.dialects import MINDSPORE
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.clean_copies import CleanCopies
from msprobe_ms.frameworks.compiled_call import CompiledCall, CompilerCall, ExecutionMode, GraphRun
from msprobe_ms.frameworks.gradients.graph import ConsumerWatch, observe_nodes, watch_outputs
from msprobe_ms.frameworks.graph_observer import GraphTaps, Tapped, UpdateTaps
from msprobe_ms.frameworks.interface.apis import Namespace
from msprobe_ms.frameworks.interface.gradients import InputWatch, OnGradients, OnInputGradients, OnRoots
from msprobe_ms.frameworks.interface.kernels import NodeObserver, OnKernel
from msprobe_ms.frameworks.interface.modules import After, Before, Failed
from msprobe_ms.frameworks.kernel_dump import KernelDumpControl
from msprobe_ms.frameworks.mindspore import arrays, cell_hooks, device_statistics, jit, kernels, modes
from msprobe_ms.frameworks.mindspore.arrays import in_parts, is_in_memory, to_numpy
from msprobe_ms.frameworks.mindspore.autograd import Hooked, MindSporeGraph, can_be_hooked, gradient_calls, has_graph
from msprobe_ms.frameworks.mindspore.graphs.callbacks import MindSporeTaps
from msprobe_ms.frameworks.mindspore.graphs.optimizer_taps import OptimizerTaps
from msprobe_ms.frameworks.mindspore.graphs.runs import GraphRuns
from msprobe_ms.frameworks.mindspore.optimizers import OptimizerWatch, parameters_of
from msprobe_ms.frameworks.mindspore.repeating import MindSporeRepeater
from msprobe_ms.frameworks.mindspore.tensor_dump import TensorDumpTaps
from msprobe_ms.frameworks.optimizers import AfterUpdates, BeforeUpdates
from msprobe_ms.frameworks.own_hooks import ModuleHook, OwnHook, Registered, telling
from msprobe_ms.frameworks.quiet import Quiet
from msprobe_ms.frameworks.repeating import Repeater
from msprobe_ms.support.files import DEFAULT, Permissions
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.translation import tr

_FLOATS = frozenset(
    getattr(mindspore, name)
    for name in ("float16", "float32", "float64", "bfloat16", "complex64", "complex128")
    if hasattr(mindspore, name)
)

_FOLDER = os.path.dirname(os.path.abspath(mindspore.__file__))

#: Results that CPU kernels never write: what they hold differs from run to run.
_SCRATCH_ON_CPU = {"BatchNorm": frozenset({1, 2}), "LSTM": frozenset({3, 4})}

#: The attribute in which a cell keeps what runs it again.
_RECOMPUTING = "_recompute_cell"

#: The number of the backward that runs on this thread, -1 for none; in newer releases.
_engine: Callable[[], int] | None = getattr(
    _c_expression.PyNativeExecutor_.get_instance(), "get_current_autodiff_engine_id", None
)


class MindSpore(Framework):
    """What the package needs to know of MindSpore."""

    dialect = MINDSPORE
    module_type = "mindspore.nn.Cell"
    api_lists: tuple[Path, ...] = (Path(__file__).with_name("apis.yaml"),)
    recomputing = tuple((f"{_FOLDER}/common/recompute.py", name) for name in ("bprop", "recompute"))
    #: The last is where it was before 2.9.
    machinery = tuple(
        f"{_FOLDER}/{part}"
        for part in ("nn/cell.py", "graph/_utils/check_jit_forbidden_api.py", "_check_jit_forbidden_api.py")
    )
    plumbing = tuple(f"{_FOLDER}/{part}" for part in ("_", "common/", "graph/", "mint/", "ops/", "parallel/"))

    how_to_be_dynamic = tr("dynamic graphs: mindspore.set_context(mode=mindspore.PYNATIVE_MODE)")

    def __init__(self) -> None:
        super().__init__()
        self._graph = MindSporeGraph() if has_graph() else None
        #: The latest, as long as its step holds it; where it could not be taken off, MindSpore does, and it
        #: goes on with the next.
        self._interception: Callable[[], kernels.Interception | None] = lambda: None
        self.watches_in_place = self._graph is not None
        self._copies = CleanCopies(nn.Cell, *cell_hooks.run_ours_last())
        self._on_device = False
        self._lockstep: modes.Lockstep | None = None

    def prepare(self) -> None:
        self._on_device = device_statistics.is_there()

    # -- tensors ---------------------------------------------------------------------------------------------------

    def is_tensor(self, value: Any) -> bool:
        kind = type(value)  # `isinstance` asks a property of the user's as well
        return kind is Tensor or issubclass(kind, Tensor)

    def is_readable(self, tensor: Any) -> bool:
        return self._on_device or is_in_memory(tensor)

    plain = staticmethod(arrays.plain)
    to_numpy = staticmethod(to_numpy)

    def elements(self, tensor: Any) -> Elements | None:
        return None if self._on_device else arrays.elements(tensor)

    def places(self) -> Places | None:
        return None if self._on_device else arrays.PLACES

    def copies(self, tensor: Any) -> bool:
        on_host = mindspore.get_context("device_target") == "CPU"
        return not on_host or not tensor.is_contiguous() or tensor.asnumpy().dtype.kind == "V"

    def in_parts(self, tensor: Any) -> Iterator[np.ndarray]:
        return in_parts(tensor)

    def place(self, tensor: Any, array: np.ndarray) -> tuple[int, int]:
        return tensor._data_ptr(), tensor._nbytes

    def dtype_text(self, tensor: Any) -> str:
        return str(tensor.dtype)

    def device_statistics(self, tensor: Any, *, sketch: bool, md5: bool) -> Any:
        return device_statistics.start(tensor, sketch=sketch) if self._on_device and not md5 else None

    def read_statistics(self, on_device: Sequence[Any]) -> Sequence[Sequence[Any]]:
        with self.unseen():
            return [(*found, None) for found in device_statistics.read(on_device)]

    def special_leaf(self, value: Any) -> dict[str, Any] | None:
        kind = type(value)
        if issubclass(kind, mindspore.common.dtype.Type):
            return {"type": "mindspore.dtype", "value": str(value)}
        if issubclass(kind, _Group):
            group_id = f"{zlib.crc32(str(value.ranks).encode()):08x}"
            return {"type": "mindspore.ProcessGroup", "group_ranks": value.ranks, "group_id": group_id}
        return None

    def save_tensor(self, tensor: Any, array: np.ndarray | None, file: BinaryIO) -> None:
        if array is None:
            write_npy_in_parts(file, tuple(tensor.shape), self.in_parts(tensor))
        else:
            write_npy(file, array)

    def file_writer(self, elements: Elements) -> BytesWriter | None:
        dtype = arrays.STORED_AS.get(elements.dtype)
        return None if dtype is None else npy_writer(dtype, elements.shape)

    # -- gradients -------------------------------------------------------------------------------------------------

    def can_watch(self, tensor: Any, *, parameters: bool) -> bool:
        if self.plain(tensor).dtype not in _FLOATS:
            return False
        if self._graph is not None:
            return self._takes_gradient(tensor) and tensor._grad_node is not None
        if tensor.dtype == mindspore.bfloat16 and mindspore.get_context("device_target") == "CPU":
            return False  # a gradient that does not come would be made up of zeros, which this dtype lacks there
        # Without the graph a watched parameter comes back as a plain Tensor; only functions take it as a value.
        return parameters or not isinstance(tensor, Parameter)

    def _takes_gradient(self, tensor: Any) -> bool:
        return tensor._requires_grad

    def watch_inputs(self, tensors: Sequence[Any], on_gradients: OnInputGradients, *, is_module: bool) -> InputWatch:
        if self._graph is None:
            return Hooked(tensors, on_gradients) if can_be_hooked() else InputWatch(tensors)
        return ConsumerWatch(self._graph, tensors, on_gradients, bounded=is_module)

    def watch_outputs(
        self, tensors: Sequence[Any], on_gradients: OnGradients, inputs: InputWatch | None
    ) -> Sequence[Any]:
        if self._graph is None:
            return Hooked(tensors, on_gradients).tensors if can_be_hooked() else tensors
        watch_outputs(self._graph, tensors, on_gradients, inputs if isinstance(inputs, ConsumerWatch) else None)
        return tensors

    def backward_ended(self, *, everywhere: bool = False) -> None:
        if self._graph is not None:
            self._graph.backward_ended(everywhere=everywhere)

    def leave_leaves(self) -> None:
        if self._graph is not None:
            self._graph.leave_leaves()

    def hook_parameter(self, parameter: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        return Registered((parameter.register_hook, telling(on_gradient))) if parameter.requires_grad else None

    def watch_gradient(self, tensor: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        if self._graph is not None and self._graph.edge(tensor) is not None:
            self._graph.hook_tensor(tensor, on_gradient)
            return None
        return Registered((tensor.register_hook, telling(on_gradient)))

    def gradient_calls(self, on_roots: OnRoots) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        return gradient_calls(on_roots)

    def watch_optimizers(self, before: BeforeUpdates, after: AfterUpdates) -> Hooks | None:
        return OptimizerWatch(before, after)

    def optimizer_taps(self) -> UpdateTaps | None:
        return OptimizerTaps() if mindspore.get_context("device_target") == "CPU" else None

    def optimizer_parameters(self, value: Any) -> Mapping[str, Any] | None:
        return parameters_of(value)

    # -- kernels ---------------------------------------------------------------------------------------------------

    no_kernels = kernels.NO_KERNELS

    def intercept_kernels(self, on_kernel: OnKernel) -> Hooks:
        interception = self._interception()
        if interception is None or not interception.revives(on_kernel):
            interception = kernels.Interception(on_kernel)
            self._interception = weakref.ref(interception)
        return interception

    def observe_nodes(
        self, tensors: Sequence[Any], known: set[Hashable], observer: Callable[[str], NodeObserver | None]
    ) -> None:
        if self._graph is not None:
            observe_nodes(self._graph, tensors, known, observer)

    def memory(self, tensor: Any) -> tuple[int, int]:
        # Not `data_ptr` and `nbytes`: providers of PyTorch's names replace them.
        return tensor._data_ptr(), tensor._nbytes

    # -- modules ---------------------------------------------------------------------------------------------------

    def is_module(self, value: Any) -> bool:
        return isinstance(value, nn.Cell)

    def layer_call(self) -> tuple[Any, str]:
        return nn.Cell, "__call__"

    def is_layer(self, module: Any) -> bool:
        return type(module).__module__.startswith("mindspore.nn.") and not module._cells

    def named_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        # What recompute() puts into a cell is MindSpore's own, and runs inside that cell's call.
        return ((name, cell) for name, cell in model.cells_and_names() if _RECOMPUTING not in name.split("."))

    def recorded_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        # What trains a network has the optimizer's parameters and a scale of the loss; a call of it is a whole step.
        found = super().recorded_modules(model)
        return ((name, cell) for name, cell in found if name or not isinstance(cell, nn.TrainOneStepCell))

    def parameters(self, module: Any) -> Iterable[tuple[str, Any]]:
        return [(name, parameter) for name, parameter in module._params.items() if parameter is not None]

    def hook_module(self, module: Any, before: Before, after: After, failed: Failed) -> Sequence[Hooks]:
        put_before = cell_hooks.first(module.register_forward_pre_hook)
        put_after = cell_hooks.first(module.register_forward_hook, **cell_hooks.ALWAYS)
        if module.has_bprop:
            # MindSpore refuses forward hooks on cells with their own bprop, though it would run them.
            put_after = partial(cell_hooks.ForwardHookEntry, module)
        return (
            self._copies.hold(),
            ModuleHook(OwnHook(module, cell_hooks.waiting(module, before, failed), failed), put_before),
            ModuleHook(OwnHook(module, cell_hooks.waiting(module, after, failed), failed), put_after),
        )

    def clean_copies(self) -> Hooks:
        return self._copies.hold()

    # -- APIs ------------------------------------------------------------------------------------------------------

    def namespaces(self) -> Sequence[Namespace]:
        found = [
            Namespace("mindspore.ops", "Functional", ops),
            Namespace("mindspore.ops.functional", "Functional", ops.functional),
            Namespace("mindspore.Tensor", "Tensor", Tensor),
            Namespace("mindspore.mint", "Mint", mint),
            Namespace("mindspore.mint.nn.functional", "MintFunctional", mint.nn.functional),
        ]
        if hasattr(mint, "distributed"):
            found.append(Namespace("mindspore.mint.distributed", "MintDistributed", mint.distributed, True))
        return [*found, Namespace("mindspore.communication.comm_func", "Distributed", comm_func, True)]

    finds_early_imports = True

    operators_left_out: Path | None = Path(__file__).with_name("primitives.yaml")

    def operator_classes(self) -> Iterable[type]:
        # There are two thousand, met again at each start: a level at a time takes half of the time.
        level, found = [Primitive], {Primitive}
        while level:
            below = set(chain.from_iterable(map(type.__subclasses__, level))) - found
            found |= below
            level = list(below)
        # Most do not go through Primitive.__call__.
        return [operator_class for operator_class in found if "__call__" in vars(operator_class)]

    def operator_name(self, operator: Any) -> str:
        # A plain Primitive, such as ops.typeof, is told by its own name.
        return str(operator.name) if type(operator) is Primitive else super().operator_name(operator)

    def operator_attributes(self, operator: Any) -> Mapping[str, Any]:
        attributes = vars(operator).get("init_attrs")
        return attributes if isinstance(attributes, dict) else {}

    def operators(self, module: Any) -> Iterable[tuple[str, Any]]:
        return module._primitives.items()

    def operator_group(self, operator: Any) -> Any:
        group = getattr(operator, "group", None)  # a convolution's is a number
        return self.group(group) if isinstance(group, str) else None

    def scratch_results(self, operator: str) -> frozenset[int]:
        scratch = _SCRATCH_ON_CPU.get(operator)
        return frozenset() if scratch is None or mindspore.get_context("device_target") != "CPU" else scratch

    def compiler_calls(self) -> Sequence[CompilerCall]:
        # Reached only when something is compiled, not when it runs again.
        executors = [getattr(_c_expression, name, None) for name in ("JitExecutor_", "GraphExecutor_")]
        return [CompilerCall(executor, "compile") for executor in executors if hasattr(executor, "compile")]

    def graph_calls(self) -> Sequence[tuple[Any, str]]:
        return jit.graph_calls()

    def describe_graph(self, executor: Any, args: Sequence[Any]) -> CompiledCall | None:
        call = jit.describe(executor, args)
        return call if call is None or call.group is None else replace(call, group=self.group(call.group))

    def watch_graph_runs(self, before: Callable[[GraphRun], None]) -> Hooks | None:
        return GraphRuns(before)

    def dynamic_instead(self) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        return jit.dynamic_instead()

    no_graph_taps = tr("modules inside compiled graphs are recorded on the CPU and on Ascend; use level L2")

    def graph_taps(self, tapped: Tapped, folder: Path, permissions: Permissions = DEFAULT) -> GraphTaps | None:
        target = mindspore.get_context("device_target")
        if target == "Ascend":
            return TensorDumpTaps(tapped, folder, permissions=permissions)
        return MindSporeTaps(tapped) if target == "CPU" else None

    how_to_uncompile = jit.HOW_TO_UNCOMPILE

    def lockstep(self) -> Hooks | None:
        # What could not be removed yet goes on, for the next recording to remove.
        if self._lockstep is None or not self._lockstep.holds:
            self._lockstep = modes.lockstep()
        return self._lockstep

    # Reading a tensor with asnumpy enters no graph.
    quiet = Quiet

    unseen = staticmethod(modes.unseen)

    def repeater(self) -> Repeater:
        return MindSporeRepeater()

    # -- process ---------------------------------------------------------------------------------------------------

    def in_backward(self) -> bool:
        return _engine is None or _engine() != -1

    def rank(self) -> int | None:
        if GlobalComm.INITED:
            return int(get_rank())
        launched = os.environ.get("RANK_ID", "")
        return int(launched) if launched.isdigit() and os.environ.get("MS_WORKER_NUM", "1") != "1" else None

    def group(self, group: Any) -> Any:
        if not GlobalComm.INITED or not isinstance(group, (str, type(None))):
            return group
        return _Group(list(get_process_group_ranks(group or GlobalComm.WORLD_COMM_GROUP)))

    def kernel_dump(self) -> KernelDumpControl:
        return kernels.MindSporeKernelDump()

    def execution_mode(self) -> ExecutionMode:
        return modes.execution_mode()

    def mode_text(self) -> str:
        return modes.mode_text()


class _Group:
    """A group of processes, which MindSpore knows by a name only."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks
