"""Keep the errors of our own work away from the process that it is done in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.translation import translated
from msprobe_ms.support.turns import Turn


class Quiet(Protocol):
    """What keeps our own work unseen while it is done."""

    def restore(self) -> None:
        """Put back what was there before, where something interrupted the work."""


def guarded(
    action: Callable[[], None],
    turn: Callable[[], Turn],
    quiet: Callable[[], Quiet],
    failed: Callable[[Exception], None],
    instead: Callable[[], None] | None = None,
) -> None:
    """Run ``action`` in a ``turn`` of this thread; only the user's mistakes, and what interrupts the process, go on.

    Where it does not come to its end, ``failed`` is told of the error, and then ``instead`` is done.
    """
    try:
        with turn():
            _quietly(action, quiet)
    except MsprobeError as error:
        error.args = (translated(error.message),)
        raise error.with_traceback(None) from None  # the user's mistake, not ours: our frames tell nothing
    except BaseException as error:
        try:
            turn().give_back()  # the error may have come just before it was given back
            if isinstance(error, Exception):
                tell(failed, error)
        finally:
            if instead is not None:
                with suppress(Exception), turn():
                    instead()
        if interrupts(error):
            raise


def tell(failed: Callable[[Exception], object], error: Exception) -> None:
    """Have ``failed`` tell of ``error``, where it can: not near the end of the stack, nor of one that has no text."""
    try:
        failed(error)
    except (MemoryError, RecursionError):
        pass
    except Exception as other:
        if interrupts(other):
            raise


def _quietly(action: Callable[[], None], make_quiet: Callable[[], Quiet]) -> None:
    quiet = None
    try:
        quiet = make_quiet()
        action()
    finally:
        if quiet is not None:
            quiet.restore()  # an error, also one that went no further, may have ended what keeps our own work unseen
