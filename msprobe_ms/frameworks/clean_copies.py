"""Modules copied, pickled or sent to another process without what recording put into them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType
from typing import Any
from weakref import WeakSet

from msprobe_ms.frameworks.own_hooks import OwnHook, tables_of
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.patching import Hooks, Patch, Patches
from msprobe_ms.support.stand_in import StandIn, genuine

_FUNCTIONS = (FunctionType, StandIn)
_SHALLOW, _DEEP, _COPYING = copy.copy.__code__, copy.deepcopy.__code__, copy._reconstruct.__code__  # type: ignore[attr-defined]


class CleanCopies:
    """Has deep copies and pickles of modules leave out our hooks and wrappers, as long as somebody puts them there.

    So do modules that are made of pickles meanwhile.
    """

    def __init__(self, base: type, *others: Patch) -> None:
        """``base`` is the class of which all modules are; ``others`` are in place as long."""
        patches = [*others, Patch(base, "__reduce_ex__", partial(_leaving_ours_out, base))]
        if hasattr(base, "__setstate__"):
            patches.append(Patch(base, "__setstate__", _loading_genuine_functions))
        self._patches = Patches(patches)
        #: One whose maker has forgotten it holds nothing.
        self._holders: WeakSet[_Holder] = WeakSet()
        self._in_place = False

    def hold(self) -> Hooks:
        """Return what begins it, for one module or all, and ends it, with the hooks or wrappers."""
        return _Holder(self)

    def begin(self, holder: _Holder) -> None:
        """Have it last for ``holder``."""
        self._holders.add(holder)
        if not self._in_place:
            self._patches.apply()
            self._in_place = True

    def end(self, holder: _Holder) -> None:
        """It lasts for ``holder`` no more; may be repeated."""
        self._holders.discard(holder)
        if not self._holders and self._patches.applied:
            self._in_place = False
            self._patches.undo()


class _Holder:
    def __init__(self, copies: CleanCopies) -> None:
        self._copies = copies

    def install(self) -> None:
        self._copies.begin(self)

    def remove(self) -> None:
        self._copies.end(self)


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
    except Exception as error:  # the user's own attributes may be anything
        if interrupts(error):
            raise
        return part


def _cleaned(state: Any, *, pickled: bool) -> Any:
    if not isinstance(state, dict):
        return state
    tables = tables_of(state)
    ours = {key for table in tables.values() for key, hook in table.items() if type(hook) is OwnHook}
    changed: dict[Any, Any] = {}
    if ours:
        for name, table in tables.items():
            changed[name] = type(table)((key, value) for key, value in table.items() if key not in ours)
    instead = _to_pickle if pickled else genuine
    functions = ((name, value) for name, value in state.items() if issubclass(type(value), _FUNCTIONS))
    changed |= {name: function for name, value in functions if (function := instead(value)) is not value}
    return {**state, **changed} if changed else state


def _to_pickle(function: Any) -> Any:
    """What stands where pickle looks for this function, such as ``activation=F.relu``, which it insists on."""
    found = getattr(sys.modules.get(function.__module__), "__dict__", {}).get(function.__name__)
    return found if genuine(found) is genuine(function) else function
