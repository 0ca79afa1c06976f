"""A console command run on hostile files, in this process, and what it must not do whatever they hold."""

from __future__ import annotations

import contextlib
import io
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unittest import mock

from msprobe_ms.cli.main import main
from msprobe_ms.support.log import logger

#: Memory that a command may take beyond what the process has, and processor time, of small hostile files. A second is
#: what is promised; where many processes share caches, and hypothesis traces each line, it takes longer than alone.
MOST_BYTES = 384 << 20
MOST_SECONDS = 1.0 * 2
#: When a command counts as hanging.
HANGS = 60


class Outcome(NamedTuple):
    status: int
    #: What it printed and logged.
    out: str
    err: str
    seconds: float


class Hang(BaseException):
    """Not an Exception, which what is tested may catch."""


class Broken(AssertionError):
    """A command did what no file may make it do."""


def attempt(arguments: Sequence[str], *, seconds: float = MOST_SECONDS) -> Outcome:
    """Run ``msprobe`` with these arguments, for at most so many seconds of processor time.

    :raises Broken: it hung, took more memory or time than allowed, ended in another error than one of its own, or
        printed or logged what a terminal obeys
    """
    found = _run(arguments)
    if found.seconds > seconds:  # something else may have been at work: once more
        found = _run(arguments)
    _check(arguments, found, seconds)
    return found


def _run(arguments: Sequence[str]) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    begun = time.process_time()
    with _limits(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _log_to(err):
        try:
            status = main(arguments)
        except (Exception, Hang, SystemExit) as error:
            told = "".join(traceback.format_exception(error)[-8:])
            raise Broken(f"msprobe {' '.join(arguments)}: {type(error).__name__}\n{told[-3000:]}") from None
    return Outcome(status, out.getvalue(), err.getvalue(), time.process_time() - begun)


def _check(arguments: Sequence[str], found: Outcome, seconds: float) -> None:
    told = found.out + found.err
    if found.status not in (0, 1, 2):
        raise Broken(f"{arguments}: exit status {found.status}")
    if "Traceback" in told:
        raise Broken(f"{arguments}: a traceback\n{told[-3000:]}")
    if found.status == 2 and not told.strip():
        raise Broken(f"{arguments}: failed without a word")
    for line in told.replace("\r", "\n").split("\n"):  # progress bars return the carriage
        if not line.isprintable():
            raise Broken(f"{arguments}: not printable: {line!r:.500}")
        if len(line) > 20_000:
            raise Broken(f"{arguments}: a line of {len(line)} characters: {line:.200}")
    if found.seconds > seconds:
        raise Broken(f"{arguments}: took {found.seconds:.2f} s: {told[-300:]}")


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    def hang(*_: object) -> None:
        raise Hang(f"hangs for {HANGS} s")

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(HANGS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _log_to(stream: io.StringIO) -> Iterator[None]:
    (handler,) = [each for each in logger.handlers if type(each).__module__.startswith("msprobe_ms")]
    with mock.patch.object(handler, "stream", stream), mock.patch.object(sys, "argv", ["msprobe"]):
        yield
