"""Attributes of modules and classes, replaced and put back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from msprobe_ms.support.stand_in import StandIn, function_of, pass_on, passes_on, restart, stand_in

#: Stands for an attribute that a class inherits and does not have itself.
_INHERITED: Any = object()


@dataclass(frozen=True, slots=True)
class _Made:
    """What a patch has made: kept in one value, so that nothing comes between its parts.

    ``before`` is what was there, ``original`` the function of it that is wrapped (none of static and class methods),
    ``there`` what is there now, which is ``standing`` or holds it, and ``call`` what that calls.
    """

    before: Any
    original: Callable[..., Any] | None
    there: Any
    standing: StandIn
    call: Callable[..., Any]


#: What another patch may have left under a name.
_MAY_BE_OURS = (StandIn, staticmethod, classmethod)


class Patch:
    """One attribute, which calls ``wrap(attribute)`` while it is applied, and else is what it was.

    Several of one attribute, ours and those of others, may be applied and undone in any order: what is undone below
    another passes calls on unchanged, and goes with what lies above it.
    """

    def __init__(self, holder: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self.holder = holder
        self.name = name
        self._wrap = wrap
        #: What it has made, from when it is applied first; put back by `undo`.
        self.made: _Made | None = None
        self.in_module = not isinstance(holder, type)
        self.applied = False

    def apply(self) -> None:
        """Replace the attribute, unless it is; interrupted at any line, `undo` knows what to put back."""
        before, made = vars(self.holder).get(self.name, _INHERITED), self.made
        # Made again only if somebody else replaced the attribute since it was applied last.
        if made is None or (before is not made.before and before is not made.there):
            if made is not None:
                pass_on(made.standing)  # which may lie below what they put there
            self.made = made = self._make(before)
        self.applied = True
        restart(made.standing, made.call)
        setattr(self.holder, self.name, made.there)

    def _make(self, before: Any) -> _Made:
        if isinstance(before, (staticmethod, classmethod)):
            original, function = None, before.__func__
        else:
            original = function = getattr(self.holder, self.name)
        call = self._wrap(function)
        standing = stand_in(self.holder, self.name, function, call, replaced=before)
        return _Made(before, original, standing if original else type(before)(standing), standing, call)

    def undo(self) -> None:
        """Put back what was there; may be repeated."""
        # Whoever replaced our wrapper meanwhile keeps what they put there, and it passes on what they call.
        if (made := self.made) is not None:
            if vars(self.holder).get(self.name, _INHERITED) is made.there:
                before = made.before
                if issubclass(type(before), _MAY_BE_OURS):  # a thousand functions of a framework are none
                    before = _below_undone(before)
                if before is _INHERITED:
                    delattr(self.holder, self.name)
                else:
                    setattr(self.holder, self.name, before)
            pass_on(made.standing)
        self.applied = False


def _below_undone(value: Any) -> Any:
    """What an attribute had before patches that are undone by now; ``value`` itself where that is none of these."""
    while True:
        standing: Any = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if not passes_on(standing):
            return value
        value = standing._replaced


class Patches:
    """Several, applied in their order and undone the other way round."""

    def __init__(self, patches: Iterable[Patch]) -> None:
        self._patches = list(patches)

    @property
    def applied(self) -> bool:
        return any(patch.applied for patch in self._patches)

    def apply(self) -> None:
        apply_all(self._patches)

    def undo(self) -> None:
        undo_all(self._patches)


def apply_all(patches: Sequence[Patch]) -> None:
    """Apply them in their order: without a call for each where all of them stood there before, and nothing since."""
    there = [(patch.made, vars(patch.holder).get(patch.name, _INHERITED)) for patch in patches]
    if not all(made is not None and made.before is before for made, before in there):
        for patch in patches:
            patch.apply()
        return
    for patch in patches:
        patch.applied = True
    known = [made for made, _ in there if made is not None]
    _exhaust(map(restart, [made.standing for made in known], [made.call for made in known]))
    _put(patches, [made.there for made in known])


def undo_all(patches: Sequence[Patch]) -> None:
    """Undo them the other way round, and all whatever comes: without a call for each that stands there as it was put.

    What was replaced meanwhile is seen to one by one.
    """
    found = [
        (patch, made)
        for patch in reversed(patches)
        if (made := patch.made) is not None
        and vars(patch.holder).get(patch.name) is made.there
        and not issubclass(type(made.before), _MAY_BE_OURS)
    ]
    own = [(patch, made) for patch, made in found if made.before is not _INHERITED]
    inherited = [patch for patch, made in found if made.before is _INHERITED]
    try:
        _put([patch for patch, _ in own], [made.before for _, made in own])
        _exhaust(map(delattr, [patch.holder for patch in inherited], [patch.name for patch in inherited]))
        standing = [made.standing for _, made in found]
        _exhaust(map(restart, standing, map(function_of, standing)))
        for patch, _ in found:
            patch.applied = False
    finally:
        do_all(patch.undo for patch in reversed(patches) if patch.applied)


def replaced_by(patches: Iterable[Patch]) -> list[tuple[Any, Any]]:
    """The functions that are replaced and their wrappers, of those that are applied; no static and class methods."""
    return [
        (made.original, made.there)
        for patch in patches
        if patch.applied and (made := patch.made) is not None and made.original is not None
    ]


def _put(patches: Sequence[Patch], values: Sequence[Any]) -> None:
    _exhaust(map(setattr, [patch.holder for patch in patches], [patch.name for patch in patches], values))


def _exhaust(calls: Iterable[object]) -> None:
    """Make calls of which nothing is kept."""
    deque(calls, 0)


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
