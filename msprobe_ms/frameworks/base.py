"""The one seam to a framework: what a tensor is, how to read it, how calls and gradients are observed.

Everything else in the package works through this interface; only the modules beside this one import a framework.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from msprobe_ms.arrays.one_pass import Elements
from msprobe_ms.arrays.repetition import Distinct, distinct
from msprobe_ms.arrays.statistics import parts
from msprobe_ms.dump.dialects import Dialect
from msprobe_ms.frameworks.compiled_call import CompiledCall, CompilerCall, ExecutionMode, GraphRun
from msprobe_ms.frameworks.graph_observer import GraphTaps, Tapped, UpdateTaps
from msprobe_ms.frameworks.kernel_dump import DeviceDump, KernelDumpControl
from msprobe_ms.frameworks.optimizers import AfterUpdates, BeforeUpdates
from msprobe_ms.frameworks.quiet import Quiet
from msprobe_ms.frameworks.repeating import Repeater
from msprobe_ms.support.files import DEFAULT, Permissions
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.translation import tr

#: Is told of an exception that comes no further.
Failed = Callable[[Exception], None]
#: Receives the gradients of watched tensors, in their order; None where no gradient reached one. Or why there are none.
OnGradients = Callable[[Sequence[Any] | Exception], None]
#: The same; told None beforehand whenever a part of them has come, where they come in parts.
OnInputGradients = Callable[[Sequence[Any] | Exception | None], None]
#: Is told the tensors that gradients are about to be computed of.
OnRoots = Callable[[Sequence[Any] | Exception], None]


#: ``before(args, kwargs) -> (args, kwargs)`` and ``after(args, kwargs, output) -> output`` of one module call.
Before = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]
After = Callable[[tuple[Any, ...], dict[str, Any], Any], Any]


@dataclass(frozen=True, slots=True)
class Namespace:
    """A module or class whose callables can be wrapped.

    ``path``         dotted name users write, ``mindspore.ops``
    ``prefix``       what entries start with, ``Functional``
    ``holder``       the object whose attributes are replaced
    ``communicates`` whether its functions exchange tensors with other processes
    """

    path: str
    prefix: str
    holder: Any
    communicates: bool = False


#: ``on_kernel(name, inputs, launch)`` launches one kernel and gives its results back.
OnKernel = Callable[[str, Sequence[Any], Callable[[], Any]], Any]


class NodeObserver(Protocol):
    """Told of one node of the gradient graph while backward runs through it."""

    def begins(self, grad_outputs: Sequence[Any]) -> None: ...

    def ends(self, grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
        """``grad_outputs`` came in and ``grad_inputs`` are what the node made of them; None where there is none."""


class InputWatch:
    """Tensors watched during one call."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        #: What to hand to the call, in the order of the tensors to watch.
        self.tensors = tensors

    def settle(self, outputs: Sequence[Any]) -> None:
        """The call is over: ``outputs`` are the tensors it returned, none when it raised."""


