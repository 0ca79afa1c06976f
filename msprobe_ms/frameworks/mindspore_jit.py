"""``mindspore.jit`` in dynamic graphs: what runs as one graph, and how the rest is brought back to Python.

``capture_mode="ast"`` (PSJit) compiles the source: one graph, one call. ``"bytecode"`` (PIJit) and ``"trace"`` run the
Python function to capture it, so that without the capture it simply runs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from mindspore import nn

from msprobe_ms.frameworks.base import CompiledCall

HOW_TO_UNCOMPILE = "Set MS_JIT=0 in the environment to run and record it call by call"

#: Where MindSpore compiles functions of its own, optimizers above all.
_OWN = (
    "mindspore.amp",
    "mindspore.nn.optim.",
    "mindspore.nn.grad.",
    "mindspore.nn.wrap.",
    "mindspore.experimental.optim.",
    "mindspore.parallel.",
)


def _first(names: Sequence[str], attribute: str) -> Any:
    """The attribute of the first of these modules that has it; they move between versions."""
    for name in names:
        try:
            return getattr(importlib.import_module(name), attribute)
        except (ImportError, AttributeError):
            continue
    return None


def graph_calls() -> Sequence[tuple[Any, str]]:
    executor = _first(("mindspore.graph.api", "mindspore.common.api"), "_JitExecutor")
    return () if executor is None else [(executor, "__call__")]


def describe(executor: Any, args: Sequence[Any]) -> CompiledCall:
    """What a ``_JitExecutor`` runs."""
    function, owner = executor.fn, executor.obj
    if isinstance(owner, nn.DistributedGradReducer):
        # MindSpore's own, but what it does to gradients is what users ask for: one entry, with its group.
        leading = 1 if args and args[0] is owner else 0
        return CompiledCall(type(owner).__name__, leading, (), group=owner.allgather.group)
    frameworks_own = str(function.__module__).startswith(_OWN) or isinstance(owner, nn.Optimizer)
    is_cell = isinstance(owner, nn.Cell)
    name = type(owner).__name__ if is_cell and function.__name__ == "construct" else function.__name__
    leading = 1 if owner is not None and args and args[0] is owner else 0
    if frameworks_own:
        modules = []
    elif is_cell:
        modules = [(f"{below} ({type(cell).__name__})", cell) for below, cell in owner.cells_and_names() if below]
    else:
        modules = [(f"{below} ({type(cell).__name__})", cell) for below, cell in _cells_used(function)]
    return CompiledCall(name, leading, modules, frameworks_own)


def _cells_used(function: Any) -> Iterator[tuple[str, nn.Cell]]:
    """Cells that a function reaches by a name of its module or of a function around it."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        return
    code = function.__code__
    found = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name, value in found.items():
        if issubclass(type(value), nn.Cell) and not issubclass(type(value), nn.Optimizer):
            yield name, value


def dynamic_instead() -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
    replaced: list[tuple[Any, str, Callable[[Any], Any]]] = []
    capture = _first(("mindspore.graph._utils.pijit_context", "mindspore.common._pijit_context"), "PIJitCaptureContext")
    if capture is not None:
        replaced += [(capture, "__enter__", _do_nothing), (capture, "__exit__", _do_nothing)]
    for name in ("mindspore.graph.jit_trace", "mindspore.common.jit_trace"):
        # A traced function that finds a trace in progress runs as it is.
        if _first((name,), "jit_context") is not None:
            return [*replaced, (importlib.import_module(name), "jit_context", _always)]
    return replaced


def _do_nothing(_: Any) -> Callable[..., None]:
    def nothing(*_: Any) -> None:
        return None

    return nothing


def _always(_: Any) -> Callable[[], bool]:
    def always() -> bool:
        return True

    return always
