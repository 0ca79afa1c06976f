"""Kernels of MindSpore: of dynamic graphs one by one, of compiled graphs by MindSpore's own kernel dump.

Those of dynamic graphs are shown by the dispatch mode (2.9 and later). The kernel dump is told which iteration the next
graph runs in, and whether that is recorded.
MindSpore reads ``MINDSPORE_DUMP_CONFIG`` once a process. Its private calls set the number of the iteration, which
otherwise counts graphs and not steps, and with which it is asked of every graph whether the configuration selects it.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import mindspore
from mindspore import _c_expression, nn
from mindspore.ops import Primitive

from msprobe_ms.frameworks.compiled_call import ExecutionMode
from msprobe_ms.frameworks.interface.kernels import OnKernel
from msprobe_ms.frameworks.mindspore.modes import execution_mode
from msprobe_ms.support.translation import tr, tr_list

_modes = getattr(_c_expression, "_DispatchGuardStack", None)

#: None where kernels can be seen.
NO_KERNELS = (
    None
    if hasattr(mindspore, "MsDispatchMode") and hasattr(mindspore.Tensor, "_nbytes") and _modes is not None
    else tr(
        "Level L2 records dynamic graphs from MindSpore 2.9 on, and this is {version}; use one of L0, L1, mix",
        version=mindspore.__version__,
    )
)


class Interception:
    """One dispatch mode, on the thread that made it; a script's own see what they always did."""

    def __init__(self, on_kernel: OnKernel) -> None:
        self._told = on_kernel
        #: None while no kernels are shown.
        self._on_kernel: OnKernel | None = None
        self._thread = threading.get_ident()
        self._depth = 0

    def install(self) -> None:
        """Show kernels; with a mode that had to stay, where there is one."""
        assert _modes is not None
        self._on_kernel = self._told
        if not self._stays():
            self._depth = _modes.depth() + 1
            _modes.push(_mode(self._kernel))

    def _kernel(self, operator: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None) -> Any:
        def launch() -> Any:
            return operator(*args, **kwargs) if kwargs else operator(*args)

        on_kernel = self._on_kernel
        return launch() if on_kernel is None else on_kernel(operator.name, _inputs(args), launch)  # type: ignore[attr-defined]

    def remove(self) -> None:
        """Show no kernels any more. Under a mode that the user entered later, this one stays, idle."""
        if self._on_kernel is None or _modes is None:
            return
        self._on_kernel = None
        if self._is_here() and _modes.depth() == self._depth:
            _modes.pop()
            self._depth = 0
        else:
            # Python must not exit with any mode: that is fatal.
            atexit.unregister(_modes.clear)
            atexit.register(_modes.clear)

    def revives(self, on_kernel: OnKernel) -> bool:
        """Whether there is a mode that had to stay; it shows kernels to ``on_kernel`` once it is put on again."""
        if self._stays():
            self._told = on_kernel
        return self._stays()

    def _stays(self) -> bool:
        return self._is_here() and _modes is not None and 0 < self._depth <= _modes.depth()

    def _is_here(self) -> bool:
        return self._thread == threading.get_ident()


def _mode(handle: Callable[..., Any]) -> Any:
    mode = _mode_class()()
    mode.handle = handle
    return mode


@cache
def _mode_class() -> type[Any]:
    class Mode(mindspore.MsDispatchMode):
        handle: Callable[..., Any]

        def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
            return self.handle(func, args, kwargs)

    return Mode


def _inputs(args: Sequence[Any]) -> Sequence[Any]:
    """What the kernel computes with; operators called as objects come as ``(operator, name, arguments)``."""
    if len(args) == 3 and isinstance(args[0], Primitive) and isinstance(args[2], tuple):
        return args[2]
    return args


#: Where MindSpore's compiler asks for the path of a Cell, from 2.9 on and before.
_PARSERS = ("mindspore.graph._parse", "mindspore._extends.parse")

#: All that MindSpore knows of the path of a Cell under ``recompute()`` before it is compiled.
_RECOMPUTED = "recompute_"


