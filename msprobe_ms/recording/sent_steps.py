"""Steps that are sent instead of kept (``online_run_ut``): a dumper around the one of the execution mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msprobe_ms.recording.progress import speaks
from msprobe_ms.recording.step import Dumper, Step
from msprobe_ms.remote.addresses import CLIENT, configured
from msprobe_ms.remote.outgoing import MIB, Outgoing
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import logger
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from pathlib import Path

    from msprobe_ms.config import Config


def outgoing_of(config: Config) -> Outgoing | None:
    """Return where steps are sent to; None where they are kept. Raises UsageError: it cannot be used."""
    if not config.online_run_ut:
        return None
    address = configured(
        nfs_path=config.nfs_path,
        host=config.host,
        port=config.port,
        tls_path=config.tls_path,
        unencrypted=config.unencrypted,
        side=CLIENT,
    ).checked(CLIENT)
    return Outgoing(address, config.dump_path, config.online_disk * MIB, config.online_wait)


class SendingDumper(Dumper):
    """Opens the steps of another dumper where they wait to be sent, and hands them over when they are finished."""

    def __init__(self, inner: Dumper, outgoing: Outgoing) -> None:
        self._inner, self._outgoing = inner, outgoing
        self.in_graphs = inner.in_graphs
        self._process = ThisProcess()
        #: The step that was opened last, and its number.
        self._opened: tuple[Step, int] | None = None
        self._failed = False

    def open(self, config: Config, step: int, rank: int | None) -> Step | None:
        self._hand_over()
        try:
            if not self._process.is_mine:
                return None
            if not self._outgoing.begin(step, rank or 0, speaks=speaks(config, rank)):
                return None
        except OSError as error:
            self._say(error)
            return None
        # Sketches and call sites are for readers of dumps.
        own = {"dump_path": self._outgoing.folder, "sketch": False, "extra_info": False}
        opened = self._inner.open(config.model_copy(update=own), step, rank)
        self._opened = None if opened is None else (opened, step)
        return opened

    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> Step | None:
        return self._inner._open(config, folder, step, rank)

    def announce(self, models: Sequence[Any]) -> None:
        self._inner.announce(models)

    def step_ended(self, step: int) -> None:
        self._inner.step_ended(step)
        self._hand_over()

    def close(self) -> None:
        self._hand_over()
        self._inner.close()
        if self._process.is_mine:
            self._outgoing.finish()

    def _hand_over(self) -> None:
        if self._opened is None or not self._opened[0].ending or not self._process.is_mine:
            return
        (opened, step), self._opened = self._opened, None
        try:
            self._outgoing.end(opened.folder, step)
        except OSError as error:
            self._say(error)

    def _say(self, error: OSError) -> None:
        if interrupts(error):
            raise error
        if not self._failed:
            self._failed = True
            logger.warning(
                tr(
                    "online check: {folder}: {strerror}; the training goes on",
                    folder=self._outgoing.folder,
                    strerror=error.strerror or error,
                )
            )
