"""Which numbers came: a set of them that is small as long as few are missing."""

from __future__ import annotations

from collections.abc import Iterator


class Numbers:
    """Numbers from 1 on."""

    def __init__(self) -> None:
        #: All up to this are there.
        self.all_up_to = 0
        self._beyond: set[int] = set()

    def add(self, number: int) -> None:
        """Add a number, in any order and any times."""
        if number > self.all_up_to:
            self._beyond.add(number)
        while self.all_up_to + 1 in self._beyond:
            self.all_up_to += 1
            self._beyond.discard(self.all_up_to)

    def __contains__(self, number: int) -> bool:
        return number <= self.all_up_to or number in self._beyond

    def __len__(self) -> int:
        return self.all_up_to + len(self._beyond)

    @property
    def highest(self) -> int:
        """The largest number that is there; 0 for none."""
        return max(self._beyond, default=self.all_up_to)

    def missing(self, count: int) -> Iterator[range]:
        """Yield the gaps among the numbers up to ``count``."""
        start = self.all_up_to + 1
        for number in sorted(number for number in self._beyond if number <= count):
            if start < number:
                yield range(start, number)
            start = number + 1
        if start <= count:
            yield range(start, count + 1)
