"""Attributes of modules and classes, replaced and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from msprobe_ms.support.stand_in import stand_in

#: Stands for an attribute that a class inherits and does not have itself.
_INHERITED: Any = object()


class Patch:
    """One attribute, which calls ``wrap(attribute)`` while it is applied, and else is what it was."""

    def __init__(self, holder: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._holder = holder
        self._name = name
        self._wrap = wrap
        #: What was there, the function of it that is wrapped (none of static and class methods), and what is there now;
        #: one value, so that nothing comes between its parts.
        self._made: tuple[Any, Any, Any] | None = None
        self.in_module = not isinstance(holder, type)
        self.applied = False

    def apply(self) -> None:
        """Replace the attribute, unless it is; interrupted at any line, `undo` knows what to put back."""
        before = vars(self._holder).get(self._name, _INHERITED)
        # Made again only if somebody else replaced the attribute since it was applied last.
        if self._made is None or (before is not self._made[0] and before is not self._made[2]):
            original = None
            if isinstance(before, (staticmethod, classmethod)):
                wrapper: Any = type(before)(self._stand_in(before.__func__))
            else:
                original = getattr(self._holder, self._name)
                wrapper = self._stand_in(original)
            self._made = before, original, wrapper
        self.applied = True
        setattr(self._holder, self._name, self._made[2])

    def _stand_in(self, function: Callable[..., Any]) -> Any:
        return stand_in(self._holder, self._name, function, self._wrap(function))

    @property
    def replaced(self) -> tuple[Any, Any] | None:
        """The function replaced and its wrapper, while applied; None for static and class methods."""
        if not self.applied or self._made is None or self._made[1] is None:
            return None
        return self._made[1:]

    def undo(self) -> None:
        """Put back what was there; may be repeated."""
        # Whoever replaced our wrapper meanwhile keeps what they put there.
        if self._made is not None and vars(self._holder).get(self._name) is self._made[2]:
            if self._made[0] is _INHERITED:
                delattr(self._holder, self._name)
            else:
                setattr(self._holder, self._name, self._made[0])
        self.applied = False


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
    """What can be put on and taken off again.

    Whoever puts it on notes it first: `remove` takes off whatever is there, wherever something interrupted `install`,
    and may be repeated.
    """

    def install(self) -> None: ...

    def remove(self) -> None: ...


def install(hooks: Iterable[Hooks], noted: list[Hooks]) -> None:
    """Put hooks on, each of them ``noted`` before it is."""
    for each in hooks:
        noted.append(each)
        each.install()


def remove(noted: list[Hooks]) -> None:
    """Take off what is ``noted``, which may be repeated; none is forgotten before it is gone."""
    do_all(each.remove for each in reversed(noted))
    noted.clear()


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


def insist(action: Callable[[], object], failed: Callable[[Exception], object]) -> None:
    """Do what may be repeated, and all of it once more where it does not come to its end.

    ``failed`` is told of an error that comes; what is none, but interrupts the process, is raised in the end.
    """
    done = False
    try:
        action()
        done = True
    except Exception as error:
        failed(error)
    finally:
        if not done:
            with suppress(Exception):
                action()
