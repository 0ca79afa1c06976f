"""Standard output and error of the console commands: what cannot be printed changes no result."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from typing import Any, TextIO, cast

from msprobe_ms.support.translation import tr


@contextlib.contextmanager
def lasting_output() -> Iterator[None]:
    """Let commands print whatever becomes of standard output and error: full, closed, or a pipe that nobody reads.

    Characters that a terminal does not know are escaped. Both streams are as they were afterwards, but that one that
    failed leads nowhere, as the interpreter would fail at its rest.
    """
    before = sys.stdout, sys.stderr
    handled = {each: each.errors for each in before if isinstance(each, TextIOWrapper)}
    for stream in handled:
        stream.reconfigure(errors="backslashreplace")
    told = _Stream(sys.stderr)
    printed = _Stream(sys.stdout, told)
    sys.stdout, sys.stderr = cast(TextIO, printed), cast(TextIO, told)
    try:
        yield
    finally:
        for outlet in (printed, told):
            outlet.close_if_failed()
        for stream, errors in handled.items():
            stream.reconfigure(errors=errors)
        sys.stdout, sys.stderr = before


class _Stream:
    """A text stream that takes what it is given, and drops it once its own has failed; ``told`` hears of it, once."""

    def __init__(self, stream: TextIO | None, told: _Stream | None = None) -> None:
        self._stream = stream  # None where it was closed when the interpreter began
        self._told = told
        self._failed = False

    def write(self, text: str) -> int:
        if self._stream is not None and not self._failed:
            try:
                self._stream.write(text)
            except (OSError, ValueError) as error:
                self._fail(error)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._stream is not None and not self._failed:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._fail(error)

    def isatty(self) -> bool:
        return self._stream is not None and not self._stream.closed and self._stream.isatty()

    def close_if_failed(self) -> None:
        """Write what is buffered; where that fails lead it nowhere."""
        self.flush()
        if self._failed and self._stream is not None:
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)

    def _fail(self, error: OSError | ValueError) -> None:
        self._failed = True
        # Whoever closed a pipe has seen enough.
        if self._told is not None and getattr(error, "errno", None) != errno.EPIPE:
            reason = getattr(error, "strerror", None) or error
            self._told.write(
                tr("msprobe: standard output: {reason}; what is printed from here on is lost\n", reason=reason)
            )
            self._told.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
