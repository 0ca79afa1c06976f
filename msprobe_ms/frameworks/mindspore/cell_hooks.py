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


class _Running(threading.local):
    """The Cells of this thread whose tables are run, innermost last; None while ours are run themselves."""

    def __init__(self) -> None:
        self.cells: list[Any] = []


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


def run_ours_last() -> Iterator[Patch]:
    """Yield what runs our hooks after the others of a Cell, where they stand before them."""
    for name, table in _RUNS if FIRST else ():
        yield Patch(nn.Cell, name, partial(_ours_last, table))


def first(register: Callable[..., Any], **options: Any) -> Callable[[OwnHook], Any]:
    """Return what registers one of our hooks where it is to stand."""
    return partial(register, with_kwargs=True, **FIRST, **options)


def waiting(cell: Any, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook that does nothing while the table of ``cell`` is run."""

    def wait(*given: Any) -> Any:
        cells = _running.cells
        return None if cells and cells[-1] is cell else hook(*given)

    return wait


def _ours_last(table: str, original: Callable[..., Any]) -> Callable[..., Any]:
    forward = table == "_forward_hook"

    @wraps(original)
    def run(cell: Any, args: Any, kwargs: Any, *given: Any) -> Any:
        ours = [hook for hook in getattr(cell, table).values() if type(hook) is OwnHook]
        cells = _running.cells
        depth = len(cells)
        try:
            try:
                cells.append(cell)
                found = original(cell, args, kwargs, *given)
            except Exception:
                if forward:  # the call has raised, of which MindSpore tells only those that it has not come to
                    cells.append(None)
                    _run(ours, cell, args, kwargs, given[0])
                raise
            cells.append(None)
            return _run(ours, cell, args, kwargs, found) if forward else _run_before(ours, cell, *found)
        finally:
            del cells[depth:]

    return run


def _run(ours: Sequence[OwnHook], cell: Any, args: Any, kwargs: Any, output: Any) -> Any:
    for hook in reversed(ours):  # in the order in which they came
        other = hook(cell, args, kwargs, output)
        output = output if other is None else other
    return output


def _run_before(ours: Sequence[OwnHook], cell: Any, args: Any, kwargs: Any) -> Any:
    for hook in reversed(ours):
        args, kwargs = hook(cell, args, kwargs) or (args, kwargs)
    return args, kwargs
