"""``skip``: a coarse first pass over a large step, which two runs make over the same calls."""

from __future__ import annotations

import math


class Turn:
    """What the calls made inside one call are numbered by: the first number, and how many there were so far."""

    __slots__ = ("apis", "first", "modules", "places")

    def __init__(self, first: int = 0) -> None:
        self.first = first
        #: Modules that were selected, APIs that were selected, all modules.
        self.modules = self.apis = self.places = 0


class Skip:
    """``skip: n``: every n-th of the selected calls is recorded; 0 and 1 record all. Lives for one step.

    Calls are numbered in execution order inside the module that makes them, modules and APIs apart. A flat net is
    numbered from 0 on, what is inside a module from a number that follows from the module's own. So a call that only
    one of two runs makes shifts what comes after it inside the same module, not the rest of the step, and both runs
    record the same calls.
    """

    def __init__(self, skip: int) -> None:
        self._every = max(skip, 1)
        self._stride = _stride(self._every)
        self._outside = Turn()
        self._taken: set[str] = set()
        #: Of each module's latest call: the first number inside it, and whether it is recorded.
        self._before: dict[str, tuple[int, bool]] = {}
        #: The selected calls so far.
        self.selected = 0

    def enter(
        self, base: str, maker: Turn | None, *, is_module: bool, selected: bool, again: bool
    ) -> tuple[Turn, bool]:
        """One more call of ``base``, made by the module of turn ``maker``: its own turn, and whether it is recorded.

        What backward computes ``again`` is recorded where the module's call before was: its gradients may be there.
        """
        if self._every == 1:
            return self._outside, True
        if again and base in self._before:
            first, taken = self._before[base]
            return Turn(first), taken and selected
        maker = maker or self._outside
        turn = Turn((maker.first + maker.places) * self._stride % self._every)
        number = maker.first + (maker.modules if is_module else maker.apis)
        maker.places += is_module
        taken = selected and number % self._every == self._every - 1
        if selected:
            maker.modules += is_module
            maker.apis += not is_module
            self.selected += 1
        if taken:
            self._taken.add(base)
        if is_module:
            self._before[base] = (turn.first, taken)
        return turn, taken

    def took(self, base: str) -> bool:
        """Whether any call of this module is recorded."""
        return self._every == 1 or base in self._taken

    @property
    def took_none(self) -> bool:
        return self._every > 1 and self.selected > 0 and not self._taken


def _stride(every: int) -> int:
    """The multiplier that spreads 0, 1, 2, … most evenly over the remainders of ``every``.

    It has no divisor in common with it, hence reaches all of them, and lies next to the golden section of it (Knuth,
    The Art of Computer Programming 3, 6.4, multiplicative hashing), hence leaves no large gap at any time.

    >>> [_stride(every) for every in (1, 2, 10, 100)]
    [1, 1, 7, 61]
    """
    golden = every * (math.sqrt(5) - 1) / 2
    near = range(max(1, int(golden) - 9), int(golden) + 10)
    return min((n for n in near if math.gcd(n, every) == 1), key=lambda n: abs(n - golden), default=1)
