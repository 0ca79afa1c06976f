"""What a training has recorded and a server has not: calls with numbers that stay theirs, deleted once acknowledged.

The recorded steps in the spool are the journal of the client: a step is deleted when the server has all of it. Only
which number each begins with is noted beside them, so that a sender that died goes on with the same numbers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator

from msprobe_ms.remote.items import OutgoingStep
from msprobe_ms.remote.spool import Sample, Spool
from msprobe_ms.support.files import open_regular, replacing

_NUMBERS = "numbers.json"
_LARGEST_NUMBERS = 1 << 24

#: A number, and what gives its frame in blocks.
Numbered = tuple[int, Callable[[], Iterator[bytes | memoryview]]]


class Outbox:
    """The calls of one training by number, from 1 on. A number never comes to mean another call."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._file = spool.folder / _NUMBERS
        #: The number that comes next, and folder of each step that is there → its first number and how many it has.
        self._next, self._steps = self._load()
        self._opened: tuple[str, OutgoingStep] | None = None
        #: All up to this are at the server.
        self.acknowledged = 0

    @property
    def count(self) -> int:
        """The last number that was given so far."""
        return self._next - 1

    def beyond(self, number: int, *, unfinished: bool) -> Iterator[Numbered]:
        """Yield the calls beyond ``number`` that are there, in order; with the steps that are ``unfinished`` where no
        others will be. Raises OSError: their numbers cannot be noted.
        """
        for sample in self._spool.samples() + (self._spool.unfinished() if unfinished else []):
            name = self._key(sample)
            if name not in self._steps:
                count = self._open(sample).count
                self._note({**self._steps, name: (self._next, count)}, self._next + count)
            first, count = self._steps[name]
            if number < first + count - 1:
                yield from self._open(sample).frames(first, number + 1)

    def acknowledge(self, number: int) -> None:
        """The server has all up to ``number``: delete the steps of which nothing is left."""
        self.acknowledged = max(self.acknowledged, min(number, self.count))
        for name, (first, count) in list(self._steps.items()):
            if first + count - 1 > self.acknowledged:
                return
            shutil.rmtree(self._spool.folder / name, ignore_errors=True)
            del self._steps[name]

    def _key(self, sample: Sample) -> str:
        return str(sample.folder.relative_to(self._spool.folder))

    def _open(self, sample: Sample) -> OutgoingStep:
        """Read a step, unless it is the one that was read last."""
        name = self._key(sample)
        if self._opened is None or self._opened[0] != name:
            self._opened = None
            self._opened = name, OutgoingStep(sample)
        return self._opened[1]

    def _note(self, steps: dict[str, tuple[int, int]], following: int) -> None:
        with replacing(self._file) as file:
            file.write(json.dumps({"next": following, "steps": steps}).encode("ascii"))
        self._steps, self._next = steps, following

    def _load(self) -> tuple[int, dict[str, tuple[int, int]]]:
        try:
            with open_regular(self._file) as file:
                content = json.loads(file.read(_LARGEST_NUMBERS))
        except (OSError, ValueError):
            return 1, {}
        return int(content["next"]), {
            name: (int(first), int(count)) for name, (first, count) in content["steps"].items()
        }
