"""Task overflow_check: record only calls that hold an infinity or a NaN, with their tensors.

What is written: docs/format.md, "Overflow check".
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.names import FORWARD, PARAMETERS_GRAD, parse_entry
from msprobe_ms.dump.writing.json_text import TensorLeaf, Value, Whole
from msprobe_ms.dump.writing.memory_budget import Copy, MemoryBudget, OutOfMemory, Write
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.recording.output.step_dump import EntrySink

#: Entries of a step that are named, before they are only counted.
_MOST_NAMED = 10

#: Fields of an entry → what names of their items begin with.
_CATEGORIES = {"input_args": "input", "input_kwargs": "kwargs"}

_FRAME = re.compile(r"File (.+), line (\d+), in ")


class OverflowQuota:
    """How many entries a debugger still records, over all its steps; -1 for any number."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._warned = False
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

    def warn_when_spent(self) -> None:
        """Warn once when it is spent."""
        if self.spent and not self._warned:
            self._warned = True
            logger.warning(tr("overflow_check: overflow_nums {limit} is reached, recording ends", limit=self._limit))


class _Held:
    """An entry whose call is not over yet."""

    __slots__ = ("bad", "fields", "files", "without_file")

    def __init__(self) -> None:
        self.fields: dict[str, Value | Whole] = {}
        #: By name of the file: what writes it, and the bytes that keeps.
        self.files: dict[str, tuple[Write, int]] = {}
        #: Names of files for which there was no room.
        self.without_file: list[str] = []
        #: The first item that overflows, and what it holds: ``output.0``, ``a NaN``.
        self.bad: tuple[str, str] | None = None


class OverflowGate:
    """An `EntrySink` that holds each entry and its tensors until its call is over, and hands it on if it overflows.

    That holds the tensors of the calls that are open, one inside the other, and of those whose backward has begun, as
    far as ``budget`` goes.
    """

    def __init__(
        self,
        sink: EntrySink,
        quota: OverflowQuota,
        budget: MemoryBudget,
        errors: ErrorLog,
        quietly: Callable[..., Any],
    ) -> None:
        """``quietly`` calls a function that has the framework write a tensor, with what follows it."""
        self._sink = sink
        self._quota = quota
        self._quietly = quietly
        self._budget = budget
        self._errors = errors
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
        self._sink.call_site(number, frames)

    def tensor(self, data_name: str, write: Write, entry: str, copy: Copy | None = None) -> bool:
        """Hold a copy, if there is room for one."""
        if copy is None:
            return self._sink.tensor(data_name, write, entry)
        if not self._budget.take(copy.size):
            self._hold(entry).without_file.append(data_name)
            return False
        try:
            self._hold(entry).files[data_name] = copy.make(), copy.size
        except BaseException:
            self._budget.give(copy.size)
            raise
        return True

    def entry(self, part: EntryPart) -> None:
        """Record an entry that overflows; hold a part of which more is expected, drop what is whole and does not."""
        name, held = part.name, self._hold(part.name)
        held.fields.update(part.fields)
        if held.bad is None:
            held.bad = _first_not_finite(name, part.fields)
        if part.complete:
            del self._held[name]
        if part.call_site is not None:
            self._sites[name] = part.call_site
        if name not in self._recorded:
            if held.bad is None or not self._quota.take():
                if part.complete:
                    self._let_go(held)
                return
            self._recorded.add(name)
            self._warn(name, *held.bad)
        for data_name, write, size in self._let_go(held):
            try:
                self._quietly(self._sink.tensor, data_name, write, name, Copy(size, partial(_itself, write)))
            except Exception as error:  # the entry is worth recording all the same
                self._errors.report(error, data_name)
        self._sink.entry(EntryPart(name, list(held.fields.items()), part.parent, part.call_site, stays=part.stays))
        for data_name in held.without_file:
            self._errors.report(OutOfMemory(f"{self._budget} was in use for the calls that were open"), data_name)
        held.fields, held.without_file = {}, []

    def forget(self, name: str) -> None:
        """The call raised: what it was given is held no longer."""
        if (held := self._held.pop(name, None)) is not None:
            self._let_go(held)

    def _let_go(self, held: _Held) -> list[tuple[str, Write, int]]:
        """The tensors held, which are no longer."""
        files, held.files = held.files, {}
        for _, size in files.values():
            self._budget.give(size)
        return [(name, write, size) for name, (write, size) in files.items()]

    def _warn(self, name: str, item: str, what: str) -> None:
        if len(self._recorded) <= _MOST_NAMED:
            parsed = parse_entry(name)
            forward = name if parsed is None else str(parsed.in_direction(FORWARD))
            place = self._places.get(self._sites.get(forward, -1), "")
            logger.warning(
                tr(
                    "overflow_check: {name}: {item} holds {what}{place}",
                    name=name,
                    item=item,
                    what=what,
                    place=place and tr(", called at {site}", site=place),
                )
            )
        self._quota.warn_when_spent()

    def warn_of_unnamed(self) -> None:
        """Warn of how many calls of the step overflowed, where not all were named."""
        if len(self._recorded) > _MOST_NAMED:
            said = tr(
                "overflow_check: {count} calls of this step hold an infinity or a NaN; the first {named} are named "
                "above",
                count=len(self._recorded), named=_MOST_NAMED,
            )  # fmt: skip
            logger.warning(said)

    def _hold(self, entry: str) -> _Held:
        return self._held.setdefault(entry, _Held())


def _first_not_finite(entry: str, fields: Iterable[tuple[str, Value | Whole]]) -> tuple[str, str] | None:
    """The first tensor whose Max or Min is not finite, ``output.0``, and what it holds; None where there is none."""
    for field, value in fields:
        if isinstance(value, Whole):
            value = value.value
        if f".{PARAMETERS_GRAD}." in entry and isinstance(value, list):
            (value,) = value  # the field is named like the parameter and holds its gradient alone
        found = _not_finite(value)
        if found is not None:
            path, what = found
            return ".".join(filter(None, (_CATEGORIES.get(field, field), *path))) or "it", what
    return None


def _not_finite(value: Value | Whole) -> tuple[list[str], str] | None:
    if isinstance(value, TensorLeaf):
        bad = [end for end in (value.maximum, value.minimum) if isinstance(end, float) and not math.isfinite(end)]
        return ([], tr("a NaN") if any(map(math.isnan, bad)) else tr("an infinity")) if bad else None
    named: Iterable[tuple[object, Value]] = ()
    if isinstance(value, Mapping):
        named = value.items()
    elif isinstance(value, (list, tuple)):
        named = enumerate(value)
    for key, member in named:
        if (found := _not_finite(member)) is not None:
            return [str(key), *found[0]], found[1]
    return None


def _itself(write: Write) -> Write:
    return write


def _place(frames: Sequence[str]) -> str:
    """The innermost frame outside the frameworks, as ``file:line``."""
    own = outside_frameworks(frames)
    found = _FRAME.match(own[0]) if own else None
    return f"{found[1]}:{found[2]}" if found else ""
