"""Attributes replaced and put back, whatever interrupts it at whatever line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import permutations, product
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from msprobe_ms.support import patching
from msprobe_ms.support.patching import Patch, Patches, apply_all, do_all, insist, install, remove, undo_all


class Base:
    def inherited(self) -> str:
        return "base"


class Holder(Base):
    def method(self) -> str:
        return "method"

    @staticmethod
    def static() -> str:
        return "static"


NAMES = ("method", "static", "inherited")


def identities() -> dict[str, int]:
    """The attributes, told apart by identity: what stands in place of a function is equal to it."""
    return {name: id(value) for name, value in vars(Holder).items()}


def louder(function: Callable[..., str]) -> Callable[..., str]:
    return lambda *args: function(*args).upper()


def interrupted(action: Callable[[], object], number: int) -> bool:
    """Whether ``action`` came to its line ``number`` in `patching`, where it was interrupted."""
    left = number

    def lines(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= event == "line"
        if not left and event == "line":
            raise KeyboardInterrupt
        return lines

    def calls(frame: FrameType, event: str, argument: Any) -> Any:
        return lines if frame.f_code.co_filename == patching.__file__ else None

    sys.settrace(calls)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_patches_interrupted_at_any_line_are_undone_afterwards() -> None:
    before, number = identities(), 0
    patches = Patches(Patch(Holder, name, louder) for name in NAMES)
    while True:
        number += 1
        applying = interrupted(patches.apply, number)
        undoing = interrupted(patches.undo, number)
        patches.undo()
        assert identities() == before
        assert not patches.applied
        if not (applying or undoing):
            break
    patches.apply()
    assert [getattr(Holder(), name)() for name in NAMES] == ["METHOD", "STATIC", "BASE"]
    patches.undo()
    assert number > 20


def test_patches_applied_twice_wrap_once() -> None:
    holder = SimpleNamespace(__name__="holder", function=lambda text: text)
    patch, before = Patch(holder, "function", lambda function: lambda text: function(text) + "!"), holder.function
    patch.apply()
    patch.apply()
    assert holder.function("a") == "a!"
    patch.undo()
    assert holder.function is before


def test_what_others_put_in_place_of_a_wrapper_stays() -> None:
    holder = SimpleNamespace(__name__="holder", function=lambda text: text)
    patch = Patch(holder, "function", louder)
    patch.apply()
    theirs = holder.function = lambda text: "theirs"
    patch.undo()
    assert holder.function is theirs


def test_all_are_done_and_an_interrupt_is_raised_before_errors() -> None:
    done: list[str] = []

    def fails(error: BaseException) -> None:
        done.append(type(error).__name__)
        raise error

    with pytest.raises(KeyboardInterrupt):
        do_all([lambda: fails(FileNotFoundError()), lambda: fails(KeyboardInterrupt()), lambda: fails(ValueError())])
    with pytest.raises(FileNotFoundError):
        do_all([lambda: fails(FileNotFoundError()), lambda: fails(ValueError())])
    assert done == ["FileNotFoundError", "KeyboardInterrupt", "ValueError", "FileNotFoundError", "ValueError"]


@pytest.mark.parametrize("error", [SystemExit, MemoryError, None])
def test_what_does_not_come_to_its_end_is_done_once_more(error: type[BaseException] | None) -> None:
    calls, told = list[int](), list[Exception]()

    def action() -> None:
        calls.append(len(calls))
        if error is not None and len(calls) == 1:
            raise error

    if error is SystemExit:
        with pytest.raises(SystemExit):
            insist(action, told.append)
    else:
        insist(action, told.append)
    assert len(calls) == (1 if error is None else 2)
    assert list(map(type, told)) == ([MemoryError] if error is MemoryError else [])


class Noting:
    """Hooks that note what becomes of them."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.there = fails, False

    def install(self) -> None:
        self.there = True
        if self.fails:
            raise KeyboardInterrupt

    def remove(self) -> None:
        self.there = False


