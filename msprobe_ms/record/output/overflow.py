"""Task overflow_check: only calls that hold an infinity or a NaN are recorded, with their tensors.

What is written: docs/format.md, "Overflow check".
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterable, Sequence
from functools import partial

from msprobe_ms.arrays.statistics import Statistics
from msprobe_ms.dump.names import FORWARD, parse_entry
from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.dump.writing.memory_budget import Copy, Memory, OutOfMemory, Write
from msprobe_ms.dump.writing.writer import DumpStore, TensorFiles
from msprobe_ms.record.output.error_log import ErrorLog
from msprobe_ms.support.log import logger

#: Entries of a step that are named, before they are only counted.
_MOST_TOLD = 10

_FRAME = re.compile(r"File (.+), line (\d+), in ")


class OverflowQuota:
    """How many entries a debugger still records, over all its steps; -1 for any number."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._told = False
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile

    @property
    def spent(self) -> bool:
        return self._taken == self._limit

    def take(self) -> bool:
        """Count an entry; False when it is one too many."""
        with self._lock:
            if self.spent:
                return False
            self._taken += 1
        return True

    def tell(self) -> None:
        """Say once that it is spent."""
        if self.spent and not self._told:
            self._told = True
            logger.warning("overflow_check: overflow_nums %d is reached, recording ends", self._limit)


class _Held:
    """An entry whose call is not over yet."""

    __slots__ = ("bad", "fields", "files", "without_file")

    def __init__(self) -> None:
        self.fields: dict[str, Value] = {}
        #: By name of the file: what writes it, and the bytes that keeps.
        self.files: dict[str, tuple[Write, int]] = {}
        #: Names of files for which there was no room.
        self.without_file: list[str] = []
        #: The first item that overflows, and what it holds: ``output.0``, ``a NaN``.
        self.bad: tuple[str, str] | None = None


class OverflowGate:
    """Stands before the store: holds each entry and its tensors until its call is over, passes it on if it overflows.

    That holds the tensors of the calls that are open, one inside the other, and of those whose backward has begun, as
    far as ``memory`` goes.
    """

    def __init__(
        self, store: DumpStore, files: TensorFiles, quota: OverflowQuota, memory: Memory, trouble: ErrorLog
    ) -> None:
        self._store = store
        self._files = files
        self._quota = quota
        self._memory = memory
        self._trouble = trouble
        self._held: dict[str, _Held] = {}
        self._recorded: set[str] = set()
        #: Call sites as ``file:line``, and those of forward calls, for their backward.
        self._places: dict[int, str] = {}
        self._sites: dict[str, int] = {}

    @property
    def full(self) -> bool:
        """Whether nothing new will be recorded."""
        return self._quota.spent

    def call_site(self, number: int, frames: Sequence[str]) -> None:
        self._places[number] = _place(frames)
        self._store.call_site(number, frames)

    def figures(self, entry: str, item: str, figures: Statistics) -> None:
        """Take note of the figures of a tensor: ``output.0`` of ``entry``."""
        bad = [value for value in figures[:2] if isinstance(value, float) and not math.isfinite(value)]
        if bad and (held := self._hold(entry)).bad is None:
            held.bad = item, "a NaN" if any(map(math.isnan, bad)) else "an infinity"

    def tensor(self, data_name: str, write: Write, entry: str, copy: Copy | None = None) -> bool:
        """Hold a copy, if there is room for one."""
        if copy is None:
            return self._files.tensor(data_name, write, entry)
        if not self._memory.take(copy.size):
            self._hold(entry).without_file.append(data_name)
            return False
        try:
            self._hold(entry).files[data_name] = copy.make(), copy.size
        except BaseException:
            self._memory.give(copy.size)
            raise
        return True

    def entry(
        self,
        name: str,
        fields: Iterable[tuple[str, Value]],
        parent: str | None = None,
        call_site: int | None = None,
        *,
        complete: bool = True,
        stays: bool = False,
    ) -> None:
        held = self._hold(name)
        held.fields.update(fields)
        if complete:
            del self._held[name]
        if call_site is not None:
            self._sites[name] = call_site
        if name not in self._recorded:
            if held.bad is None or not self._quota.take():
                if complete:
                    self._let_go(held)
                return
            self._recorded.add(name)
            self._tell(name, *held.bad)
        for data_name, write, size in self._let_go(held):
            try:
                self._files.tensor(data_name, write, name, Copy(size, partial(_itself, write)))
            except Exception as error:  # the entry is worth recording all the same
                self._trouble.report(error, data_name)
        self._store.entry(name, held.fields.items(), parent, call_site, stays=stays)
        for data_name in held.without_file:
            self._trouble.report(OutOfMemory(f"{self._memory} was in use for the calls that were open"), data_name)
        held.fields, held.without_file = {}, []

    def forget(self, name: str) -> None:
        """The call raised: what it was given is held no longer."""
        if (held := self._held.pop(name, None)) is not None:
            self._let_go(held)

    def _let_go(self, held: _Held) -> list[tuple[str, Write, int]]:
        """The tensors held, which are no longer."""
        files, held.files = held.files, {}
        for _, size in files.values():
            self._memory.give(size)
        return [(name, write, size) for name, (write, size) in files.items()]

    def _tell(self, name: str, item: str, what: str) -> None:
        if len(self._recorded) <= _MOST_TOLD:
            parsed = parse_entry(name)
            forward = name if parsed is None else str(parsed.in_direction(FORWARD))
            place = self._places.get(self._sites.get(forward, -1), "")
            logger.warning("overflow_check: %s: %s holds %s%s", name, item, what, place and f", called at {place}")
        self._quota.tell()

    def tell(self) -> None:
        """The step is over: say how many there were, where not all were named."""
        if len(self._recorded) > _MOST_TOLD:
            text = "overflow_check: %d calls of this step hold an infinity or a NaN; the first %d are named above"
            logger.warning(text, len(self._recorded), _MOST_TOLD)

    def _hold(self, entry: str) -> _Held:
        return self._held.setdefault(entry, _Held())


def _itself(write: Write) -> Write:
    return write


def _place(frames: Sequence[str]) -> str:
    """The innermost frame that is no installed package's, as ``file:line``."""
    own = [frame for frame in frames if "site-packages" not in frame] or frames
    found = _FRAME.match(own[0]) if own else None
    return f"{found[1]}:{found[2]}" if found else ""
