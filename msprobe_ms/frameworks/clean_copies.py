"""Hooks on modules; and modules copied, pickled or sent to another process without what recording put into them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial, wraps
from types import FunctionType
from typing import Any

from msprobe_ms.frameworks.base import Removable
from msprobe_ms.support.patching import Patch, Patches, wrapped_by_us

_SHALLOW, _DEEP, _COPYING = copy.copy.__code__, copy.deepcopy.__code__, copy._reconstruct.__code__  # type: ignore[attr-defined]

#: How frameworks begin the names of the attributes in which a module keeps forward hooks, and what is to be known of
#: them, by their numbers.
_TABLES = ("_forward_", "_lazy_forward_")


def _pass(error: Exception) -> None:
    """Say nothing."""


class OwnHook:
    """A hook on one module; called with another, such as a copy that shares its table of hooks, it does nothing."""

    __slots__ = ("_call", "_failed", "_module")

    def __init__(self, module: Any, call: Callable[..., Any], failed: Callable[[Exception], None] = _pass) -> None:
        """``call`` takes what the framework hands to the hook after the module; ``failed`` is told what it raises."""
        self._module = module
        self._call = call
        self._failed = failed

    def __call__(self, module: Any, /, *given: Any) -> Any:
        # Replicas of PyTorch's DataParallel share the tables of the module, and their calls are the module's.
        try:
            if module is self._module or "_is_replica" in vars(module):
                return self._call(*given)
        except Exception as error:
            self._failed(error)
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return, for who copies the table itself, what does nothing and loads where this package is not installed."""
        return getattr, (nullcontext(), "__exit__")


class CleanCopies:
    """Has deep copies and pickles of modules leave out our hooks and wrappers, as long as somebody puts them there.

    So do modules that are made of pickles meanwhile.
    """

    def __init__(self, base: type) -> None:
        """``base`` is the class of which all modules are."""
        patches = [Patch(base, "__reduce_ex__", partial(_leaving_ours_out, base))]
        if hasattr(base, "__setstate__"):
            patches.append(Patch(base, "__setstate__", _loading_genuine_functions))
        self._patches = Patches(patches)
        #: By identity; one that nobody refers to any more, as its maker was interrupted, holds nothing.
        self._holders: set[int] = set()
        self._in_place = False

    def hold(self) -> Removable:
        """Begin, for one module or all; what to remove with the hooks or wrappers."""
        holder = _Holder(self._let_go)
        self._holders.add(id(holder))
        if not self._in_place:
            self._patches.apply()
            self._in_place = True
        return holder

    def _let_go(self, holder: int) -> None:
        self._holders.discard(holder)
        if not self._holders and self._patches.applied:
            self._in_place = False
            self._patches.undo()


class _Holder:
    def __init__(self, let_go: Callable[[int], None]) -> None:
        self._let_go = let_go

    def remove(self) -> None:
        self._let_go(id(self))

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, even a module may be gone
            self._let_go(id(self))


def _leaving_ours_out(base: type, original: Callable[..., Any]) -> Callable[..., Any]:
    inherited = "__reduce_ex__" not in vars(base)

    @wraps(original)
    def reduce_ex(module: Any, protocol: Any, /) -> Any:
        # Another base of the module's class may come between this one and `object`.
        function = super(base, module).__reduce_ex__ if inherited else partial(original, module)  # type: ignore[arg-type]
        reduced = function(protocol)
        caller = sys._getframe(1).f_code
        # A shallow copy shares the tables, from which the hooks will be removed.
        if caller is _SHALLOW or not isinstance(reduced, tuple):
            return reduced
        return tuple(_without_ours(part, pickled=caller is not _DEEP) for part in reduced)

    return reduce_ex


def _loading_genuine_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def set_state(module: Any, state: Any, /) -> Any:
        if sys._getframe(1).f_code is not _COPYING:  # a pickle names functions, and finds their wrappers
            state = _without_ours(state, pickled=False)
        return original(module, state)

    return set_state


def _without_ours(part: Any, *, pickled: bool) -> Any:
    """What an object is made of, its arguments or its state, without our hooks and wrappers.

    A state may stand in a tuple, beside that of slots or of a class written in C++.
    """
    try:
        if type(part) is tuple:
            return tuple(_cleaned(state, pickled=pickled) for state in part)
        return _cleaned(part, pickled=pickled)
    except Exception:  # the user's own attributes may be anything
        return part


def _cleaned(state: Any, *, pickled: bool) -> Any:
    if not isinstance(state, dict):
        return state
    tables = {
        name: table
        for name, table in state.items()
        if isinstance(name, str) and name.startswith(_TABLES) and isinstance(table, dict)
    }
    ours = {key for table in tables.values() for key, hook in table.items() if type(hook) is OwnHook}
    changed: dict[Any, Any] = {}
    if ours:
        for name, table in tables.items():
            changed[name] = type(table)((key, value) for key, value in table.items() if key not in ours)
    functions = ((name, value) for name, value in state.items() if type(value) is FunctionType)
    instead = _wrapper_in_place if pickled else wrapped_by_us
    changed |= {name: function for name, value in functions if (function := instead(value)) is not None}
    return {**state, **changed} if changed else state


def _wrapper_in_place(function: FunctionType) -> Any:
    """The wrapper that stands in the place where pickle looks for this function, such as ``activation=F.relu``."""
    found = getattr(sys.modules.get(function.__module__), "__dict__", {}).get(function.__name__)
    return found if wrapped_by_us(found) is function else None
