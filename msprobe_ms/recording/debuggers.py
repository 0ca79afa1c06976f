"""The debuggers of a process: which one records, which one is called through its class, which end with the process."""

from __future__ import annotations

import atexit
import sys
import weakref
from collections import deque
from collections.abc import Callable
from functools import wraps
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.patching import do_all
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr
from msprobe_ms.support.turns import Turn

if TYPE_CHECKING:
    from msprobe_ms.recording.debugger import BaseDebugger


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class MethodOfCurrent(Generic[_Arguments, _Result]):
    """A method that may also be called on the class, as scripts do: ``PrecisionDebugger.step()``."""

    def __init__(self, method: Callable[Concatenate[Any, _Arguments], _Result]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type[BaseDebugger]) -> Callable[_Arguments, _Result]:
        if instance is None:
            instance = owner.current()
        return self._before_there_is_one if instance is None else self._method.__get__(instance, owner)

    @property
    def _before_there_is_one(self) -> Callable[_Arguments, _Result]:
        """What stands for the method while no debugger is there: editors and Sphinx read it, calling it is refused."""

        @wraps(self._method)
        def refuse(*arguments: object, **keywords: object) -> NoReturn:
            name = self._method.__name__
            raise UsageError(
                tr("PrecisionDebugger.{name}: construct a PrecisionDebugger before calling {name}", name=name)
            )

        return refuse


class Debuggers:
    """The debuggers of a process: which one records, and which one of each class is called through its class."""

    def __init__(self) -> None:
        #: The debugger whose step is being recorded, of whatever framework.
        self.recording: BaseDebugger | None = None
        #: Class → its debugger that was constructed or started last.
        self.current: dict[type[BaseDebugger], BaseDebugger] = {}
        #: Those that are to be ended with the process, where their users still hold them.
        self._open: WeakValueDictionary[int, BaseDebugger] = WeakValueDictionary()
        self._process, self._turn = ThisProcess(), Turn()
        #: What signal handlers and finalizers of the script asked for in the middle of something else.
        self._left: deque[Callable[[], None]] = deque()

    def turn(self) -> Turn:
        """A lock: threads put hooks on and take them off one after the other. In a forked child nobody holds it yet."""
        if not self._process.is_mine:
            self._process, self._turn = ThisProcess(), Turn()
        return self._turn

    def one_by_one(self, action: Callable[[], None], later: Callable[[], None]) -> None:
        """Do ``action``; in the middle of another that this thread does, ``later`` instead, once that is over.

        There a signal handler or a finalizer of the script's calls, and hooks that are half on would stay for good.
        The frames tell, as no interrupt can falsify them.
        """
        if _is_within(sys._getframe(1), Debuggers.one_by_one.__code__):
            return self._left.append(later)
        try:
            self._do_left()
            action()
        finally:
            self._do_left()

    def _do_left(self) -> None:
        while self._left:
            self._left.popleft()()

    def add(self, debugger: BaseDebugger) -> None:
        """Calls on its class go to ``debugger`` from here on; it is ended with the process."""
        self.current[type(debugger)] = debugger
        self._open[id(debugger)] = debugger
        # Before what frameworks do at the end, and any that was imported since has its turn after this.
        atexit.unregister(self.end_all)
        atexit.register(self.end_all)

    def end_all(self) -> None:
        """End those that are open, the one made last first."""
        do_all(debugger.end for debugger in reversed(list(self._open.values())))

    def current_of(self, kind: type[BaseDebugger]) -> BaseDebugger | None:
        """The debugger that calls on ``kind`` go to: its own, else that of the nearest class it derives from."""
        return next((self.current[each] for each in kind.__mro__ if each in self.current), None)

    def forget(self, debugger: BaseDebugger) -> None:
        """No call on its class goes to ``debugger`` any more, and its process ends without it."""
        self._open.pop(id(debugger), None)
        if self.current.get(type(debugger)) is debugger:
            del self.current[type(debugger)]


def _is_within(frame: FrameType | None, code: CodeType) -> bool:
    """Whether ``frame`` runs ``code``, or was called from where it does."""
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


def no_model() -> None:
    """What stands for a network where none was given."""
    return None


def weakly(model: Any) -> Callable[[], Any]:
    """Gives ``model`` (or the list of models) back without keeping it alive; None once it is gone."""
    if model is None:
        return no_model
    if not isinstance(model, (list, tuple)):
        return weakref.ref(model)
    references = [weakref.ref(each) for each in model]

    def give() -> Any:
        models = [reference() for reference in references]
        return None if any(each is None for each in models) else models

    return give