class Framework(ABC):
    """What the rest of the package needs to know of one framework."""

    #: How its dumps are spelled: its name, the prefix of modules, the type of tensors and the suffix of their files.
    dialect: Dialect
    #: What a user calls a network of this framework, in messages.
    module_type: str
    #: The package's own API lists.
    api_lists: tuple[Path, ...]
    #: Whether calls under watch get the caller's own tensors, so that APIs which write in place can be watched too.
    watches_in_place: bool = False

    # -- tensors ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def is_tensor(self, value: Any) -> bool: ...

    @abstractmethod
    def to_numpy(self, tensor: Any) -> np.ndarray:
        """Return the values on the host, in the tensor's shape; bfloat16 as float32. May alias the tensor's memory."""

    def plain(self, tensor: Any) -> Any:
        """Return the tensor as one whose methods are the framework's own; itself where they are."""
        return tensor

    def is_readable(self, tensor: Any) -> bool:
        """Whether the elements of a tensor are there, in memory of its own; no other may be read."""
        return True

    def components(self, tensor: Any) -> Sequence[Any] | None:
        """Return the tensors that a tensor which is not readable consists of; None for most."""
        return None

    def distinct(self, tensor: Any) -> Distinct:
        """Return what a large tensor that is readable holds; it may show more."""
        return distinct(tensor, tuple(tensor.shape), tensor.stride())

    def on_host(self, tensor: Any) -> Any:
        """Return a tensor with the same elements that is read without waiting for a device; the tensor itself where it
        is one."""
        return tensor

    def copies(self, tensor: Any) -> bool:
        """Whether statistics of the whole tensor would need a copy of it."""
        return True

    def in_parts(self, tensor: Any) -> Iterator[np.ndarray]:
        """Yield what ``to_numpy`` gives in parts, in the order of elements, so that no copy of the whole is held."""
        for index in parts(tuple(tensor.shape)):
            yield self.to_numpy(tensor[index])

    def elements(self, tensor: Any) -> Elements | None:
        """Return where the elements of a tensor lie that can be read there as they are, once they are computed.

        None for others, which are looked at closer: those without memory of their own, of users' classes, on devices,
        and what is read in parts. Asked for only where `one_pass` is built.
        """
        return None

    def place(self, tensor: Any, array: np.ndarray) -> tuple[int, int]:
        """Return address and bytes of the memory that holds the tensor; ``array`` is ``to_numpy(tensor)``."""
        return array.__array_interface__["data"][0], array.nbytes

    @abstractmethod
    def dtype_text(self, tensor: Any) -> str: ...

    def device_statistics(self, tensor: Any, *, sketch: bool, md5: bool) -> Any:
        """Max, Min, Mean, Norm, and sketch and checksum where asked for, or what they are computed of, left on the
        device that holds the tensor; the host does not wait. None to have numpy do it on the host."""
        return None

    def read_statistics(self, on_device: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Read Max, Min, Mean, Norm, text of the sketch and checksum of what ``device_statistics`` left, several
        tensors at once."""
        raise NotImplementedError

    def requires_grad(self, tensor: Any) -> bool | None:
        """Return what the leaf says of ``requires_grad``; None leaves the key out."""
        return None

    def special_leaf(self, value: Any) -> dict[str, Any] | None:
        """Return the leaf of a framework's own non-tensor value (dtype, size, process group), or None."""
        return None

    @abstractmethod
    def save_tensor(self, tensor: Any, array: np.ndarray | None, file: BinaryIO) -> None:
        """Write one tensor in the framework's file format; ``array`` is ``to_numpy(tensor)`` if already read."""

    def detached(self, tensor: Any, array: np.ndarray) -> tuple[Any, np.ndarray | None]:
        """Return both arguments of ``save_tensor``, so that nothing done to ``tensor`` later shows in the file."""
        return None, array.copy()

    # -- gradients -------------------------------------------------------------------------------------------------

    @abstractmethod
    def can_watch(self, tensor: Any, *, parameters: bool) -> bool:
        """Whether a gradient may flow through this tensor and it can be watched without harm."""

    @abstractmethod
    def watch_inputs(self, tensors: Sequence[Any], on_gradients: OnInputGradients, *, is_module: bool) -> InputWatch:
        """Watch the arguments of a call for the gradients that this call alone sends them.

        What is handed to the call instead is equal to the arguments and shares their memory.
        """

    @abstractmethod
    def watch_outputs(
        self, tensors: Sequence[Any], on_gradients: OnGradients, inputs: InputWatch | None
    ) -> Sequence[Any]:
        """Watch a call's results for the gradients that reach them; return what to hand on instead, often the same.

        ``inputs`` is the watch on the same call's arguments, if there was anything to watch.
        May report more than once, each time with all gradients that have come by then.
        """

    def backward_ended(self, *, everywhere: bool = False) -> None:
        """Report what watches still wait for: no gradient is on its way any more, on this thread or on any."""
        return None

    def leave_leaves(self) -> None:
        """Take off the hooks of watches that stay with the script's tensors beyond the gradient graph."""
        return None

    @abstractmethod
    def hook_parameter(self, parameter: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        """Return what reports the parameter's accumulated gradient; None for one that has none."""

    @abstractmethod
    def watch_gradient(self, tensor: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        """Return what reports the whole gradient of a tensor that ``can_watch``; None where the graph alone has it."""

    def gradient_calls(self, on_roots: OnRoots) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        """Return ``(holder, attribute, wrap)`` of what computes gradients; wrapped, it tells of what, after forward."""
        return ()

    def watch_optimizers(self, before: BeforeUpdates, after: AfterUpdates) -> Hooks | None:
        """Return what calls ``before`` and ``after`` around each call of an optimizer; None where that cannot be."""
        return None

    def optimizer_taps(self) -> UpdateTaps | None:
        """Return what observes optimizers inside compiled graphs; None where nothing can."""
        return None

    def optimizer_parameters(self, value: Any) -> Mapping[str, Any] | None:
        """Return an optimizer's parameters by name, without any where it has no names; None of what is no optimizer."""
        return None

    def main_gradient(self, parameter: Any) -> Any:
        """Return the gradient that a parameter keeps beside its own, for an optimizer of copies; None without one."""
        return None

    # -- kernels (level L2) ----------------------------------------------------------------------------------------

    #: Why single kernels cannot be recorded here, a sentence; None where they can.
    no_kernels: str | None = tr("Level L2 records kernels of MindSpore 2.9 and later; use one of L0, L1, mix")

    def device_dump(self, configuration: Path | None) -> DeviceDump | None:
        """Return the dump of a device that shows no kernel one by one; None where `intercept_kernels` has them.

        Raises UsageError where there is no such device, and for a ``configuration`` that it does not take.
        """
        return None

    def intercept_kernels(self, on_kernel: OnKernel) -> Hooks:
        """Return what brings every kernel that this thread launches to ``on_kernel``. Only without `no_kernels`."""
        raise NotImplementedError

    def observe_nodes(
        self, tensors: Sequence[Any], known: set[Hashable], observer: Callable[[str], NodeObserver | None]
    ) -> None:
        """Have the nodes behind ``tensors`` observed that are not ``known`` yet, and add them there.

        ``observer`` gives of a node's name (``BiasAdd``) who is told of it; None leaves it alone.
        """
        raise NotImplementedError

    def memory(self, tensor: Any) -> tuple[int, int]:
        """Return the address of the tensor's first element and the number of bytes of its elements."""
        raise NotImplementedError

    def kernel_dump(self) -> KernelDumpControl:
        """Return the framework's own kernel dump. Only where `execution_mode` may be another than PYNATIVE."""
        raise NotImplementedError

    # -- modules ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def is_module(self, value: Any) -> bool: ...

    @abstractmethod
    def layer_call(self) -> tuple[Any, str]:
        """Return the class of all modules, and the name of the method through which each is called."""

    @abstractmethod
    def is_layer(self, module: Any) -> bool:
        """Whether this is a module of the framework's own with no modules inside."""

    @abstractmethod
    def named_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        """Yield dotted name and module of every module below ``model`` (and ``model`` itself, named ""), each once."""

    @abstractmethod
    def parameters(self, module: Any) -> Iterable[tuple[str, Any]]:
        """Return the module's own parameters, not its children's."""

    def recorded_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        """Return dotted name and module of those that have entries: every module below ``model``, each once.

        And ``model`` itself, named "", where it holds a parameter that none of them does, such as a ``cls_token``.
        """
        modules = list(self.named_modules(model))
        own = {id(parameter) for name, module in modules if not name for _, parameter in self.parameters(module)}
        if own:
            own -= {id(parameter) for name, module in modules if name for _, parameter in self.parameters(module)}
        return ((name, module) for name, module in modules if name or own)

    @abstractmethod
    def hook_module(self, module: Any, before: Before, after: After, failed: Failed) -> Sequence[Hooks]:
        """Return what calls ``before`` and ``after`` around each call; ``after`` too when it raises, where it can.

        ``failed`` is told of what they raise, which goes no further.
        """

    def clean_copies(self) -> Hooks | None:
        """Return what has deep copies and pickles of modules hold genuine functions where these hold wrappers."""
        return None

    # -- APIs ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def namespaces(self) -> Sequence[Namespace]:
        """Return the namespaces the package's own API list may name."""

    def direct(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what calls a function in whose place a wrapper stands, and tells nobody of the wrapper."""
        return function

    def beside_wrappers(self) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        """Return ``(holder, attribute, wrap)`` of what is replaced together with APIs, for the same purpose."""
        return ()

    #: Whether functions that user code holds since before `start` are wrapped where it holds them. PyTorch's compiler
    #: watches the globals of what it compiled, and would compile again.
    finds_early_imports: bool = False

    #: File of the operator classes that are not recorded; None where a framework has no operator objects.
    operators_left_out: Path | None = None

    def operator_classes(self) -> Iterable[type]:
        """Classes of operator objects (MindSpore's primitives) that have a ``__call__`` of their own."""
        return ()

    def operator_name(self, operator: Any) -> str:
        """What an operator object is, ``MatMul``; its class, as a rule."""
        return type(operator).__name__

    def operator_attributes(self, operator: Any) -> Mapping[str, Any]:
        """What an operator object was made with, by the names of its constructor's arguments."""
        return {}

    def operators(self, module: Any) -> Iterable[tuple[str, Any]]:
        """Attribute and operator object of those that the module itself holds."""
        return ()

    def operator_group(self, operator: Any) -> Any:
        """The processes this operator exchanges tensors with, as a value that ``special_leaf`` knows; None for most."""
        return None

    def scratch_results(self, operator: str) -> frozenset[int]:
        """Positions of those results of this operator that hold no values, only memory its backward may use."""
        return frozenset()

    def compiler_calls(self) -> Sequence[CompilerCall]:
        """Calls that compile user code: module namespaces must be genuine inside them.

        There may be more once one of them was made, where the framework imports its compiler only then.
        """
        return ()

    def graph_calls(self) -> Sequence[tuple[Any, str]]:
        """Return ``(class, attribute)`` of methods that run user code as one compiled graph."""
        return ()

    def describe_graph(self, executor: Any, args: Sequence[Any]) -> CompiledCall | None:
        """Describe what ``executor`` runs when called with ``args``; None where that is no call of a graph."""
        return None

    def watch_graph_runs(self, before: Callable[[GraphRun], None]) -> Hooks | None:
        """Return what tells ``before`` of each compiled graph that the script runs; None where there are no such."""
        return None

    def dynamic_instead(self) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        """Return ``(holder, attribute, wrap)`` of replacements under which compiled code runs as plain Python again."""
        return ()

    #: Why modules inside compiled graphs cannot be recorded here, a sentence; meaningful where `graph_taps` gives None.
    no_graph_taps: str = tr("modules inside compiled graphs are not recorded here")

    def graph_taps(self, tapped: Tapped, folder: Path, permissions: Permissions = DEFAULT) -> GraphTaps | None:
        """What observes modules inside compiled graphs, files of its own below ``folder``, which is made with these
        ``permissions``; None where nothing can."""
        return None

    #: What a user may do to see inside a compiled graph, a sentence.
    how_to_uncompile: str = ""

    def prepare(self) -> None:
        """Called at every start, before anything is put in place."""
        return None

    def lockstep(self) -> Hooks | None:
        """Return what keeps the framework in lockstep with Python: recorded calls wait for their tensors one by one.

        Its ``remove`` may be called repeatedly, until the framework could run ahead again. None where there is nothing
        to do.
        """
        return None

    def is_tracing(self) -> bool:
        """Whether calls made on this thread now are a tracer's or a transform's, on stand-ins that hold no values."""
        return False

    @abstractmethod
    def quiet(self) -> Quiet:
        """Return a context, to be used inside of `unseen`, for what the tool computes: it enters no gradient graph.

        It is made before `unseen` begins.
        """

    #: Gives a context for what the tool does with tensors: users' modes and classes are not told of it.
    unseen: Callable[[], AbstractContextManager[Any]] = nullcontext

    def repeater(self) -> Repeater:
        """Return what makes calls once more with other arguments (task free_benchmark)."""
        raise NotImplementedError

    # -- process ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def rank(self) -> int | None:
        """Return this process's rank, None when it is not part of a distributed job."""

    def group(self, group: Any) -> Any:
        """The process group meant by an argument ``group``, as a value that ``special_leaf`` knows."""
        return group

    def execution_mode(self) -> ExecutionMode:
        """Return how this process runs what it calls from here on."""
        return ExecutionMode.PYNATIVE

    def mode_text(self) -> str:
        """Say what runs in the present execution mode, for the user."""
        return tr("dynamic graphs")

    #: How a user comes back to dynamic graphs, in the imperative after "use".
    how_to_be_dynamic: str = ""

    def in_backward(self) -> bool:
        """Whether this thread runs a backward now; True where a framework cannot tell."""
        return True

    #: ``(path fragment, function name)`` of the functions that run forward again in backward.
    recomputing: tuple[tuple[str, str], ...] = ()
    #: Path fragments of the source files a module call runs through between the user's code and the hooks.
    machinery: tuple[str, ...] = ()
    #: Path fragments of framework source files in which operations are tried on stand-ins, without `is_tracing`.
    tracers: tuple[str, ...] = ()
    #: Path fragments of framework source files whose frames mean nothing to a user.
    plumbing: tuple[str, ...] = ()
