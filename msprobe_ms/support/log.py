"""The package's one logger: ``MSPROBE_LOG_LEVEL`` 0..4 = debug, info, warning, error, critical (default 1)."""

from __future__ import annotations

import logging
import os
import sys
from functools import cache
from typing import Any

from msprobe_ms.support.interruptions import suppress_own
from msprobe_ms.support.text import for_terminal, from_here
from msprobe_ms.support.translation import LANGUAGES, VARIABLE, refused_language, tr, tr_list, translated

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = self.formatTime(record, "%Y-%m-%d %H:%M:%S")
        # A message of ours is translated; no name can forge the beginning of a record.
        message = from_here(for_terminal(_text(record), further="  "))
        return f"{stamp} ({record.process}) [{record.levelname}] {message}"


def _text(record: logging.LogRecord) -> str:
    """What a record says, still a message where it is one."""
    if not record.args and isinstance(record.msg, str):
        return record.msg
    if isinstance(record.args, tuple) and isinstance(record.msg, str):
        return record.msg % tuple(
            translated(each) if isinstance(each, (str, Exception)) else each for each in record.args
        )
    return record.getMessage()


class _Handler(logging.StreamHandler):
    """As of Python 3.13, which takes the lock by ``with``: before, Ctrl-C could keep it from other threads for good."""

    def handle(self, record: logging.LogRecord) -> bool:
        kept: Any = self.filter(record)  # from Python 3.12 on a filter may give another record
        if kept and self.lock is not None:
            with self.lock:
                self.emit(kept if isinstance(kept, logging.LogRecord) else record)
        return bool(kept)

    def flush(self) -> None:
        if self.lock is not None and hasattr(self.stream, "flush"):
            with self.lock:
                self.stream.flush()

    def handleError(self, record: logging.LogRecord) -> None:
        """Standard error may be closed or full: nobody is left to tell."""
        if not isinstance(sys.exc_info()[1], (OSError, ValueError)):
            super().handleError(record)


class _Logger(logging.Logger):
    """Saying something never costs what it is said about: handlers, filters and factories of the user's may raise."""

    def _log(self, level: int, msg: object, args: Any, *, stacklevel: int = 1, **keywords: Any) -> None:  # type: ignore[override]
        with suppress_own(Exception):
            super()._log(level, msg, args, stacklevel=stacklevel + 1, **keywords)


def _configured() -> logging.Logger:
    logger = logging.getLogger("msprobe_ms")
    logger.__class__ = _Logger  # whoever has asked for it before has the same
    if not logger.handlers:
        handler = _Handler(sys.stderr)
        handler.setFormatter(_Formatter())
        logger.addHandler(handler)
        logger.propagate = False
        wanted = os.environ.get("MSPROBE_LOG_LEVEL", "1")
        logger.setLevel(_LEVELS[int(wanted)] if wanted in {"0", "1", "2", "3", "4"} else logging.INFO)
    return logger


#: Shared by all modules; messages may span lines.
logger = _configured()


class LogOnce:
    """Logs texts; of those that begin alike, up to a colon, the first."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, level: int, text: str) -> None:
        kind = text.partition(":")[0]
        if kind not in self._said:
            self._said.add(kind)
            logger.log(level, "%s", text)


def warn_of_language() -> None:
    """Warn, once, where ``MSPROBE_LANG`` asks for a language that is not there."""
    if refused := refused_language():
        _warn_of_language(refused)


@cache
def _warn_of_language(refused: str) -> None:
    accepted = tr_list(LANGUAGES)
    logger.warning(
        tr("{variable}={refused} is ignored; accepted are {accepted}", variable=VARIABLE, refused=refused,
           accepted=accepted)
    )  # fmt: skip
