"""Judges calls that were received, in workers, as the pre-check of a dump judges them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from msprobe_ms.accuracy.calls import read_calls
from msprobe_ms.accuracy.execution.check import Task, check, skipped
from msprobe_ms.accuracy.execution.in_workers import WORKER_MEMORY, in_workers
from msprobe_ms.accuracy.judging.model import ApiResult, Status
from msprobe_ms.accuracy.judging.reasons import LOST_WITH_WORKER, NOT_RECEIVED
from msprobe_ms.accuracy.receiving.settings import Receiving
from msprobe_ms.accuracy.selection import reason_against
from msprobe_ms.remote.inbox import NAME, REASON, Client, Kept
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.translation import tr
from msprobe_ms.support.workers import processes

#: Calls whose tensors are kept that are wrong; how often this process may have died of a call.
_MOST_SAVED, _MOST_TRIES = 20, 3
_TRIED = "tried"


class Judge:
    """Gives each received call its row."""

    def __init__(self, receiving: Receiving, errors: Path | None) -> None:
        """``errors``: where tensors go of what is wrong; None: nowhere."""
        self._receiving, self._errors = receiving, errors
        self._pool = processes(receiving.workers * 8, WORKER_MEMORY, most=receiving.workers)
        self._saved = 0
        #: Calls that this process has begun to judge.
        self._tried: set[Path] = set()
        #: Rank → framework of its calls.
        self.frameworks: dict[int, str] = {}

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def results(self, kept: Sequence[Kept], clients: Mapping[str, Client]) -> Iterator[tuple[Kept, ApiResult]]:
        """Judge calls; yield each with its row."""
        tasks: list[Task] = []
        waiting: list[tuple[Kept, str]] = []
        for each in kept:
            name, found = self._task(each, clients)
            if isinstance(found, Task):
                tasks.append(found)
                waiting.append((each, name))
            else:
                yield each, replace(found, name=name)
        judged = in_workers(check, tasks, _lost, self._receiving.workers, self._pool)
        for (each, name), result in zip(waiting, judged, strict=True):
            self._saved += any(row.status is Status.ERROR for row in result.details)
            before = name.removesuffix(result.name)
            details = tuple(replace(row, name=before + row.name) for row in result.details)
            yield each, replace(result, name=name, details=details)

    def _task(self, kept: Kept, clients: Mapping[str, Client]) -> tuple[str, Task | ApiResult]:
        """The name of a call's row, and how it is judged: as the call of a dump, by the name that it has there, which
        draws depend on; a row where it is not."""
        client = clients[kept.client]
        before = name_before(client, clients)
        try:
            calls = read_calls(kept.folder / "dump.json")
        except MsprobeError as error:
            return f"{before}call {kept.number}", _skip(tr("cannot be read: {error}", error=error))
        name = f"{before}{calls.envelope.get(NAME)}"
        if reason := calls.envelope.get(REASON):
            return name, _skip(tr("{lost}: {reason}", lost=NOT_RECEIVED, reason=reason))
        self.frameworks.setdefault(client.hello.rank, calls.framework)
        if len(calls.apis) != 1:
            return name, _skip(next(iter(calls.others.values()), tr("not an API call")))
        (call,) = calls.apis.values()
        if reason := reason_against(call, self._receiving.selection):
            return name, skipped(call, reason)
        if not self._may_try(kept):
            return name, skipped(
                call,
                tr(
                    "{lost}: the process that judges ended in it, again and again",
                    lost=LOST_WITH_WORKER,
                ),
            )
        options = replace(
            self._receiving.options, dump=calls.path, framework=calls.framework, device=client.hello.device
        )
        return name, Task(call, options, self._folder_of_errors(client, name.removesuffix(call.name)))

    def _folder_of_errors(self, client: Client, before: str) -> Path | None:
        if self._errors is None or self._saved >= _MOST_SAVED:
            return None
        step = "".join(each if each.isalnum() else "_" for each in before.rstrip("."))
        return self._errors / f"rank{client.hello.rank}_{step[:100]}"

    def _may_try(self, kept: Kept) -> bool:
        """Count that a call is about to be judged: this process may be killed meanwhile, or die of it."""
        if kept.folder in self._tried:
            return True
        self._tried.add(kept.folder)
        with suppress(OSError), open(kept.folder / _TRIED, "ab") as file:
            if file.tell() >= _MOST_TRIES:
                return False
            file.write(b"x")
        return True


def name_before(client: Client, clients: Mapping[str, Client]) -> str:
    """What names of calls begin with: nothing for the first training of a rank, ``training2.`` for the next."""
    earlier = sum(other.hello.rank == client.hello.rank and other.order < client.order for other in clients.values())
    return f"training{earlier + 1}." if earlier else ""


def _skip(reason: str) -> ApiResult:
    return ApiResult("", Status.SKIP, None, reason)


def _lost(task: Task, reason: str) -> ApiResult:
    return skipped(task.call, tr("{lost}: {reason}", lost=LOST_WITH_WORKER, reason=reason))
