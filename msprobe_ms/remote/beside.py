"""A process beside a training, as that sees it: begun when needed, again when it dies, waited for in the end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

from msprobe_ms.remote.spool import Spool
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Seconds after which the user is told what is waited for.
_SILENCE = 2.0
#: References add up in the same order on every machine, and leave the processors to the training.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class ProcessBeside:
    """Does something with what lies in a spool. The training waits for it at its own end alone."""

    #: How often it is begun for one training at most, each time after the one before has died.
    most_starts = 3
    #: The exit status by which it says that no other is to be begun.
    final: int | None = None

    def __init__(self, spool: Spool, module: str, settings: str, patience: float, does: str, log: str) -> None:
        """``module`` is run with the spool, the training's process and ``settings``; what it ``does``, and the word
        that its lines of the log begin with. ``patience``: seconds that it may go without a sign of progress in the
        end."""
        self._spool, self._module, self._settings = spool, module, settings
        self._patience, self._does, self._log = patience, does, log
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def keep_alive(self) -> bool:
        """Begin it where it does not run; whether it does now."""
        if self._process is not None and self._process.poll() is None:
            return True
        status = None if self._process is None else self._process.returncode
        if self._starts == self.most_starts or (status is not None and status == self.final):
            return False
        if status is not None:
            logger.warning(
                tr(
                    "{log}: the process that {does} ended with {status}; another goes on",
                    log=self._log,
                    does=self._does,
                    status=status,
                )
            )
        self._starts += 1
        return self.start()

    def start(self, *further: str) -> bool:
        """Begin it, with ``further`` arguments; whether that could be done."""
        command = [
            sys.executable,
            "-m",
            self._module,
            str(self._spool.folder.absolute()),
            str(os.getpid()),
            self._settings,
        ]
        try:
            self._process = subprocess.Popen(
                [*command, *further],
                cwd=self._spool.folder,
                env={**os.environ, **_ONE_THREAD},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # what interrupts the training leaves it alone
            )
        except OSError as error:
            if interrupts(error):
                raise
            reason = error.strerror or error
            logger.warning(
                tr(
                    "{log}: the process that {does} cannot be begun: {reason}",
                    log=self._log,
                    does=self._does,
                    reason=reason,
                )
            )
            return False
        return True

    def waited(self) -> bool | None:
        """Wait for its end: True when that was a good one, False where it died, None where it showed no progress."""
        began = seen = time.time()
        told = False
        while True:
            process = self._process
            assert process is not None
            with suppress(subprocess.TimeoutExpired):
                if process.wait(0.05) == 0:
                    return True
                if not self.keep_alive():
                    return False
                continue
            now = time.time()
            seen = max(seen, self._spool.last_progress())
            if not told and now - began > _SILENCE:
                told = True
                logger.info(
                    tr(
                        "{log}: the training is over; the process that {does} goes on for what is left",
                        log=self._log,
                        does=self._does,
                    )
                )
            if now - seen > self._patience:
                process.kill()
                process.wait()
                return None
