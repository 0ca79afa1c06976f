"""The process that judges, as the training sees it: begun with the first sample, again when it dies, waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

from msprobe_ms.accuracy.online.settings import Judging
from msprobe_ms.accuracy.online.spool import Spool
from msprobe_ms.support.log import logger

#: Processes that are begun for one training at most, each after the one before has died.
_MOST_STARTS = 3
#: Seconds after which the user is told what is waited for.
_SILENCE = 2.0
_NOT_REACHED = "timed out: the process that judges did not come to it"
_DIED = "lost with worker: the process that judges could not be kept alive"
#: References add up in the same order on every machine, and leave the processors to the training.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class CheckerProcess:
    """Judges what lies in a spool. The training waits for it at its own end alone."""

    def __init__(self, spool: Spool, judging: Judging) -> None:
        self._spool, self._judging = spool, judging
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def keep_alive(self) -> bool:
        """Begin it where it does not run; whether it does now."""
        if self._process is not None and self._process.poll() is None:
            return True
        if self._starts == _MOST_STARTS:
            return False
        if self._process is not None:
            logger.warning("check: the process that judges ended with %d; another goes on", self._process.returncode)
        self._starts += 1
        return self._start()

    def _start(self, *reason: str) -> bool:
        module = "msprobe_ms.accuracy.online.checker"
        command = [sys.executable, "-m", module, str(self._spool.folder), str(os.getpid()), self._judging.to_json()]
        try:
            self._process = subprocess.Popen(
                [*command, *reason],
                cwd=self._spool.folder,
                env={**os.environ, **_ONE_THREAD},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # what interrupts the training leaves it alone
            )
        except OSError as error:
            logger.warning("check: the process that judges cannot be begun: %s", error.strerror or error)
            return False
        return True

    def finish(self) -> None:
        """Wait until all is judged, as long as something is; what is left then gets rows that say so."""
        reason = _DIED
        if self.keep_alive() and (reason := self._waited()) == "":
            return
        if not (self._start(reason) and self._waited() == ""):
            logger.warning("check: tables are as they were last; what was not judged is in %s", self._spool.folder)

    def _waited(self) -> str:
        """Wait for its end; "" when that was a good one, else why what is left has no row yet."""
        began = seen = time.time()
        told = False
        while True:
            process = self._process
            assert process is not None
            with suppress(subprocess.TimeoutExpired):
                if process.wait(0.05) == 0:
                    return ""
                if not self.keep_alive():
                    return _DIED
                continue
            now = time.time()
            seen = max(seen, self._spool.last_progress())
            if not told and now - began > _SILENCE:
                told = True
                logger.info("check: the training is over; sampled calls are still being judged")
            if now - seen > self._judging.patience:
                process.kill()
                process.wait()
                return _NOT_REACHED
