"""Cells inside MindSpore's compiled graphs, on Ascend: operators in the graph that write files.

Nothing of Python runs in a graph there. TensorDump and DumpGradient write tensors below names that are fixed when the
graph is compiled; when a graph has run, what they wrote is read, told and removed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import mindspore
from mindspore import Tensor, ops
from mindspore.ops import constexpr
from mindspore.ops import functional as F

from msprobe_ms.frameworks.graph_observer import GraphObserver, Place, Tapped
from msprobe_ms.frameworks.mindspore import jit
from msprobe_ms.frameworks.mindspore.graphs.compilation import CompiledTaps, Parts, dtype_text, layout_of
from msprobe_ms.frameworks.mindspore.graphs.source import structures
from msprobe_ms.frameworks.mindspore.tensor_dump_files import PATIENCE, QUIET, FileEvents, wait_for_files
from msprobe_ms.frameworks.mindspore.tensor_dump_names import Compiled, Given, ParameterOf
from msprobe_ms.support.files import DEFAULT, Permissions
from msprobe_ms.support.patching import Patch

#: What TensorDump puts numbers in for.
_EXPANDED = ("{step}", "{rank}")


class TensorDumpTaps(CompiledTaps):
    """Taps that have files written, into a scratch folder that is there while a step is recorded."""

    #: Seconds of silence after which all files are there, and after which those that have to come are given up.
    quiet, patience = QUIET, PATIENCE

    def __init__(
        self,
        tapped: Tapped,
        folder: Path,
        operators: tuple[Any, Any] | None = None,
        permissions: Permissions = DEFAULT,
    ) -> None:
        """``folder`` is where the scratch folder is made.

        ``operators`` are ``dump(file, value)`` and ``dump_gradient(file, value, "out")``, which gives the value on;
        MindSpore's TensorDump and DumpGradient where none are given.
        """
        super().__init__(tapped)
        self._parent = folder
        self._permissions = permissions
        #: One for all steps: its name is in compiled graphs.
        self._scratch: Path | None = None
        self._compiled = Compiled()
        self._events: FileEvents | None = None
        self._operators = operators

    def _made_parts(self) -> Parts:
        # In a Cell that is computed again in backward: not written again.
        dump, dump_gradient = self._operators or (ops.TensorDump().recompute(False), ops.DumpGradient())
        return dumping_parts(self, self._tapped, dump, dump_gradient)

    def install(self, modules: Sequence[tuple[str, Any]], observer: GraphObserver) -> None:
        self._make_scratch()
        if self._events is None or observer is not self._observer:
            self._events = FileEvents(self._compiled, self._tapped)
        self._events.bases = [name for name, _ in modules]
        super().install(modules, observer)

    def _make_scratch(self) -> None:
        """Raises OSError."""
        if self._scratch is None:
            parent = self._parent.absolute()
            if any(text in str(parent) for text in _EXPANDED):
                parent = Path(tempfile.gettempdir())
            self._permissions.make_folder(parent)
            self._scratch = Path(tempfile.mkdtemp(prefix="tensor_dump.", dir=parent))
        self._scratch.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        super().remove()
        if self._scratch is not None and self._is_ours:
            with suppress(OSError):  # there may still be something in it
                self._scratch.rmdir()

    # -- runs of graphs: files do not say which one they are of ----------------------------------------------------

    def _made_patches(self) -> list[Patch]:
        runs = [Patch(holder, name, self._running) for holder, name in jit.graph_runs()]
        return [*super()._made_patches(), *runs]

    def _running(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self._finish_earlier()
            result = original(*args, **kwargs)
            self.wait()
            return result

        return run

    def _finish_earlier(self) -> None:
        # Gradients that are taken outside of graphs belong to earlier runs, and so does what a failed one has left.
        left = False
        with suppress(OSError):  # `wait` tells of it
            left = self._scratch is not None and any(self._scratch.iterdir())
        if left or (self._events is not None and self._events.lacks_gradients):
            self.wait()

    @property
    def _is_ours(self) -> bool:
        """Whether the files are this process's, and not those of the one that it was forked from."""
        return self._process.is_mine

    def wait(self) -> None:
        super().wait()
        observer, events = self._observer, self._events
        if observer is None or events is None or self._scratch is None or not self._is_ours:
            return
        if not len(self._compiled.given):
            return  # nothing was compiled that writes
        try:
            events.tell(wait_for_files(self._scratch, quiet=self.quiet, patience=self.patience), observer)
        except Exception as error:
            self._failed(error, "files of a graph")

    def forget(self) -> None:
        if self._observer is not None and self._events is not None:
            self._events.close(self._observer)
        super().forget()
        self._events = None
        if self._scratch is not None and self._is_ours:
            shutil.rmtree(self._scratch, ignore_errors=True)

    # -- called by the compiler: names of files --------------------------------------------------------------------

    def call(self, module: int, args: Any, kwargs: Any) -> int:
        return self._compiled.given.of(Given(module, layout_of(args), layout_of(kwargs)))

    def begin(self, call: int) -> str:
        return self._file(self._compiled.begin(call))

    def end(self, call: int, output: Any) -> str:
        return self._file(self._compiled.end(call, layout_of(output)))

    def tensor(self, call: int, field: str, path: tuple[Any, ...], is_gradient: bool, dtype: Any) -> str:
        place = Place(field, tuple(str(key) for key in path), is_gradient, dtype_text(dtype))
        return self._file(self._compiled.tensor(call, place))

    def parameter_gradient(self, module: int, name: str, dtype: Any) -> str:
        return self._file(self._compiled.parameter_gradient(ParameterOf(module, name, dtype_text(dtype))))

    def told_parameters(self, module: int, names: tuple[str, ...]) -> None:
        self._compiled.told_parameters[module] = names

    def _file(self, name: str) -> str:
        return f"{self._scratch}/{name}"


