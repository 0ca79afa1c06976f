"""Align two sequences in order; for each pair say how much better the best alignment is than any without it.

A pair that directly follows a pair earns a little more, so that what belongs together stays together. For every pair of
places the score of the best alignment *through* it is the best before it plus the best after it: a pair is certain by
as much as the best alignment loses without it. Two interchangeable elements lose nothing, so neither is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]

#: Scores from here on make a pair; less would never make a certain one.
_LEAST = 1.75
#: The score of what cannot pair.
NEVER = np.float32(-1e9)


def possible(scores: Scores) -> Scores:
    """Return scores with ``NEVER`` where too little speaks for a pair."""
    return np.where(scores >= _LEAST, scores, NEVER)


@dataclass(frozen=True, slots=True)
class Match:
    """A pair of places; ``margin`` is what the best alignment loses without it."""

    ours: int
    theirs: int
    score: float
    margin: float


def align_in_order(rows: Callable[[int], Scores], height: int, width: int, follow: float = 1.0) -> list[Match]:
    """Pairs of the best alignment of ``height`` with ``width`` elements; those another alignment could do without
    have margin 0.

    ``rows(i)``  scores of element i with all others, as ``possible`` gives them; it is not changed and asked for twice
    ``follow``   what a pair right behind a pair earns more

    Time O(height × width) in numpy, memory O(√height × width).
    """
    if not height or not width:
        return []
    return _Aligner(rows, height, width, np.float32(follow)).run()


class _Aligner:
    """``best``: up to here; ``paired``: up to here and these two are a pair. One place more than elements a side."""

    def __init__(self, rows: Callable[[int], Scores], height: int, width: int, follow: np.float32) -> None:
        self.rows, self.height, self.width, self.follow = rows, height, width, follow
        self.block = max(1, int(height**0.5))

    def run(self) -> list[Match]:
        checkpoints = self._forward()
        row_best = np.full((self.height, 2), NEVER)
        row_place = np.zeros(self.height, np.intp)
        column_best = np.full((2, self.width), NEVER)
        without_row = np.zeros(self.height, np.float32)
        without_column = np.full(self.width, NEVER)
        row_score = np.zeros(self.height, np.float32)
        after = self._edge(last=True)
        for start in reversed(range(0, self.height, self.block)):
            stop = min(start + self.block, self.height)
            scores = [self.rows(i) for i in range(start, stop)]
            befores = [checkpoints[start // self.block]]
            for score in scores:
                befores.append(self._step(befores[-1], score))
            for i in reversed(range(start, stop)):
                score, before, here = scores[i - start], befores[i - start], befores[i - start + 1]
                # Without element i, or without element j: the best alignments that leave it out.
                without_row[i] = np.max(before[0] + after[0])
                behind = self._step_back(after, score)
                through = here[1][1:] + behind[1][:-1] - score
                np.maximum(without_column, here[0][:-1] + after[0][1:], out=without_column)
                place = int(np.argmax(through))
                row_place[i], row_best[i, 0], row_score[i] = place, through[place], score[place]
                through[place], kept = NEVER, through[place]
                row_best[i, 1] = np.max(through)
                through[place] = kept
                column_best[1] = np.maximum(column_best[1], np.minimum(column_best[0], through))
                column_best[0] = np.maximum(column_best[0], through)
                after = behind
        np.maximum(without_column, after[0][1:], out=without_column)
        total = row_best[:, 0].max()
        found = []
        for i in range(self.height):
            j = int(row_place[i])
            if row_best[i, 0] < total or total <= 0:
                continue
            rival = max(row_best[i, 1], column_best[1, j], without_row[i], without_column[j])
            found.append(Match(i, j, float(row_score[i]), float(total - rival)))
        return found

    def _edge(self, last: bool) -> tuple[Scores, Scores]:
        """Before all or behind all: nothing is paired, and the first pair of both follows directly."""
        paired = np.full(self.width + 1, NEVER)
        paired[-1 if last else 0] = 0
        return np.zeros(self.width + 1, np.float32), paired

    def _forward(self) -> list[tuple[Scores, Scores]]:
        state = self._edge(last=False)
        checkpoints = []
        for i in range(self.height):
            if i % self.block == 0:
                checkpoints.append(state)
            state = self._step(state, self.rows(i))
        return checkpoints

    def _step(self, before: tuple[Scores, Scores], score: Scores) -> tuple[Scores, Scores]:
        best, paired = before
        now = np.empty(self.width + 1, np.float32)
        now[0] = NEVER
        np.add(paired[:-1], self.follow, out=now[1:])
        np.maximum(now[1:], best[:-1], out=now[1:])
        np.add(now[1:], score, out=now[1:])
        return np.maximum.accumulate(np.maximum(best, now)), now

    def _step_back(self, after: tuple[Scores, Scores], score: Scores) -> tuple[Scores, Scores]:
        best, paired = after
        now = np.empty(self.width + 1, np.float32)
        now[-1] = NEVER
        np.add(paired[1:], self.follow, out=now[:-1])
        np.maximum(now[:-1], best[1:], out=now[:-1])
        np.add(now[:-1], score, out=now[:-1])
        return np.maximum.accumulate(np.maximum(best, now)[::-1])[::-1], now
