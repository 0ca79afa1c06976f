"""Tell what is raised to stop the script from what failed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from types import CodeType, FrameType


def interrupts(error: BaseException) -> bool:
    """Return whether ``error`` must arrive at the script, wherever it was raised.

    That is what is no `Exception`; whatever a signal handler of the script's raises, as a time limit by ``SIGALRM``
    mostly raises an `Exception`, and nobody raises it again; and how a debugger ends the script.
    """
    if not isinstance(error, Exception):
        return True
    debugger = sys.modules.get("bdb")
    return (debugger is not None and isinstance(error, debugger.BdbQuit)) or _came_by_signal(error)


def _came_by_signal(error: Exception) -> bool:
    handlers, trace = frozenset(_handlers()), error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers or _is_given_a_frame(trace.tb_frame):
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


def _is_given_a_frame(frame: FrameType) -> bool:
    """Whether it is that of a signal handler that is not set any more: it was given the frame that it interrupted."""
    interrupted = frame.f_back
    with suppress(Exception):
        given = list(frame.f_locals.values())[: frame.f_code.co_argcount + 1]
        unpacked = [*given, *(value for each in given if type(each) is tuple for value in each[:2])]
        pairs = pairwise(unpacked)
        return interrupted is not None and any(type(one) is int and other is interrupted for one, other in pairs)
    return False
