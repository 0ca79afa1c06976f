"""The steps of a training on their way to a server: whether there is room for one, and the process that sends them.

With no room for a step, the training waits, as long as it was told to, and then goes on without that step; it does not
wait again until there was room once more. What is not sent has its number and its reason all the same.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from pathlib import Path

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.sending import SenderProcess, Sending, client_name
from msprobe_ms.remote.spool import DUMP, NO_ROOM, Progress, Spool
from msprobe_ms.support.interruptions import suppress_own
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

MIB = 1 << 20
#: Seconds between two looks for room, and between two reports of how far the training is.
_PAUSE = 0.02


class Outgoing:
    """One training's steps. It is a `CallQuota` as well: tensors are recorded as far as there is room."""

    def __init__(self, address: Address, folder: Path, disk: int, wait: float) -> None:
        """``folder`` is where steps wait, ``disk`` how many bytes may, ``wait`` the seconds that a step waits for
        room."""
        self._address, self._disk, self._wait = address, disk, wait
        self.folder = folder / f".sending_{os.getpid()}_{secrets.token_hex(8)}"
        self._spool = Spool(self.folder)
        self._process: SenderProcess | None = None
        #: Steps that were handed over or dropped; those that are not sent, the first and the latest, and whether the
        #: training has waited for nothing.
        self._samples, self._steps = 0, 0
        self._dropped: tuple[int, int] | None = None
        self._stalled = False
        #: Bytes that the step may take, and whether it wanted more.
        self._left, self._full = 0, False
        self._latest, self._run = -1, 1

    def begin(self, step: int, rank: int, *, speaks: bool) -> bool:
        """A step begins; whether it is recorded. Raises OSError: steps cannot be kept there."""
        if self._process is None:
            self._spool.make()
            name = client_name(rank, self._spool)
            self._process = SenderProcess(self._spool, Sending(self._address, name, rank, speaks=speaks))
        if step <= self._latest:
            self._run += 1
        self._latest = step
        self._steps += 1
        self._report(ended=False)
        waiting = self._waiting() if self._process.keep_alive() else self._disk
        self._left, self._full = self._disk - waiting, False
        if waiting > self._disk // 2:
            self._drop(step)
            return False
        self._hand_over_dropped()
        return True

    def _waiting(self) -> int:
        """Bytes that wait to be sent, once there is room or the wait is over."""
        until = time.monotonic() + (0 if self._stalled else self._wait)
        while (waiting := self._spool.waiting()) > self._disk // 2 and time.monotonic() < until:
            time.sleep(_PAUSE)
        stalled, self._stalled = self._stalled, waiting > self._disk // 2
        if self._stalled and not stalled:
            logger.warning(
                tr("online check: {waiting} MiB wait to be sent to {address}; steps are not recorded until "
"there is room", waiting=waiting // MIB, address=self._address),
            )  # fmt: skip
        return waiting

    def takes(self, base: str) -> bool:
        """All calls are recorded."""
        return True

    def fits(self, size: int) -> bool:
        """Take room for a tensor."""
        if size > self._left:
            self._full = True
            return False
        self._left -= size
        return True

    def end(self, dump: Path, step: int) -> None:
        """A recorded step is over: it is sent. Raises OSError."""
        if not (dump / DUMP).exists():
            shutil.rmtree(dump, ignore_errors=True)
            with suppress_own(OSError):
                dump.parent.rmdir()
            return
        if self._full:
            (dump / NO_ROOM).touch()
        self._samples += 1
        self._spool.hand_over(dump, self._samples, self._name(step))
        if self._process is not None:
            self._process.keep_alive()

    def finish(self) -> None:
        """The training is over: wait while what is left is being sent."""
        if self._process is None:
            return
        with suppress_own(OSError):
            self._hand_over_dropped()
            self._report(ended=True)
        self._process.finish()

    def _name(self, step: int) -> str:
        return f"step{step}" if self._run == 1 else f"run{self._run}.step{step}"

    def _drop(self, step: int) -> None:
        if self._dropped is not None and step <= self._dropped[1]:
            self._hand_over_dropped()
        first = step if self._dropped is None else self._dropped[0]
        self._dropped = first, step

    def _hand_over_dropped(self) -> None:
        if self._dropped is None:
            return
        first, last = self._dropped
        name = self._name(first) if first == last else f"{self._name(first)}-step{last}"
        self._samples += 1
        self._spool.hand_over_dropped(
            self._samples, name, tr("not recorded: what waited to be sent before it took all the room")
        )
        self._dropped = None

    def _report(self, *, ended: bool) -> None:
        self._spool.tell(Progress(self._steps, self._steps, {}, {}, "", ended))
