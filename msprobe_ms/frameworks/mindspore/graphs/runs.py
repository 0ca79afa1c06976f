"""Compiled graphs that a script runs in ``GRAPH_MODE``, one by one: Cells called as a whole, and jitted functions."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from types import FunctionType
from typing import Any

from mindspore import nn

from msprobe_ms.frameworks.compiled_call import GraphRun, Reaches
from msprobe_ms.frameworks.mindspore import jit
from msprobe_ms.frameworks.mindspore.training import (
    OPTIMIZERS,
    differentiates,
    is_trained,
    makes_gradients,
    networks_of,
    optimizers_in,
)
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import logger
from msprobe_ms.support.patching import Patch, PatchHooks
from msprobe_ms.support.translation import tr


class _Depth(threading.local):
    value = 0


class GraphRuns(PatchHooks):
    """Tells of the graphs that are run, before they are."""

    def __init__(self, before: Callable[[GraphRun], None]) -> None:
        self._before = before
        self._depth = _Depth()
        self._known: dict[Hashable, GraphRun] = {}
        # A Cell that is called runs as one graph through the first, everything else through the others.
        calls = [(nn.Cell, "compile_and_run"), *jit.graph_calls()]
        super().__init__(Patch(holder, name, self._wrap) for holder, name in calls)

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(runner: Any, /, *args: Any, **kwargs: Any) -> Any:
            depth = self._depth
            if not depth.value:
                try:
                    self._before(self._described(runner))
                except Exception as error:  # of ours: nothing of the script's has run
                    if interrupts(error):
                        raise
                    self.remove()
                    logger.warning(
                        tr(
                            "steps: runs of graphs are not counted: {name}: {error}",
                            name=type(error).__name__,
                            error=error,
                        )
                    )
            depth.value += 1
            try:
                return original(runner, *args, **kwargs)
            finally:
                depth.value -= 1

        return wrapper

    def _described(self, runner: Any) -> GraphRun:
        """``runner`` is a Cell, or an executor of a function or of a method of a Cell."""
        owner, function = (runner, None) if isinstance(runner, nn.Cell) else (runner.obj, runner.fn)
        key = _key(owner, function)
        if key not in self._known:
            self._known[key] = _cells_run(key, owner) if isinstance(owner, nn.Cell) else _functions_run(key, function)
        return self._known[key]


def _key(owner: Any, function: Any) -> Hashable:
    if isinstance(owner, nn.Cell):
        return weakref.ref(owner), "construct" if function is None else function.__name__
    return _source(function)


def _source(function: Any) -> Hashable:
    """Tells functions apart, though they may be made anew for each run: the code, and what MindSpore's own hold."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        return id(function)
    if not str(function.__module__).startswith("mindspore."):
        return function.__code__
    return function.__code__, *map(_of_held, _held(function))


def _of_held(value: Any) -> Hashable:
    return weakref.ref(value) if isinstance(value, nn.Cell) else _source(value)


def _held(function: FunctionType) -> Iterator[Any]:
    """Functions and Cells in the closure of ``function``, without itself."""
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # a name of the enclosing function that has no value yet
            continue
        if value is not function and isinstance(getattr(value, "__func__", value), (FunctionType, nn.Cell)):
            yield value


def _cells_run(key: Hashable, cell: nn.Cell) -> GraphRun:
    name, cells = type(cell).__name__, [each for _, each in cell.cells_and_names()]
    if isinstance(cell, OPTIMIZERS):
        return GraphRun(key, name, Reaches.WEIGHTS, is_update=True)
    if any(isinstance(each, OPTIMIZERS) for each in cells):
        return GraphRun(key, name, Reaches.WEIGHTS)
    if any(map(makes_gradients, cells)):
        return GraphRun(key, name, Reaches.GRADIENTS, awaits_update=is_trained([cell]))
    return GraphRun(key, name, Reaches.RESULTS)


def _functions_run(key: Hashable, function: Any) -> GraphRun:
    name = str(getattr(function, "__name__", function))
    if optimizers_in(function):
        return GraphRun(key, name, Reaches.WEIGHTS)
    if differentiates(function):
        return GraphRun(key, name, Reaches.GRADIENTS, awaits_update=is_trained(networks_of(function, None)))
    return GraphRun(key, name, Reaches.RESULTS)
