"""Tell what is raised to stop the script from what failed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, TracebackType


def interrupts(error: BaseException) -> bool:
    """Return whether ``error`` must arrive at the script, wherever it was raised.

    That is what is no `Exception`; whatever a signal handler of the script's raises, as a time limit by ``SIGALRM``
    mostly raises an `Exception`, and nobody raises it again; and how a debugger ends the script.
    """
    if not isinstance(error, Exception):
        return True
    debugger = sys.modules.get("bdb")
    return (debugger is not None and isinstance(error, debugger.BdbQuit)) or _came_by_signal(error)


class suppress_own(suppress):
    """As `suppress`, but what must arrive at the script passes: the `TimeoutError` of a time limit is an OSError."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return bool(super().__exit__(kind, error, trace)) and not (error is not None and interrupts(error))


def _came_by_signal(error: Exception) -> bool:
    trace = error.__traceback__
    if trace is None or trace.tb_next is None:  # raised where it is caught: no handler ran in between
        return False
    handlers = frozenset(_handlers())
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _handlers() -> Iterator[CodeType]:
    """The code of the signal handlers that are set."""
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        for function in (handler, getattr(handler, "func", None), vars(type(handler)).get("__call__")):
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType):
                yield code