def test_hooks_that_were_being_put_on_are_taken_off() -> None:
    hooks, noted = [Noting(), Noting(fails=True), Noting()], list[Any]()
    with pytest.raises(KeyboardInterrupt):
        install(hooks, noted)
    assert [each.there for each in hooks] == [True, True, False]
    remove(noted)
    assert not any(each.there for each in hooks)
    assert not noted


class Foreign:
    """Somebody else's patch of an attribute, which puts back what it found there."""

    def __init__(self, holder: Any, name: str, mark: Callable[[Callable[..., str]], Callable[..., str]]) -> None:
        self.holder, self.name, self.mark = holder, name, mark

    def apply(self) -> None:
        self.before = vars(self.holder).get(self.name)
        function = self.mark(getattr(self.holder, self.name))
        setattr(self.holder, self.name, staticmethod(function) if isinstance(self.before, staticmethod) else function)

    def undo(self) -> None:
        if self.before is None:
            delattr(self.holder, self.name)
        else:
            setattr(self.holder, self.name, self.before)


def marking(number: int) -> Callable[[Callable[..., str]], Callable[..., str]]:
    return lambda function: lambda *args: f"{function(*args)}{number}"


@pytest.mark.parametrize("name", NAMES)
def test_three_patches_of_a_name_are_applied_undone_and_applied_again_in_any_order(name: str) -> None:
    before, plain = identities(), getattr(Holder(), name)()
    for applied, undone, again in product(permutations(range(3)), repeat=3):
        patches = [Patch(Holder, name, marking(number)) for number in range(3)]
        for number in applied:
            patches[number].apply()
        assert getattr(Holder(), name)() == plain + "".join(map(str, applied))
        left = list(applied)
        for number in undone:
            patches[number].undo()
            left.remove(number)
            assert getattr(Holder(), name)() == plain + "".join(map(str, left))
        assert identities() == before
        for number in again:  # the first is undone while another may lie above it, and applied once more
            patches[number].apply()
        patches[undone[0]].undo()
        patches[undone[0]].apply()
        patches[undone[0]].apply()
        order = [*(number for number in again if number != undone[0]), undone[0]]
        assert sorted(getattr(Holder(), name)()) == sorted(plain + "".join(map(str, order)))
        for number in applied:
            patches[number].undo()
        assert identities() == before


@pytest.mark.parametrize("name", NAMES)
def test_a_foreign_patch_between_ours_stays_and_ours_pass_calls_on(name: str) -> None:
    before, plain = identities(), getattr(Holder(), name)()
    for place, undone in product(range(4), permutations(range(3))):
        ours = [Patch(Holder, name, marking(number)) for number in range(3)]
        foreign = Foreign(Holder, name, marking(9))
        every: list[Any] = [*ours[:place], foreign, *ours[place:]]
        for each in every:
            each.apply()
        for number in undone:
            ours[number].undo()
        assert getattr(Holder(), name)() == f"{plain}9"
        foreign.undo()
        assert getattr(Holder(), name)() == plain
        again = Patch(Holder, name, marking(5))  # takes away what of ours the foreign patch has put back
        again.apply()
        assert getattr(Holder(), name)() == f"{plain}5"
        again.undo()
        assert identities() == before


def test_whoever_holds_a_wrapper_calls_the_function_once_it_is_undone() -> None:
    holder = SimpleNamespace(__name__="holder", function=lambda text: text)
    patch = Patch(holder, "function", louder)
    patch.apply()
    held = holder.function
    patch.undo()
    assert held("a") == "a"
    patch.apply()
    assert held("a") == "A"
    patch.undo()


def test_what_stands_as_it_was_put_is_undone_without_a_call_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what classes inherit, as most methods of a framework's tensors."""
    patches = [Patch(Holder, name, louder) for name in ("inherited", "method")]
    apply_all(patches)
    assert (Holder().inherited(), Holder().method()) == ("BASE", "METHOD")
    monkeypatch.setattr(Patch, "undo", None)
    undo_all(patches)
    assert (Holder().inherited(), Holder().method()) == ("base", "method")
    assert "inherited" not in vars(Holder)
    assert not any(patch.applied for patch in patches)
