"""Hooks on modules stay behind when a module travels, in whatever way its class has itself copied or pickled."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from msprobe_ms.frameworks.clean_copies import CleanCopies
from msprobe_ms.frameworks.own_hooks import OwnHook


class Module:
    """What frameworks' modules have in common: tables of hooks by number, and what is known of them."""

    def __init__(self) -> None:
        self._forward_hooks: dict[int, Callable[..., Any]] = OrderedDict()
        self._forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
        self.parts: dict[int, str] = {0: "a part of the user's, under a number that a hook may have"}

    def hook(self, hook: Callable[..., Any]) -> None:
        number = len(self._forward_hooks)
        self._forward_hooks[number], self._forward_hooks_with_kwargs[number] = hook, True

    def __call__(self, x: int) -> list[Any]:
        return [told for hook in self._forward_hooks.values() if (told := hook(self, x)) is not None]


class WithState(Module):
    """Pickles a state of its own making."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "parts": {}}


class WithSlots(Module):
    """Its state is a tuple, of attributes and slots."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        super().__init__()
        self.kept = 1


class Rebuilt(Module):
    """Made of its attributes, as a traced module of PyTorch is."""

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (dict(vars(self)),)


def rebuilt(attributes: dict[str, Any]) -> Rebuilt:
    module = Rebuilt()
    vars(module).update(attributes)
    return module


class Saved:
    """Has pickle make something else of an object."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, ([("saved", True)],)


class Mixed(Module, Saved):
    """How it is pickled is said by a class behind that of modules."""


class Copied(Module):
    """Copies its attributes itself, hooks and all."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Copied:
        module = Copied()
        vars(module).update(copy.deepcopy(vars(self), memo))
        return module


def users(module: Module, x: int) -> str:
    """A hook of the user's."""
    return "the user's"


def pickled(module: Module) -> Any:
    return pickle.loads(pickle.dumps(module))


@pytest.fixture
def copies() -> Iterator[CleanCopies]:
    yield CleanCopies(Module)
    assert "__reduce_ex__" not in vars(Module)


@pytest.mark.parametrize("travel", [copy.deepcopy, pickled])
@pytest.mark.parametrize("kind", [Module, WithState, WithSlots, Rebuilt])
def test_a_copy_has_the_users_hooks_and_not_ours(
    copies: CleanCopies, kind: type[Module], travel: Callable[[Module], Module]
) -> None:
    module = kind()
    module.hook(OwnHook(module, lambda x: "ours"))
    module.hook(users)
    (held := copies.hold()).install()
    copied = travel(module)
    assert copied(1) == ["the user's"] and list(copied._forward_hooks.values()) == [users]
    assert copied._forward_hooks_with_kwargs == {1: True}
    assert copied.parts == ({} if kind is WithState else module.parts)
    assert module(1) == ["ours", "the user's"]
    held.remove()


def test_one_that_copies_its_hooks_itself_has_one_that_does_nothing(copies: CleanCopies) -> None:
    module = Copied()
    module.hook(OwnHook(module, lambda x: "ours"))
    (held := copies.hold()).install()
    copied = copy.deepcopy(module)
    assert copied(1) == [] and module(1) == ["ours"]
    held.remove()
    assert copied(1) == [] and b"msprobe" not in pickle.dumps(copied)


def test_a_shallow_copy_shares_the_table_and_is_not_recorded(copies: CleanCopies) -> None:
    module = Module()
    module.hook(OwnHook(module, lambda x: "ours"))
    (held := copies.hold()).install()
    copied = copy.copy(module)
    assert copied._forward_hooks is module._forward_hooks and copied(1) == []
    held.remove()


def test_what_another_base_says_of_pickling_holds(copies: CleanCopies) -> None:
    (held := copies.hold()).install()
    assert pickled(Mixed()) == copy.deepcopy(Mixed()) == {"saved": True}
    held.remove()


def test_it_lasts_as_long_as_somebody_needs_it(copies: CleanCopies) -> None:
    first, second = copies.hold(), copies.hold()
    first.install()
    second.install()
    first.remove()
    first.remove()
    assert "__reduce_ex__" in vars(Module)
    second.remove()
    assert "__reduce_ex__" not in vars(Module)
