"""The checker host: listens, keeps what comes, judges it, writes tables; over when every rank has ended.

Killed at any moment and begun again with the same options and folder, it goes on: calls that came are in the inbox,
those that were judged in the journal, and trainings connect again by themselves.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from msprobe_ms.accuracy.checked import Checked
from msprobe_ms.accuracy.error_data import error_folder
from msprobe_ms.accuracy.execution.journal import Journal, options_key
from msprobe_ms.accuracy.execution.pace import Pace
from msprobe_ms.accuracy.execution.runs import opened_journal
from msprobe_ms.accuracy.receiving.judge import Judge
from msprobe_ms.accuracy.receiving.rank_tables import RankTables
from msprobe_ms.accuracy.receiving.settings import Receiving
from msprobe_ms.dump.dialects import PYTORCH
from msprobe_ms.remote.folder_server import FolderServer
from msprobe_ms.remote.inbox import Inbox, Kept
from msprobe_ms.remote.receiver import Receiver
from msprobe_ms.remote.stream_server import StreamServer
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

#: Calls that are handed to each worker at a time; seconds between two looks, and between two writings of the tables.
_BATCH, _PAUSE, _BETWEEN_TABLES = 8, 0.5, 10.0


def check_received(receiving: Receiving) -> dict[int, Checked]:
    """Judge what trainings send until each rank has ended; return what was found by rank.

    Raises UsageError: the address or the output folder cannot be used. Raises KeyboardInterrupt when it is told to end
    before: the tables then hold what is known, and the same command goes on with it.
    """
    with opened_journal(receiving.output, _key(receiving), None) as (journal, timestamp):
        host = _Host(receiving, journal, timestamp)
        try:
            found = asyncio.run(host.run())
        finally:
            host.close()
        journal.remove()
    return found


def _key(receiving: Receiving) -> str:
    """What tells one run from another."""
    options: dict[str, Any] = asdict(receiving.options)
    selection = {key: sorted(value) if isinstance(value, frozenset) else value
                 for key, value in asdict(receiving.selection).items()}  # fmt: skip
    return options_key({"received": sorted(receiving.ranks), **options, **selection})


class _Host:
    def __init__(self, receiving: Receiving, journal: Journal, timestamp: str) -> None:
        self._receiving = receiving
        folder = receiving.output
        self._tables = RankTables(folder, timestamp, journal, receiving.options.profile)
        try:
            self._inbox = Inbox(folder / f".received_{timestamp}", self._tables.results, receiving.disk)
        except OSError as error:
            raise UsageError(
                tr("{folder}: cannot be written: {strerror}", folder=folder, strerror=error.strerror or error)
            ) from error
        errors = error_folder(folder, timestamp) if receiving.options.save_errors else None
        self._judge = Judge(receiving, errors)
        self._pace = Pace(_BETWEEN_TABLES)
        self._stopped = False
        self._said = False

    def close(self) -> None:
        self._judge.close()

    async def run(self) -> dict[int, Checked]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        kind = FolderServer if self._receiving.address.folder else StreamServer
        server = kind(self._receiving.address, self._new_receiver)
        await server.start()
        ranks = tr_list(map(str, self._receiving.ranks))
        logger.info(
            tr("online check: waiting for ranks {ranks} at {address}", ranks=ranks, address=self._receiving.address)
        )
        try:
            while not (self._stopped or self._is_over(server.connected)):
                batch = self._inbox.waiting(_BATCH * self._receiving.workers)
                if batch:
                    await asyncio.to_thread(self._judge_batch, batch, loop)
                else:
                    await self._inbox.changed(_PAUSE)
                if self._pace.is_due:
                    with self._pace.writing():
                        await asyncio.to_thread(self._write, over=False)
        finally:
            await server.stop()
        if self._stopped:
            self._write(over=False)
            raise KeyboardInterrupt
        found = self._write(over=True)
        self._inbox.discard()
        return found

    def _new_receiver(self) -> Receiver:
        return Receiver(self._inbox, self._receiving.ranks, self._tables.ended)

    def _stop(self) -> None:
        self._stopped = True

    def _judge_batch(self, batch: Sequence[Kept], loop: asyncio.AbstractEventLoop) -> None:
        """Judge calls, in a thread of its own; each is deleted when its row is in the journal."""
        for kept, result in self._judge.results(batch, dict(self._inbox.clients)):
            try:
                self._tables.add(kept.client, kept.number, result)
            except OSError as error:
                self._say_full(error)
                return  # it is judged again when there is room
            loop.call_soon_threadsafe(self._inbox.judged, kept.client, kept.number)
            if self._stopped:
                return

    def _say_full(self, error: OSError) -> None:
        if not self._said:
            self._said = True
            logger.warning(
                tr(
                    "online check: rows cannot be written: {strerror}; it is tried again",
                    strerror=error.strerror or error,
                )
            )
        time.sleep(1)

    def _is_over(self, connected: int) -> bool:
        """Whether every rank has ended, or nothing has come for long, and all that came is judged."""
        clients = list(self._inbox.clients.values())
        if self._inbox.waiting(1) or not clients:
            return False
        ended = {client.hello.rank for client in clients if client.end is not None}
        if ended.issuperset(self._receiving.ranks) and all(client.end is not None for client in clients):
            return True
        return not connected and self._inbox.silent() > self._receiving.idle

    def _write(self, *, over: bool) -> dict[int, Checked]:
        """Write the tables of each rank that is known, in the end of each that was asked for."""
        clients = dict(self._inbox.clients)
        ranks = {client.hello.rank for client in clients.values()} | (set(self._receiving.ranks) if over else set())
        found = {}
        for rank in sorted(ranks):
            framework = self._judge.frameworks.get(rank) or next(iter(self._judge.frameworks.values()), PYTORCH.name)
            try:
                found[rank] = self._tables.write(rank, framework, clients, over=over)
                if over and self._receiving.page:
                    self._tables.write_page(rank, found[rank])
            except UsageError as error:
                if over:
                    raise
                logger.warning(tr("online check: {error}", error=error))
        return found
