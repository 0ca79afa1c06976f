"""Report the tool's own errors: a line in the dump's error log and one warning a kind. None of them is raised."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from pathlib import Path

from msprobe_ms.dump.writing.writer import ERROR_LOG
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.interruptions import interrupts, suppress_own
from msprobe_ms.support.log import logger
from msprobe_ms.support.process import ClosedError
from msprobe_ms.support.text import printable
from msprobe_ms.support.translation import tr, tr_count

#: Lines written to the error log of one step; an error in a hot path must not fill the disk it failed on.
_MOST_LINES = 1000

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class ErrorLog:
    """Collects the tool's errors of one step, in the file `ERROR_LOG` of its folder."""

    def __init__(self, files: Folder, warned_before: set[str], on_loss: Callable[[str], None]) -> None:
        """``warned_before`` is what earlier steps have warned of; this one adds to it. ``on_loss`` is told in words
        what should have been recorded and is not, each time that it is more."""
        self._files = files
        self._warned_before = warned_before
        self._on_loss = on_loss
        self._warned: set[str] = set()
        self.count = 0
        #: Errors that cost something that should have been recorded, and the first of them.
        self._lost, self._first_lost = 0, ""
        #: Whether something was lost and `on_loss` not told yet; others may say so as well.
        self.untold = False
        #: Why the error log lacks lines, and the first of those.
        self._unlogged = ""

    @property
    def folder(self) -> Path:
        """The dump's folder, wherever it is now."""
        return self._files.path

    def note(self, text: str) -> None:
        """Say what a dump cannot hold: in its error log, and in a warning the first time. It is no error."""
        if text not in self._warned:
            self._warned.add(text)
            with suppress_own(OSError):
                self.write(text)
        if text not in self._warned_before:
            self._warned_before.add(text)
            logger.warning("%s", text)

    def tell(self, text: str) -> None:
        """Say the first time, in the training's log alone, what a user should expect; nothing of a step's is lost."""
        if text not in self._warned_before:
            self._warned_before.add(text)
            logger.info("%s", text)

    def warn_of_count(self, folder: Path | None = None) -> None:
        """Warn of how many errors there were; their log is in ``folder``, its own where none is given."""
        if self.count:
            problems = tr_count("1 problem", "{count} problems", self.count)
            unlogged, log = self._unlogged, ERROR_LOG
            where = tr("not all in {log}: {reason}", log=log, reason=unlogged) if unlogged else tr("see {log}", log=log)
            logger.warning(
                tr("{folder}: {problems}, {where}", folder=folder or self.folder, problems=problems, where=where)
            )

    def report(self, error: BaseException, where: str, *, lost: bool = True) -> None:
        """Log ``error``, which happened while recording ``where``.

        ``lost`` is False where it cost nothing that should have been recorded; otherwise the dump says that it is
        incomplete. Of a call that another thread is still in when the step is over nothing belongs to the step: that
        the dump is closed by then is no error.

        Raises ``error`` where it is none of the tool's own but must arrive at the script.
        """
        if isinstance(error, ClosedError):
            return
        self.count += 1
        self.untold = self.untold or lost
        try:
            self._report(error, where, lost=lost)
            passes = interrupts(error)
        except (MemoryError, RecursionError):  # here, too
            passes = not isinstance(error, Exception)
        if passes:
            raise error

    def _report(self, error: BaseException, where: str, *, lost: bool) -> None:
        try:
            place = _place(error)
            kind = type(error).__name__
            text = " ".join(str(error).split("\n", 1)[0].split())  # frameworks append whole call stacks
            line = f"{where}: {kind}: {text}"
            if lost:
                self._count_loss(line)
            if self._is_new(error, f"{kind} {place}"):
                no_room = getattr(error, "errno", None) in _NO_ROOM
                why = tr("the disk is full or read-only") if no_room else text
                logger.warning(
                    tr(
                        "{where} could not be recorded: {kind}: {why}. Training goes on; further cases are only in "
                        "{folder}",
                        where=where,
                        kind=kind,
                        why=why,
                        folder=self.folder / ERROR_LOG,
                    ),
                )
            if self.count <= _MOST_LINES:
                self._write_or_remember(f"{line} ({place})")
        except Exception as failed:  # reporting is the last resort; there is nowhere left to say that it failed
            if interrupts(failed):
                raise

    def tell_losses(self) -> None:
        """Tell of what was lost where not even that could be said then."""
        if self.untold:
            self.untold = False
            self._on_loss(self._first_lost or "some calls: memory or stack was used up")

    def _is_new(self, error: BaseException, kind: str) -> bool:
        """Whether nobody was told of such an error: of the system, in any step; of another kind, in this one."""
        known = self._warned
        if isinstance(error, OSError) and error.errno is not None:
            known, kind = self._warned_before, f"errno {error.errno}"
        new = kind not in known
        known.add(kind)
        return new

    def _count_loss(self, line: str) -> None:
        self._lost += 1
        self._first_lost = self._first_lost or line
        times = "" if self._lost == 1 else f" (the first of {self._lost} problems)"
        self._on_loss(f"{self._first_lost}{times}; see {ERROR_LOG}")
        self.untold = False

    def _write_or_remember(self, line: str) -> None:
        try:
            self.write(line)
        except OSError as error:
            if interrupts(error):
                raise
            self._unlogged = self._unlogged or f"{line} ({error.strerror or error})"

    def write(self, text: str) -> None:
        """Append a line to the file. Raises OSError when the disk refuses."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {printable(text)}\n"
        with self._files.append(ERROR_LOG) as log:
            log.write(line.encode())

    @property
    def is_written(self) -> bool:
        """Whether there is a line in the file."""
        try:
            return bool(self._files.stat(ERROR_LOG))
        except FileNotFoundError:
            return False

    def absorb(self, other: ErrorLog) -> None:
        """Append the lines of another dump's log. Raises OSError."""
        if other.is_written:
            with self._files.append(ERROR_LOG) as mine, other._files.open(ERROR_LOG) as theirs:
                mine.write(theirs.read())


def _place(error: BaseException) -> str:
    """Where it was raised; the source is not read, which need not be a file."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "unknown place" if last is None else f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}"