def dumping_parts(names: TensorDumpTaps, tapped: Tapped, dump: Any, dump_gradient: Any) -> Parts:
    """The source of graphs that write what ``tapped`` names; see `graphs.source` for how it is written."""
    values, gradients = tapped.values, tapped.gradients
    call_of = constexpr(lambda module, args, kwargs: names.call(module, args, kwargs))
    beginning = constexpr(lambda call: names.begin(call))
    ending = constexpr(lambda call, output: names.end(call, output))
    file_of = constexpr(lambda call, field, path, back, dtype: names.tensor(call, field, path, back, dtype))
    parameter_file = constexpr(lambda module, name, dtype: names.parameter_gradient(module, name, dtype))
    is_float = constexpr(lambda dtype: names.is_float(dtype))

    def is_empty(value: Any) -> bool:
        if F.isconstant(value.shape):
            return 0 in value.shape
        return False

    def watch_tensor(value: Any, call: Any, field: str, path: Any) -> Any:
        if is_empty(value):
            return value
        if values:
            dump(file_of(call, field, path, False, value.dtype), value)
        if gradients and is_float(value.dtype):
            return dump_gradient(file_of(call, field, path, True, value.dtype), value, "out")
        return value

    describe, watch = structures(watch_tensor)

    def nothing(call: Any) -> Any:
        return call

    def before(others: Any, name: str, parameter: Any) -> Any:
        def dump_parameter(call: Any) -> Any:
            dump(file_of(call, "parameters", (name,), False, parameter.dtype), parameter)
            return others(call)

        return dump_parameter

    def construct_of(original: Any, module: int, parameter_names: tuple[str, ...], parameters: tuple[Any, ...]) -> Any:
        names.told_parameters(module, parameter_names)
        dump_parameters = nothing
        for name, parameter in zip(reversed(parameter_names), reversed(parameters), strict=True):
            dump_parameters = before(dump_parameters, name, parameter)

        def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
            call = call_of(module, describe(args), describe(kwargs))
            dump(beginning(call), Tensor([0], mindspore.int32))
            args = watch(args, call, "input", ())
            kwargs = watch(kwargs, call, "kwargs", ())
            output = original(*args, **kwargs)
            output = watch(output, call, "output", ())
            dump_parameters(call)
            dump(ending(call, describe(output)), Tensor([0], mindspore.int32))
            return output

        return construct

    def hook_of(module: int, name: str, shape: tuple[int, ...]) -> Any:
        def hook(gradient: Any) -> Any:
            return ops.depend(gradient, dump(parameter_file(module, name, gradient.dtype), gradient))

        return hook

    return Parts(construct_of, hook_of)
