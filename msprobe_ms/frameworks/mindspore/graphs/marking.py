"""Graphs that MindSpore compiles with something of ours in them, and the same graphs without it, beside each other."""

from __future__ import annotations

import itertools
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from mindspore import _c_expression, nn

from msprobe_ms.frameworks.mindspore.training import OPTIMIZERS
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.patching import Patch, do_all
from msprobe_ms.support.process import ThisProcess

_numbers = itertools.count()

#: Phases of graphs that ``mindspore.export`` and the converter of MindSpore Lite compile in order to write them.
_WRITTEN = ("export.", "lite_infer_")


class MarkedGraphs(ABC):
    """While they are marked, graphs have keys of their own, so that none is run that was compiled without the mark."""

    def __init__(self) -> None:
        self._process = ThisProcess()
        self._mark = f".msprobe_ms{next(_numbers)}"
        #: Cells, and by the names of their phases what MindSpore remembers there of graphs without callbacks.
        self._phases: dict[int, tuple[Any, dict[str, str]]] = {}
        #: Made anew each time: they keep what they replace, which may be somebody's wrapper around a whole model.
        self._patches: list[Patch] = []

    def _mark_graphs(self, cells: Iterable[Any] = ()) -> None:
        """Mark what is run from here on; ``cells`` are those known to be run."""
        for cell in cells:
            self._remember(cell)
        self._patches = self._made_patches()
        for patch in self._patches:
            patch.apply()

    def remove(self) -> None:
        """Run what is run from here on without the mark."""
        do_all(patch.undo for patch in reversed(self._patches))
        self._patches = []
        for cell, phases in self._phases.values():
            for name, phase in list((cell._phase_cache or {}).items()):
                if self._mark in phase:
                    cell._phase_cache.pop(name)
                    cell._phase_cache.update({name: phases[name]} if name in phases else {})
        self._phases = {}

    def wait(self) -> None:
        """Return when what was launched is over.

        A forked child has none of the threads that its parent's launches are left to, and would wait for ever.
        """
        if not self._process.is_mine:
            return
        _c_expression.PyNativeExecutor_.get_instance().sync()
        # Not mindspore.runtime.synchronize: its first call on a CPU logs an error and does not wait.
        _c_expression.synchronize()

    def _made_patches(self) -> list[Patch]:
        executors = {getattr(_c_expression, name, None) for name in ("JitExecutor_", "GraphExecutor_")} - {None}
        return [
            Patch(executor, name, wrap)
            for executor in executors
            for name, wrap in (("generate_arguments_key", self._marked), ("compile", self._compiling_what_runs))
        ]

    @property
    def _marking(self) -> str:
        """What the phases of marked graphs end with."""
        return self._mark

    def _remember(self, cell: Any) -> None:
        if id(cell) not in self._phases and hasattr(cell, "_phase_cache"):
            self._phases[id(cell)] = cell, dict(cell._phase_cache or {})

    def _marked(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def generate_arguments_key(executor: Any, compiled: Any, /, *args: Any, **kwargs: Any) -> Any:
            key = original(executor, compiled, *args, **kwargs)
            try:
                if isinstance(compiled, nn.Cell):
                    self._remember(compiled)
                return key if is_optimizer(compiled) else f"{key}{self._marking}"
            except Exception as error:  # of ours, as for want of memory: the plain graph runs
                if interrupts(error):
                    raise
                return key

        return generate_arguments_key

    def _compiling_what_runs(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return what compiles instead of ``original``.

        A graph that is written to a file has nothing of ours in it, nor has an optimizer that the script calls itself.
        """
        ours = self._compiling(original)

        def compile(executor: Any, compiled: Any, args: Any, kwargs: Any, phase: str, *others: Any) -> Any:
            compiling = original if phase.startswith(_WRITTEN) or is_optimizer(compiled) else ours
            return compiling(executor, compiled, args, kwargs, phase, *others)

        return compile

    @abstractmethod
    def _compiling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return what compiles instead of ``original``."""


def is_optimizer(compiled: Any) -> bool:
    """Whether what is compiled is an optimizer that the script calls; there is no Cell of the network's in it."""
    return isinstance(getattr(compiled, "__self__", compiled), OPTIMIZERS)


def plain_construct(cell: Any) -> Any:
    """Return the Cell's ``construct``; where that is compiled by itself, what it is compiled from."""
    construct = cell.construct
    while getattr(construct, "__wrapped_by_jit__", False) and hasattr(construct, "__wrapped__"):
        construct = construct.__wrapped__
    return construct if isinstance(construct, types.MethodType) else types.MethodType(construct, cell)
