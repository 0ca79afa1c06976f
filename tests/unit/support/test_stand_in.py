"""What stands in the place of a function is that function, except when it is called."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, SimpleNamespace
from typing import Any

import pytest

from msprobe_ms.support.patching import Patch
from msprobe_ms.support.stand_in import StandIn, genuine


def greet(name: str, *, loud: bool = False) -> str:
    """Say hello."""
    return f"hello {name}"


class Holder:
    def method(self, number: int = 1) -> int:
        """Give it back."""
        return number

    @staticmethod
    def static(number: int = 2) -> int:
        return number

    @classmethod
    def of_class(cls, number: int = 3) -> int:
        return number

    built_in = len


class Inheriting(Holder):
    """Patched itself, where it has what it inherits."""


HERE = sys.modules[__name__]
PLACES: dict[str, tuple[Any, str]] = {
    "function": (HERE, "greet"),
    "built in": (sys.modules["math"], "sqrt"),
    "method": (Holder, "method"),
    "static": (Holder, "static"),
    "of the class": (Holder, "of_class"),
    "built in, of a class": (Holder, "built_in"),
    "inherited": (Inheriting, "method"),
    "inherited static": (Inheriting, "static"),
    "inherited, of the class": (Inheriting, "of_class"),
    "descriptor": (type("Text", (str,), {}), "upper"),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any, list[Any]]]:
    """What gives a function; the function itself; and the calls of what stands for it."""
    holder, name = PLACES[request.param]
    calls: list[Any] = []

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append((args, kwargs))
            return function(*args, **kwargs)

        return call

    original = getattr(holder, name)
    patch = Patch(holder, name, wrap)
    patch.apply()
    yield lambda: getattr(holder, name), original, calls
    patch.undo()


def attributes(function: Any) -> list[Any]:
    return [getattr(function, name, None) for name in ("__name__", "__qualname__", "__module__", "__doc__", "__code__")]


def test_it_is_the_function_to_whoever_looks(place: tuple[Any, Any, list[Any]]) -> None:
    find, function, calls = place
    stand_in = find()
    assert stand_in == function and function == stand_in and hash(stand_in) == hash(function)
    assert {function: 1}[stand_in] == {stand_in: 1}[function] == 1 and stand_in in [function]
    assert isinstance(stand_in, type(function)) and stand_in.__class__ is type(function)
    assert attributes(stand_in) == attributes(function) and repr(stand_in) == repr(function)
    assert dir(stand_in) == dir(function) and inspect.signature(stand_in) == inspect.signature(function)
    for kind in (inspect.isfunction, inspect.isbuiltin, inspect.ismethod, inspect.isroutine, callable):
        assert kind(stand_in) == kind(function)
    assert functools.wraps(stand_in)(lambda: None).__name__ == function.__name__
    assert calls == [] and not hasattr(stand_in, "no such attribute")


def test_it_is_pickled_as_the_function_is(place: tuple[Any, Any, list[Any]]) -> None:
    find, function, _ = place
    stand_in, pickles = find(), []
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        pickles.append(pickle.dumps([stand_in, stand_in], protocol))
        assert pickle.loads(pickles[-1]) == [function, function] == [find(), find()]
    assert not any(b"StandIn" in each for each in pickles)
    assert copy.copy(stand_in) == function
    copied = copy.deepcopy([stand_in])[0]
    assert copied == function and not isinstance(copied, StandIn)


def test_a_call_reaches_what_is_called() -> None:
    """As the function or as a method, by position and by name."""
    seen: list[Any] = []

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: seen.append((args, kwargs)) or function(*args, **kwargs)

    for holder, name in list(PLACES.values())[2:-1]:
        patch, owner = Patch(holder, name, wrap), holder()
        given = ([4],) if name == "built_in" else (4,)
        expected = getattr(owner, name)(*given), getattr(holder, name)
        patch.apply()
        assert getattr(owner, name)(*given) == expected[0] and len(seen) == 1, name
        patch.undo()
        assert getattr(holder, name) == expected[1], name
        seen.clear()
    patch = Patch(HERE, "greet", wrap)
    patch.apply()
    assert greet("me", loud=True) == "hello me" and seen == [(("me",), {"loud": True})]
    patch.undo()


def test_what_was_stored_is_pickled_when_the_function_is_back() -> None:
    patch, other = (Patch(HERE, "greet", lambda function: lambda *args: "no") for _ in range(2))
    patch.apply()
    stored = [greet]
    patch.undo()
    assert pickle.loads(pickle.dumps(stored))[0] is greet
    other.apply()  # another stands there by now
    assert pickle.loads(pickle.dumps(stored)) == stored and isinstance(greet, StandIn)
    other.undo()
    assert type(stored[0]) is not FunctionType and genuine(stored[0]) is greet


def test_one_in_the_place_of_another() -> None:
    first, second = (Patch(HERE, "greet", lambda function: lambda name: f"({function(name)})") for _ in range(2))
    function = greet
    first.apply()
    inner = greet
    second.apply()
    assert greet("me") == "((hello me))" and greet == inner == function and genuine(greet) is function
    assert pickle.loads(pickle.dumps(greet)) is greet and pickle.loads(pickle.dumps(inner)) == function
    second.undo()
    first.undo()
    assert greet is function


def test_what_is_written_to_it_is_written_to_the_function() -> None:
    patch, function = Patch(HERE, "greet", lambda function: function), greet
    patch.apply()
    greet.mark = [1]  # type: ignore[attr-defined]
    del greet.mark[:]  # type: ignore[attr-defined]
    assert weakref.ref(greet)() is greet
    patch.undo()
    assert vars(function).pop("mark") == []


def test_only_what_becomes_a_method_does() -> None:
    """What stands for a function that is built in does not, nor does what a class holds as static."""
    module = SimpleNamespace(built_in=len, function=greet)
    patches = [Patch(module, name, lambda function: function) for name in vars(module)]
    for patch in patches:
        patch.apply()
    user = type("User", (), dict(vars(module)))()
    assert user.built_in([1]) == 1
    assert user.function.__self__ is user and hasattr(type(module.function), "__get__")
    assert isinstance(module.built_in, BuiltinFunctionType) and not hasattr(type(module.built_in), "__get__")
    assert type(module.function).__module__.startswith("msprobe_ms")
