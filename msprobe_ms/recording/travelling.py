"""A debugger that is copied, pickled or sent away with what holds it: a trainer, a callback, the network itself."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

_Debugger = TypeVar("_Debugger", bound="Travelling")


class _Current(Protocol):
    """A class of debuggers."""

    def current(self) -> Any: ...


class Travelling:
    """What deep copies and pickles of a debugger are: one process has one, which holds what cannot go elsewhere."""

    def __copy__(self: _Debugger) -> _Debugger:
        return self

    def __deepcopy__(self: _Debugger, memo: dict[int, Any]) -> _Debugger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return debugger_here, (type(self),)


class IdleDebugger:
    """Stands for a debugger in a process that has none, such as a worker or one that loads a saved network."""

    def _nothing(self, *arguments: Any, **keywords: Any) -> None:
        """Record nothing."""

    start = stop = step = save = forward_backward_dump_end = set_init_step = _nothing
    register_custom_api = restore_custom_api = module_dump = module_dump_end = monitor = _nothing


def debugger_here(kind: _Current) -> Any:
    """Return the debugger that calls on the class ``kind`` go to in this process; one that does nothing, if none."""
    return kind.current() or IdleDebugger()