class CellPaths:
    """Gives Cells their paths while they are compiled.

    MindSpore does so itself where a graph begins with a Cell. Where it begins with a function, such as that of
    ``value_and_grad``, kernels would have no path, and nothing would tell which Cell they belong to.
    """

    def __init__(self) -> None:
        self._paths: WeakKeyDictionary[nn.Cell, str] = WeakKeyDictionary()
        self._parser: Any = None
        self._genuine: Callable[[Any], str | None] | None = None

    def give(self, models: Sequence[nn.Cell]) -> None:
        """The Cells below ``models`` have paths from here on, unless MindSpore gives them others."""
        for model in models:
            self._walk(model, "Default")
        if self._genuine is None:
            self._parser = _parser()
            self._genuine = genuine = self._parser.get_scope_name
            paths = self._paths

            def get_scope_name(obj: Any) -> str | None:
                known = genuine(obj)
                if known not in (None, _RECOMPUTED) or not isinstance(obj, nn.Cell) or obj not in paths:
                    return known
                return (known or "") + paths[obj]

            self._parser.get_scope_name = get_scope_name

    def _walk(self, cell: nn.Cell, path: str) -> None:
        """MindSpore's own names; a Cell met twice has the first."""
        named = bool(mindspore.get_context("reserve_class_name_in_scope"))
        children = {
            f"{path}/{name}" + (f"-{type(child).__name__}" if named else ""): child
            for name, child in cell.name_cells().items()
            if child not in self._paths
        }
        for place, child in children.items():
            self._paths.setdefault(child, place)
        for place, child in children.items():
            self._walk(child, place)

    def take_back(self) -> None:
        """The compiler is as it was."""
        if self._genuine is not None:
            self._parser.get_scope_name, self._genuine = self._genuine, None


def _parser() -> Any:
    for name in _PARSERS:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(
        tr("MindSpore {version} has none of {tools}", version=mindspore.__version__, tools=tr_list(_PARSERS))
    )


class _Read:
    """What MindSpore has read of the configuration of its kernel dump: it does so once a process."""

    document: dict[str, Any] | None = None


_read = _Read()


class MindSporeKernelDump:
    """Says to the framework when to dump kernels of compiled graphs."""

    version: str = mindspore.__version__

    def __init__(self) -> None:
        self.on_cpu: bool = mindspore.get_context("device_target") == "CPU"
        #: Graphs that a device runs as a whole count their iterations themselves.
        self._counts = self.on_cpu or execution_mode() is not ExecutionMode.GRAPH
        self._paths = CellPaths()

    def name_modules(self, models: Sequence[Any]) -> None:
        self._paths.give([model for model in models if isinstance(model, nn.Cell)])

    def close(self) -> None:
        self._paths.take_back()

    def read_configuration(self, nowhere: int) -> str | None:
        """Have the file read that the environment names, and record nothing; what MindSpore finds wrong with it.

        ``nowhere`` is an iteration that the file does not select.
        """
        if not self._counts:
            return None
        try:
            _c_expression._dump_set_dynamic()
            if _read.document is None:
                _read.document = json.loads(Path(os.environ["MINDSPORE_DUMP_CONFIG"]).read_bytes())
            _c_expression._set_init_iter(nowhere)
        except RuntimeError as error:
            return str(error).split("\n", 1)[0]
        return None

    @property
    def in_force(self) -> dict[str, Any] | None:
        return _read.document

    def record(self, iteration: int) -> None:
        """Kernels launched from here on belong to ``iteration``."""
        if self._counts:
            self.wait()
            _c_expression._set_init_iter(iteration)
            _c_expression._dump_start()

    def pause(self, nowhere: int) -> None:
        """All kernels launched so far are on disk; those launched from here on are not recorded."""
        try:
            self.wait()  # raises what failed in the script's own kernels
        finally:
            if self._counts:
                _c_expression._dump_stop()
                _c_expression._set_init_iter(nowhere)

    def wait(self) -> None:
        _c_expression.PyNativeExecutor_.get_instance().sync()
        # Not mindspore.runtime.synchronize: on CPU it logs an error, once, and does nothing that time.
        _c_expression.synchronize()
