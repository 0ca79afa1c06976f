"""The rows of what was received: one set of tables a rank, which grow, and say in the end what did not come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msprobe_ms.accuracy.checked import Checked
from msprobe_ms.accuracy.error_data import error_folder
from msprobe_ms.accuracy.execution.journal import Journal
from msprobe_ms.accuracy.execution.runs import PREFIX
from msprobe_ms.accuracy.judging.model import ApiResult, Profile, Status
from msprobe_ms.accuracy.judging.reasons import NOT_RECEIVED
from msprobe_ms.accuracy.online.growing_table import not_sampled
from msprobe_ms.accuracy.page import write_check_page
from msprobe_ms.accuracy.receiving.judge import name_before
from msprobe_ms.accuracy.summary import verdict_line
from msprobe_ms.accuracy.tables import write_tables
from msprobe_ms.remote.inbox import Client
from msprobe_ms.remote.messages import Ended
from msprobe_ms.remote.spool import Progress
from msprobe_ms.support.translation import tr

#: Rows of numbers that did not come, of one client.
_MOST_GAPS = 10_000


class RankTables:
    """``results`` by client and number, those of an earlier process of this run first."""

    def __init__(self, folder: Path, timestamp: str, journal: Journal, profile: Profile) -> None:
        self._folder, self._timestamp, self._journal, self._profile = folder, timestamp, journal, profile
        self.results = {_parsed(key): ApiResult.from_json(content) for key, content in journal.done.items()}

    def add(self, client: str, number: int, result: ApiResult) -> None:
        """Keep a row; it is in the journal when this returns. Raises OSError."""
        self._journal.add(f"{client} {number}", result.to_json())
        self.results[client, number] = result

    def ended(self, client: Client) -> Ended:
        """What a client is told at its end."""
        rows = [result for (name, _), result in list(self.results.items()) if name == client.hello.client]
        wrong = sum(row.status is Status.ERROR for result in rows for row in result.details)
        count = 0 if client.end is None else client.end.count
        missing = sum(len(gap) for gap in client.received.missing(count))
        return Ended(judged=len(rows), wrong=wrong, missing=missing)

    def write(self, rank: int, framework: str, clients: Mapping[str, Client], *, over: bool = False) -> Checked:
        """Write the tables of a rank; when it is ``over``, with what did not come. Raises UsageError."""
        checked = Checked(list(self._rows(rank, clients, over=over)))
        checked.errors = error_folder(self._folder, self._timestamp)
        timestamp = f"{self._timestamp}_rank{rank}"
        checked.files = write_tables(self._folder, timestamp, checked.results, self._profile, framework)
        return checked

    def write_page(self, rank: int, checked: Checked) -> None:
        """Write the page of a rank to look at. Raises UsageError."""
        page = self._folder / f"{PREFIX}report_{self._timestamp}_rank{rank}.html"
        write_check_page(page, None, checked.results, verdict_line(f"rank {rank}", checked))
        checked.files.append(page)

    def _rows(self, rank: int, clients: Mapping[str, Client], *, over: bool) -> Iterator[ApiResult]:
        mine = sorted((each for each in clients.values() if each.hello.rank == rank), key=lambda each: each.order)
        results = sorted(self.results.items(), key=lambda item: item[0][1])
        for client in mine:
            yield from (result for (name, _), result in results if name == client.hello.client)
            if over:
                yield from _not_received(client, name_before(client, clients))
            if client.end is not None:
                told = client.end.coverage
                yield from not_sampled(Progress(told.steps, told.sampled, told.calls, told.unchecked))
        if over and not mine:
            yield _skip(f"rank{rank}", tr("no training of this rank came"))


def _not_received(client: Client, before: str) -> Iterator[ApiResult]:
    end = client.end
    count = max(client.received.highest, 0 if end is None else end.count)
    for gap, _ in zip(client.received.missing(count), range(_MOST_GAPS), strict=False):
        name = f"call {gap[0]}" if len(gap) == 1 else f"calls {gap[0]}-{gap[-1]}"
        yield _skip(f"{before}{name}", tr("these numbers did not come"))
    if end is None:
        yield _skip(
            f"{before}after call {count}",
            tr("the training did not say whether there was more"),
        )


def _skip(name: str, reason: str) -> ApiResult:
    return ApiResult(name, Status.SKIP, None, tr("{lost}: {reason}", lost=NOT_RECEIVED, reason=reason))


def _parsed(key: str) -> tuple[str, int]:
    client, _, number = key.rpartition(" ")
    return client, int(number)
