"""Hooks of this package on what belongs to a script: modules, tensors, optimizers.

Each is made first and put on then, so that whoever makes it can note it before: where something interrupts putting it
on, it is found again and taken off.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from operator import methodcaller
from typing import Any

from msprobe_ms.support.patching import do_all

#: How frameworks begin the names of the attributes in which a module keeps forward hooks, and what is to be known of
#: them, by their numbers.
_TABLES = ("_forward_", "_lazy_forward_")

_REMOVE: Callable[[Any], object] = methodcaller("remove")


def tables_of(state: dict[Any, Any]) -> dict[str, dict[Any, Any]]:
    """Return the tables of hooks among the attributes of a module."""
    return {
        name: table
        for name, table in state.items()
        if isinstance(name, str) and name.startswith(_TABLES) and isinstance(table, dict)
    }


def telling(on_gradient: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a hook that tells of a gradient, and of what telling raises: the framework would end the backward."""

    def report(gradient: Any) -> None:
        try:
            on_gradient(gradient)
        except Exception as error:
            on_gradient(error)

    return report


class Registered:
    """Hooks that a framework registers, giving for each what takes it off. They are put on once."""

    def __init__(
        self, *hooks: tuple[Callable[[Any], Any], Callable[..., Any]], take_off: Callable[[Any], object] = _REMOVE
    ) -> None:
        """``hooks`` are pairs of what registers a hook, and the hook; ``take_off`` takes what that gave."""
        self._hooks = list(hooks)
        self._take_off = take_off
        self._handles: list[Any] = []

    def install(self) -> None:
        """Put them on; what registers one, such as a tensor's method, is held no longer."""
        while self._hooks:
            register, hook = self._hooks.pop(0)
            self._handles.extend(map(register, (hook,)))  # nothing of Python's own comes between the two

    def remove(self) -> None:
        """Take them off."""
        do_all(partial(self._take_off, handle) for handle in self._handles)
        self._handles.clear()


def _pass(error: Exception) -> None:
    """Say nothing."""


class OwnHook:
    """A hook on one module; called with another, such as a copy that shares its table of hooks, it does nothing."""

    __slots__ = ("_call", "_failed", "module")

    def __init__(self, module: Any, call: Callable[..., Any], failed: Callable[[Exception], None] = _pass) -> None:
        """``call`` takes what the framework hands to the hook after the module; ``failed`` is told what it raises."""
        self.module = module
        self._call = call
        self._failed = failed

    def __call__(self, module: Any, /, *given: Any) -> Any:
        # Replicas of PyTorch's DataParallel share the tables of the module, and their calls are the module's.
        try:
            if module is self.module or "_is_replica" in vars(module):
                return self._call(*given)
        except Exception as error:
            self._failed(error)
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return, for who copies the table itself, what does nothing and loads where this package is not installed."""
        return getattr, (nullcontext(), "__exit__")


class ModuleHook(Registered):
    """An `OwnHook` in the tables of its module, from which it is taken though registering it was interrupted."""

    def __init__(self, hook: OwnHook, register: Callable[[OwnHook], Any]) -> None:
        super().__init__((register, hook))
        self._hook = hook

    def remove(self) -> None:
        super().remove()
        tables = tables_of(vars(self._hook.module)).values()
        left = {key for table in tables for key, hook in list(table.items()) if hook is self._hook}
        for table in tables if left else ():
            for key in left:
                table.pop(key, None)
