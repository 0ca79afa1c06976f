"""Objects that are called in place of functions, and are these functions to whoever looks at them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from operator import attrgetter
from types import FunctionType, MethodType
from typing import Any


class _OfFunction(str):
    """A text of a class; its objects have their function's instead."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return str(self) if instance is None else getattr(instance._function, self.name)


class StandIn:
    """Called in place of a function, and in all else that function.

    Equal to it, with its hash, so that a table finds either by the other; of its class, with its attributes, which are
    written there as well; pickled by its name. A deep copy of what holds the stand-in holds the function.
    """

    #: What is called stands in a slot, in which Python finds it without a frame of ours in between.
    __slots__ = ("__call__", "__weakref__", "_function", "_replaced")

    def __init__(self, function: Callable[..., Any], call: Callable[..., Any], replaced: Any = None) -> None:
        object.__setattr__(self, "_function", function)
        object.__setattr__(self, "_replaced", replaced)
        object.__setattr__(self, "__call__", call)

    __class__ = property(lambda self: type(self._function))
    __doc__ = _OfFunction(__doc__)
    __module__ = _OfFunction(__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._function, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._function, name)

    def __dir__(self) -> list[str]:
        return dir(self._function)

    def __repr__(self) -> str:
        return repr(self._function)

    def __eq__(self, other: object) -> Any:
        return self._function == other

    def __hash__(self) -> int:
        return hash(self._function)

    def __copy__(self) -> StandIn:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return genuine(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        function = self._function
        if isinstance(function, FunctionType):
            name = function.__qualname__
        else:
            reduced = function.__reduce_ex__(protocol)
            if not isinstance(reduced, str):
                return reduced
            name = reduced
        # A name is for what stands under it.
        found = _found(function.__module__, name)
        return name if found is self else (copy.copy, (found if genuine(found) is genuine(self) else function,))


class BindingStandIn(StandIn):
    """Stands in for what becomes a method of an object through whose class it is found."""

    __slots__ = ()
    __doc__ = vars(StandIn)["__doc__"]
    __module__ = vars(StandIn)["__module__"]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        call: Any = self
        try:
            return MethodType(call, instance)
        except (MemoryError, RecursionError):  # which must not reach the script
            return MethodType(call, instance)


def stand_in(
    holder: Any, name: str, function: Callable[..., Any], call: Callable[..., Any], *, replaced: Any = None
) -> StandIn:
    """Return what stands for ``function``, which ``holder.name`` gives, and calls ``call``.

    ``replaced`` is what it keeps for whoever takes it away again.
    """
    held: Any = function
    if isinstance(holder, type):  # which may give something else than it holds
        held = next((vars(each)[name] for each in holder.__mro__ if name in vars(each)), function)
    binds = hasattr(type(held), "__get__") and not isinstance(held, (staticmethod, classmethod))
    return (BindingStandIn if binds else StandIn)(function, call, replaced)


#: Have a stand-in call what is given.
restart: Callable[[StandIn, Callable[..., Any]], None] = vars(StandIn)["__call__"].__set__

#: The function that a stand-in stands for.
function_of: Callable[[StandIn], Callable[..., Any]] = vars(StandIn)["_function"].__get__


def pass_on(standing: StandIn) -> None:
    """Have it call the function that it stands for, whoever still holds it."""
    restart(standing, function_of(standing))


def passes_on(value: Any) -> bool:
    """Whether it is a stand-in that calls nothing but the function that it stands for."""
    return issubclass(type(value), StandIn) and value.__call__ is value._function


def genuine(value: Any) -> Any:
    """Return the function that a stand-in stands for; any other value itself."""
    while issubclass(type(value), StandIn):  # `isinstance` asks a property of the user's as well
        value = value._function
    return value


def _found(module: Any, name: str) -> Any:
    """What stands under a dotted name of a module; None where there is none."""
    try:
        return attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError, TypeError):
        return None
