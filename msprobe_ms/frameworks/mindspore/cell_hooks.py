"""Our hooks on Cells: first in the tables of a Cell, and run after all others.

MindSpore runs the hooks of a Cell from the table itself. One that takes itself off, as a hook does that is to run once,
ends the training unless it is the last of the table. So ours stand where they keep no other from being the last. There
they do nothing; they run when the others have.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from inspect import signature
from typing import Any

from mindspore import nn

from msprobe_ms.frameworks.own_hooks import OwnHook
from msprobe_ms.support.patching import Patch

#: What runs a table of hooks, and the table. Both are given the Cell, its arguments and its keyword arguments.
_RUNS = (("_run_forward_pre_hook", "_forward_pre_hook"), ("_run_forward_hook", "_forward_hook"))


class _Run:
    """A table of ``cell`` that is being run; ``due`` are our hooks in it, each with what is told of its failures."""

    __slots__ = ("cell", "due")

    def __init__(self, cell: Any) -> None:
        self.cell = cell
        self.due: list[tuple[Callable[..., Any], Callable[[Exception], None]]] = []

    def settle(self, *values: Any) -> Sequence[Any]:
        """Run ours, the one put on first before the others; the values as they leave them."""
        _running.innermost = None
        for hook, failed in reversed(self.due):
            try:
                other = hook(*values)
                if other is not None:
                    values = (*values[:2], other) if len(values) > 2 else other
            except Exception as error:
                failed(error)
        return values

    def failed(self, error: Exception) -> None:
        """Tell of what came before any of ours was run."""
        for _, failed in self.due:
            failed(error)


class _Running(threading.local):
    """The innermost table that this thread runs; None while it runs none, or ours."""

    innermost: _Run | None = None
    #: Why our hooks in it cannot wait for the others.
    lost: Exception | None = None


_running = _Running()


def _can_be_first() -> bool:
    """Whether this MindSpore lets a hook stand before others, and runs tables as those do that are known here."""
    runs = [getattr(nn.Cell, name, None) for name, _ in _RUNS]
    registers = (nn.Cell.register_forward_pre_hook, nn.Cell.register_forward_hook)
    return all("prepend" in signature(each).parameters for each in registers) and all(
        callable(each) and {"args", "kwargs"} <= signature(each).parameters.keys() for each in runs
    )


#: What registers a hook before others.
FIRST = {"prepend": True} if _can_be_first() else {}
#: Hooks are told of calls that raise, too; from 2.10 on.
ALWAYS = {"always_call": True} if "always_call" in signature(nn.Cell.register_forward_hook).parameters else {}


def run_ours_last() -> Iterator[Patch]:
    """Yield what runs our hooks after the others of a Cell, where they stand before them."""
    for name, table in _RUNS if FIRST else ():
        yield Patch(nn.Cell, name, partial(_ours_last, table))


def first(register: Callable[..., Any], **options: Any) -> Callable[[OwnHook], Any]:
    """Return what registers one of our hooks where it is to stand."""
    return partial(register, with_kwargs=True, **FIRST, **options)


def waiting(cell: Any, hook: Callable[..., Any], failed: Callable[[Exception], None]) -> Callable[..., Any]:
    """Return a hook that has ``hook`` wait while the table of ``cell`` is run."""

    def wait(*given: Any) -> Any:
        if (lost := _running.lost) is not None:
            return failed(lost)
        if (run := _running.innermost) is None or run.cell is not cell:
            return hook(*given)
        return run.due.append((hook, failed))

    return wait


def _ours_last(table: str, original: Callable[..., Any]) -> Callable[..., Any]:
    forward = table == "_forward_hook"

    @wraps(original)
    def run(cell: Any, args: Any, kwargs: Any, *given: Any) -> Any:
        outer, ours = _running.innermost, None
        try:
            try:
                _running.innermost = ours = _Run(cell)
            except (MemoryError, RecursionError) as error:
                ours, _running.lost = None, error
            try:
                found = original(cell, args, kwargs, *given)
            except Exception:
                # MindSpore tells of a call that has raised, but not those that it has come to.
                if forward and ours is not None:
                    ours.settle(args, kwargs, given[0])
                raise
            if ours is None:
                return found
            try:
                return ours.settle(args, kwargs, found)[2] if forward else ours.settle(*found)
            except (MemoryError, RecursionError) as error:
                ours.failed(error)
                return found
        finally:
            _running.innermost, _running.lost = outer, None

    return run


class ForwardHookEntry:
    """A forward hook put into a cell's own tables, with the interface of MindSpore's handles."""

    def __init__(self, cell: Any, hook: Callable[..., Any]) -> None:
        self._cell = cell
        self._key = id(self)
        cell._forward_hook[self._key] = hook
        if FIRST:
            cell._forward_hook.move_to_end(self._key, last=False)
        cell._forward_hook_with_kwargs[self._key] = True
        if ALWAYS:
            cell._forward_hook_always_called[self._key] = True

    def remove(self) -> None:
        self._cell._forward_hook.pop(self._key, None)
        self._cell._forward_hook_with_kwargs.pop(self._key, None)
        if ALWAYS:
            self._cell._forward_hook_always_called.pop(self._key, None)
