"""Calls on a class of debuggers go to the one that was constructed or started last."""

from __future__ import annotations

import pytest

from msprobe_ms.recording.current import Debuggers, MethodOfCurrent
from msprobe_ms.support.errors import UsageError


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
