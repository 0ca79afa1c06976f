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
    mostly raises an `Exception`, and nobody raises it again; what another thread has Python raise in this one; and how
    a debugger ends the script.
    """
    if not isinstance(error, Exception):
        return True
    debugger = sys.modules.get("bdb")
    return (
        (debugger is not None and isinstance(error, debugger.BdbQuit))
        or _came_by_signal(error)
        or _came_by_thread(error)
    )


class suppress_own(suppress):
    """As `suppress`, but what must arrive at the script passes: the `TimeoutError` of a time limit is an OSError."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            return bool(super().__exit__(kind, error, trace)) and not (error is not None and interrupts(error))
        except RecursionError:  # of ours, near the end of the stack: no more was asked than whose error it is
            return True


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


def calls_into(library: str) -> None:
    """Say that this package calls a library, whose errors it may meet."""
    _called.add(library)


#: Packages whose code runs beneath ours, beside Python's own.
_called = {__name__.partition(".")[0], "numpy"}


def _came_by_thread(error: Exception) -> bool:
    """Whether ``PyThreadState_SetAsyncExc`` brought it, as a time limit in a thread does.

    Its class is of neither Python nor anything that we call, and yet none of the script's code has raised it.
    """
    trace = error.__traceback__
    if trace is None or _may_run_beneath(type(error).__module__):
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    return _may_run_beneath(str(trace.tb_frame.f_globals.get("__name__")))


def _may_run_beneath(module: str) -> bool:
    root = module.partition(".")[0]
    return root in _called or root in sys.stdlib_module_names


#: Those of this system; the answer takes longer than all else here.
_SIGNALS = tuple(signal.valid_signals())


def _handlers() -> Iterator[CodeType]:
    """The code of the signal handlers that are set."""
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if not callable(handler):
            continue
        for function in (handler, getattr(handler, "func", None), vars(type(handler)).get("__call__")):
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType):
                yield code
