"""The process that judges, as the training sees it."""

from __future__ import annotations

from msprobe_ms.accuracy.online.settings import Judging
from msprobe_ms.remote.beside import ProcessBeside
from msprobe_ms.remote.spool import Spool
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

_NOT_REACHED = tr("timed out: the process that judges did not come to it")
_DIED = tr("lost with worker: the process that judges could not be kept alive")


class CheckerProcess(ProcessBeside):
    """Judges what lies in a spool."""

    def __init__(self, spool: Spool, judging: Judging) -> None:
        module = "msprobe_ms.accuracy.online.checker"
        super().__init__(spool, module, judging.to_json(), judging.patience, tr("judges"), "check")

    def finish(self) -> None:
        """Wait until all is judged, as long as something is; what is left then gets rows that say so."""
        done = self.keep_alive() and self.waited()
        if done:
            return
        reason = _NOT_REACHED if done is None else _DIED
        if not (self.start(reason) and self.waited()):
            logger.warning(
                tr("check: tables are as they were last; what was not judged is in {folder}", folder=self._spool.folder)
            )
