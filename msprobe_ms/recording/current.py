"""Which debugger of a process records, and which one calls on its class go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msprobe_ms.support.errors import UsageError

if TYPE_CHECKING:
    from msprobe_ms.recording.debugger import BaseDebugger


class MethodOfCurrent:
    """A method that may also be called on the class, as scripts do: ``PrecisionDebugger.step()``."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type[BaseDebugger]) -> Callable[..., Any]:
        if instance is None:
            instance = owner.current()
            if instance is None:
                name = self._method.__name__
                raise UsageError(f"PrecisionDebugger.{name}: construct a PrecisionDebugger before calling {name}")
        return self._method.__get__(instance, owner)


class Debuggers:
    """The debuggers of a process: which one records, and which one of each class is called through its class."""

    def __init__(self) -> None:
        #: The debugger whose step is being recorded, of whatever framework.
        self.recording: BaseDebugger | None = None
        #: Class → its debugger that was constructed or started last.
        self.current: dict[type[BaseDebugger], BaseDebugger] = {}

    def current_of(self, kind: type[BaseDebugger]) -> BaseDebugger | None:
        """The debugger that calls on ``kind`` go to: its own, else that of the nearest class it derives from."""
        return next((self.current[each] for each in kind.__mro__ if each in self.current), None)

    def forget(self, debugger: BaseDebugger) -> None:
        """No call on its class goes to ``debugger`` any more."""
        if self.current.get(type(debugger)) is debugger:
            del self.current[type(debugger)]
