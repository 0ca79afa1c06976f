"""Attributes of modules and classes, replaced and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType
from typing import Any, Protocol

#: Stands for an attribute that a class inherits and does not have itself.
_INHERITED: Any = object()

_PACKAGE = f"{__name__.partition('.')[0]}."


class Patch:
    """One attribute, replaced by ``wrap(attribute)`` while it is applied."""

    def __init__(self, holder: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._holder = holder
        self._name = name
        self._wrap = wrap
        self._before: Any = None
        self._original: Any = None
        self._wrapper: Any = None
        self.in_module = not isinstance(holder, type)
        self.applied = False

    def apply(self) -> None:
        """Replace the attribute, unless it is; interrupted at any line, `undo` knows what to put back."""
        before = vars(self._holder).get(self._name, _INHERITED)
        # Made again only if somebody else replaced the attribute since it was applied last.
        if self._wrapper is None or (before is not self._before and before is not self._wrapper):
            original = None
            if isinstance(before, (staticmethod, classmethod)):
                wrapper: Any = type(before)(self._wrap(before.__func__))
            else:
                original = getattr(self._holder, self._name)
                wrapper = self._wrap(original)
                _name_after_place(wrapper, self._holder, self._name)
            self._before, self._original, self._wrapper = before, original, wrapper
        self.applied = True
        setattr(self._holder, self._name, self._wrapper)

    @property
    def replaced(self) -> tuple[Any, Any] | None:
        """The function replaced and its wrapper, while applied; None for static and class methods."""
        if not self.applied or isinstance(self._before, (staticmethod, classmethod)):
            return None
        return self._original, self._wrapper

    def undo(self) -> None:
        """Put back what was there; may be repeated."""
        # Whoever replaced our wrapper meanwhile keeps what they put there.
        if self._wrapper is not None and vars(self._holder).get(self._name) is self._wrapper:
            if self._before is _INHERITED:
                delattr(self._holder, self._name)
            else:
                setattr(self._holder, self._name, self._before)
        self.applied = False


def _name_after_place(wrapper: Any, holder: Any, name: str) -> None:
    """Name a function after where it stands: pickle looks for it there, and elsewhere finds the one it wraps."""
    if isinstance(wrapper, FunctionType):
        of_class = isinstance(holder, type)
        wrapper.__module__ = holder.__module__ if of_class else holder.__name__
        wrapper.__qualname__ = f"{holder.__qualname__}.{name}" if of_class else name


def wrapped_by_us(function: Any) -> Any:
    """The function that a wrapper of this package wraps; None of any other."""
    if type(function) is FunctionType and str(function.__globals__.get("__name__")).startswith(_PACKAGE):
        return getattr(function, "__wrapped__", None)
    return None


class Patches:
    """Several, applied in their order and undone the other way round."""

    def __init__(self, patches: Iterable[Patch]) -> None:
        self._patches = list(patches)

    @property
    def applied(self) -> bool:
        return any(patch.applied for patch in self._patches)

    def apply(self) -> None:
        for patch in self._patches:
            patch.apply()

    def undo(self) -> None:
        do_all(patch.undo for patch in reversed(self._patches))


class Hooks(Protocol):
    """What can be put on and taken off again."""

    def install(self) -> None: ...

    def remove(self) -> None: ...


@contextmanager
def taken_off(hooks: Hooks, *, installed: bool) -> Iterator[None]:
    """Without these hooks; afterwards they are there again if they were ``installed``."""
    try:
        hooks.remove()
        yield
    finally:
        if installed:
            hooks.install()


class PatchHooks:
    """Base of hooks that are patches alone, put on by `install` and taken off by `remove`."""

    def __init__(self, patches: Iterable[Patch]) -> None:
        self._patches = Patches(patches)

    def install(self) -> None:
        self._patches.apply()

    def remove(self) -> None:
        self._patches.undo()

    def suspended(self) -> AbstractContextManager[None]:
        return taken_off(self, installed=self._patches.applied)


def do_all(actions: Iterable[Callable[[], object]]) -> None:
    """Do every one of them, whatever comes; then raise the first that is no `Exception`, else the first."""
    failed: BaseException | None = None
    for action in actions:
        try:
            action()
        except BaseException as error:
            if failed is None or (isinstance(failed, Exception) and not isinstance(error, Exception)):
                failed = error
    if failed is not None:
        raise failed


def insist(action: Callable[[], object]) -> None:
    """Do what may be repeated, and all of it once more where something interrupts it, which is raised in the end."""
    try:
        action()
    except BaseException:
        action()
        raise
