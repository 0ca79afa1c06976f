"""``mindspore.jit`` in dynamic graphs: what runs as one graph, and how the rest is brought back to Python.

``capture_mode="ast"`` (PSJit) compiles the source: one graph, one call. ``"bytecode"`` (PIJit) and ``"trace"`` run the
Python function to capture it, so that without the capture it simply runs.
"""

from __future__ import annotations

import dis
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from mindspore import nn

from msprobe_ms.frameworks.compiled_call import CompiledCall
from msprobe_ms.support.translation import tr

HOW_TO_UNCOMPILE = tr("Set MS_JIT=0 in the environment to run and record it call by call")

#: Where MindSpore compiles functions of its own, optimizers above all.
_OWN = (
    "mindspore.amp",
    "mindspore.nn.optim.",
    "mindspore.nn.grad.",
    "mindspore.nn.wrap.",
    "mindspore.experimental.optim.",
    "mindspore.parallel.",
)

#: What may lead to a cell.
_FOLLOWED = (nn.Cell, FunctionType, MethodType, partial, list, tuple, dict)

#: A method whose code names one of these may reach every part of its object.
_READS_ANY_ATTRIBUTE = {
    "getattr", "vars", "__dict__", "__getattr__", "_cells", "cells", "cells_and_names", "name_cells", "construct",
    "super",
}  # fmt: skip

#: Operations of Python's code that name globals and attributes; some of them in some versions only.
_NAMING = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD")

#: Values followed from a compiled function to the cells it calls.
_MOST_VALUES = 1000


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


def graph_runs() -> Sequence[tuple[Any, str]]:
    """``(class, method)`` through which graphs that are compiled already are run: functions', and whole cells'."""
    names = ("mindspore.graph.api", "mindspore.common.api")
    runs = [(_first(names, "_PyNativeExecutor"), "grad_jit"), (_first(names, "_CellGraphExecutor"), "run")]
    return [(holder, name) for holder, name in runs if hasattr(holder, name)]


def describe(executor: Any, args: Sequence[Any]) -> CompiledCall:
    """What a ``_JitExecutor`` runs."""
    function, owner = executor.fn, executor.obj
    leading = 1 if owner is not None and args and args[0] is owner else 0
    if isinstance(owner, nn.DistributedGradReducer):
        # MindSpore's own, but what it does to gradients is what users ask for: one entry, with its group.
        return CompiledCall(type(owner).__name__, leading, function, tuple, group=owner.allgather.group)
    is_cell = isinstance(owner, nn.Cell) and function.__name__ == "construct"
    # MindSpore decorates its own methods; a cell of its own that the user compiles has a plain one.
    by_user = is_cell and type(owner).construct is getattr(function, "__func__", function)
    own = isinstance(owner, nn.Optimizer) or (str(function.__module__).startswith(_OWN) and not by_user)
    name = type(owner).__name__ if is_cell else function.__name__
    return CompiledCall(name, leading, function, partial(_cells_inside, function, owner), frameworks_own=own)


def _cells_inside(function: Any, owner: Any) -> Sequence[tuple[str, nn.Cell]]:
    """Cells that ``function`` reaches by name, with the cells below them; all of a cell whose ``construct`` it is."""
    found: dict[int, tuple[str, nn.Cell]] = {}
    if isinstance(owner, nn.Cell) and function.__name__ != "construct":
        function = MethodType(getattr(function, "__func__", function), owner)
    elif isinstance(owner, nn.Cell):
        for name, cell in _below("", owner):
            found.setdefault(id(cell), (name, cell))
    for head, cell in _cells_used(function, owner):
        for name, each in (("", cell), *_below(head, cell)):
            found.setdefault(id(each), (name or f"{head} ({type(cell).__name__})", each))
    found.pop(id(owner), None)
    return list(found.values())


def _below(head: str, cell: nn.Cell) -> Iterator[tuple[str, nn.Cell]]:
    for name, each in cell.cells_and_names():
        if name and not isinstance(each, nn.Optimizer):
            yield f"{head}.{name} ({type(each).__name__})".lstrip("."), each


def _cells_used(function: Any, owner: Any) -> Iterator[tuple[str, nn.Cell]]:
    """Cells that a function, or one that it calls, can name: in its module, in a function or an object around it."""
    waiting, seen = [("", function), *_held(owner)], set[int]()
    while waiting and len(seen) < _MOST_VALUES:
        name, value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        kind = type(value)
        if issubclass(kind, nn.Cell):
            if not issubclass(kind, nn.Optimizer):
                yield name, value
        elif issubclass(kind, partial):
            waiting += [(name, value.func), *((name, each) for each in (*value.args, *value.keywords.values()))]
        elif issubclass(kind, MethodType):
            waiting += [(name, value.__func__), *_used_by_method(name, value)]
        elif issubclass(kind, FunctionType):
            waiting += _named_by(value)
        elif issubclass(kind, (list, tuple)):
            waiting += [(f"{name}[{index}]", each) for index, each in enumerate(value[:_MOST_VALUES])]
        elif issubclass(kind, dict):
            waiting += [(f"{name}[{key!r}]", each) for key, each in islice(value.items(), _MOST_VALUES)]
        else:
            waiting += _held(value)


def _used_by_method(name: str, method: MethodType) -> list[tuple[str, Any]]:
    """The object of a method; of a cell, unless it is called as a whole, what the method can name of it.

    That is what stands in its code and in that of methods of the same cell which it names, and so on.
    """
    cell = method.__self__
    if not isinstance(cell, nn.Cell) or method.__name__ == "construct":
        return [(name, cell)]
    waiting, seen, used = [inspect.unwrap(method.__func__)], set[str](), list[tuple[str, Any]]()
    while waiting:
        code = getattr(waiting.pop(), "__code__", None)
        names = [] if code is None else list(_names(code, _NAMING))
        if not _READS_ANY_ATTRIBUTE.isdisjoint(names):
            return [(name, cell)]
        for each in names:
            if each in seen:
                continue
            seen.add(each)
            of_class = inspect.getattr_static(type(cell), each, None)
            of_class = getattr(of_class, "fget", None) or getattr(of_class, "__func__", of_class)
            if isinstance(of_class, FunctionType):
                waiting.append(inspect.unwrap(of_class))
            elif isinstance(held := {**vars(cell), **cell._cells}.get(each), _FOLLOWED):
                used.append((each, held))
    return used


def _held(value: Any) -> list[tuple[str, Any]]:
    """Cells and functions among the attributes of an object of the user's."""
    if issubclass(type(value), (type, ModuleType, nn.Cell)) or type(value).__module__.partition(".")[0] == "mindspore":
        return []
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return [(name, each) for name, each in attributes.items() if issubclass(type(each), _FOLLOWED)]


def _named_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function can name; of a function of MindSpore's only what it was made from, not its module."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    if not function.__module__ or function.__module__.partition(".")[0] == "mindspore":
        return
    for name in _names(function.__code__, ("LOAD_GLOBAL", "LOAD_NAME")):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _names(code: CodeType, operations: tuple[str, ...]) -> Iterator[str]:
    """What these operations name in the code and in functions inside it: an attribute ``g`` is no global ``g``."""
    yield from (each.argval for each in dis.get_instructions(code) if each.opname in operations)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant, operations)


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
