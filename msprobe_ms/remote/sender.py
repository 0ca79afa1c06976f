"""The process beside a training that sends its calls: until the training is over and the server has them all.

``python -m msprobe_ms.remote.sender SPOOL PARENT SENDING``. PARENT is the training's process; SENDING as
`Sending.to_json` writes it. Whatever fails, the training goes on, and sending is tried again.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msprobe_ms.remote.links import Closed, Link, link_to
from msprobe_ms.remote.messages import Coverage, End, Ended, Hello, MessageError
from msprobe_ms.remote.outbox import Outbox
from msprobe_ms.remote.sending import REFUSED, Sending
from msprobe_ms.remote.spool import Spool
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Seconds between two looks at the spool, and the first and longest wait before sending is tried again.
_PAUSE, _FIRST_WAIT, _LONGEST_WAIT = 0.05, 0.2, 5.0
#: The training has the processor first.
_NICE = 19
#: What a way to the server raises where it breaks.
_BROKEN = (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, MessageError, Closed, MsprobeError)


class Sender:
    """Sends what lies in a spool, in order, again where the connection breaks."""

    def __init__(self, spool: Spool, sending: Sending, parent: int) -> None:
        self._spool, self._sending, self._parent = spool, sending, parent
        self._outbox = Outbox(spool)
        self._progressed = time.monotonic()
        self._wait = _FIRST_WAIT
        self._said: set[str] = set()

    async def run(self) -> None:
        """Send until all is sent, or, with the training over, nothing could be sent for long.

        Raises Closed: the server does not take this training.
        """
        session = asyncio.create_task(self._try())
        while not session.done():
            await asyncio.wait({session}, timeout=0.2)
            if self._is_over() and time.monotonic() - self._progressed > self._sending.patience:
                session.cancel()
                await asyncio.gather(session, return_exceptions=True)
                break
            if not self._is_over():
                self._progressed = time.monotonic()
        if session.done() and not session.cancelled():
            self._tell_end(session.result())
            return
        with suppress(OSError):
            deque(self._outbox.beyond(0, unfinished=True), 0)  # to count them
        left = self._outbox.count - self._outbox.acknowledged
        logger.warning(
            tr(
                "online check: {left} of {count} calls could not be sent to {address}",
                left=left,
                count=self._outbox.count,
                address=self._sending.address,
            )
        )

    async def _try(self) -> Ended | None:
        """Send until all is sent."""
        while True:
            link = link_to(self._sending.address, self._acknowledged)
            try:
                return await self._session(link)
            except _BROKEN as error:
                if isinstance(error, Closed) and not error.later:
                    raise
                self._tell_broken(error)
            finally:
                await link.close()
            await asyncio.sleep(self._wait)
            self._wait = min(_LONGEST_WAIT, 2 * self._wait)

    async def _session(self, link: Link) -> Ended | None:
        device = self._spool.progress().device
        hello = Hello(client=self._sending.client, rank=self._sending.rank, device=device[:40])
        sent = await link.open(hello)
        if "connected" not in self._said and self._sending.speaks:
            logger.info(tr("online check: calls are sent to {address}", address=self._sending.address))
        elif self._said - {"connected"}:
            logger.info(tr("online check: {address} is reached again", address=self._sending.address))
        self._said = {"connected"}
        self._acknowledged(sent)
        sent = max(sent, self._outbox.acknowledged)
        while True:
            over = self._is_over()  # asked before what is there: nothing comes after
            for number, frame in self._outbox.beyond(sent, unfinished=over):
                await link.send(number, frame())
                sent = number
            if over:
                return await link.end(self._end())
            await asyncio.sleep(_PAUSE)

    def _is_over(self) -> bool:
        return self._is_killed() or self._spool.progress().ended

    def _is_killed(self) -> bool:
        return os.getppid() != self._parent

    def _end(self) -> End:
        progress = self._spool.progress()
        coverage = Coverage.model_validate(
            {"steps": progress.steps, "sampled": progress.sampled, "calls": dict(progress.calls),
             "unchecked": dict(progress.unchecked)}
        )  # fmt: skip
        return End(count=self._outbox.count, killed=not progress.ended, coverage=coverage)

    def _acknowledged(self, number: int) -> None:
        if number > self._outbox.acknowledged:
            self._progressed, self._wait = time.monotonic(), _FIRST_WAIT
            self._outbox.acknowledge(number)
            self._spool.note_progress()

    def _tell_broken(self, error: BaseException) -> None:
        """Say it once for each reason, until the server is reached again."""
        reason = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or str(error)
        text = reason or type(error).__name__
        if text not in self._said:
            self._said.add(text)
            where = self._sending.address
            logger.warning(
                tr("online check: {where}: {text}; the training goes on, and it is tried again", where=where, text=text)
            )

    def _tell_end(self, ended: Ended | None) -> None:
        count, where = self._outbox.count, self._sending.address
        if ended is None:
            logger.info(tr("online check: {count} calls are in {where}", count=count, where=where))
            return
        missing = tr(", {missing} did not come", missing=ended.missing) if ended.missing else ""
        logger.info(
            tr("online check: {count} calls were sent to {where}{missing}; it has judged {judged} so far, "
"results that are wrong: {wrong}", count=count, where=where, missing=missing, judged=ended.judged, wrong=ended.wrong),
        )  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Send what lies in a spool."""
    folder, parent, settings = arguments
    os.nice(_NICE)
    spool, sending = Spool(Path(folder)), Sending.from_json(settings)
    try:
        asyncio.run(Sender(spool, sending, int(parent)).run())
    except Closed as error:
        logger.warning(
            tr(
                "online check: {address}: {error}; nothing is sent, the training goes on",
                address=sending.address,
                error=error,
            )
        )
        sys.exit(REFUSED)
    spool.discard()


if __name__ == "__main__":
    main(sys.argv[1:])
