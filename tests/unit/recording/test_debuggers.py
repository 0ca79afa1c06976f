"""Debuggers that nobody holds are gone; those that are held are ended with the process."""

from __future__ import annotations

import atexit
import gc
import weakref
from typing import Any

import pytest

from msprobe_ms.recording.debuggers import Debuggers, MethodOfCurrent, weakly
from msprobe_ms.support.errors import UsageError


class Some:
    """What `Debuggers` calls of a debugger."""

    def __init__(self, ended: list[str], name: str) -> None:
        self._ended, self._name = ended, name

    def end(self) -> None:
        self._ended.append(self._name)
        raise FileNotFoundError


class Other(Some):
    pass


def test_only_the_latest_of_each_class_is_held() -> None:
    debuggers: Any = Debuggers()
    ended: list[str] = []
    for name in "abc":
        debuggers.add(Some(ended, name))
    other = Other(ended, "other")
    debuggers.add(other)
    gone = weakref.ref(debuggers.current_of(Other))
    debuggers.forget(other)
    del other
    gc.collect()
    assert gone() is None
    assert debuggers.current_of(Other) is debuggers.current_of(Some)
    held = Other(ended, "d")
    debuggers.add(held)
    with pytest.raises(FileNotFoundError):
        debuggers.end_all()
    assert ended == ["d", "c"]
    atexit.unregister(debuggers.end_all)


def test_a_model_is_given_back_while_it_lives() -> None:
    models = [Some([], "a"), Some([], "b")]
    one, both = weakly(models[0]), weakly(models)
    assert one() is models[0]
    assert both() == models
    models.pop(0)
    gc.collect()
    assert one() is None
    assert both() is None
    assert weakly(None)() is None


class Base:
    debuggers = Debuggers()

    @classmethod
    def current(cls) -> Base | None:
        return cls.debuggers.current_of(cls)  # type: ignore[arg-type, return-value]

    @MethodOfCurrent
    def who(self) -> Base:
        """Say who is called."""
        return self


class Derived(Base):
    pass


def test_calls_on_a_class() -> None:
    with pytest.raises(UsageError, match=r"PrecisionDebugger\.who: construct a PrecisionDebugger before calling who"):
        Base.who()
    base, derived = Base(), Derived()
    Base.debuggers.current[Base] = base  # type: ignore[index, assignment]
    assert Base.who() is Derived.who() is base
    Base.debuggers.current[Derived] = derived  # type: ignore[index, assignment]
    assert (Base.who(), Derived.who(), derived.who()) == (base, derived, derived)
    Base.debuggers.forget(derived)  # type: ignore[arg-type]
    Base.debuggers.forget(derived)  # type: ignore[arg-type]
    assert Derived.who() is base
    assert Base.who.__doc__ == "Say who is called."
