"""Writing what is known so far takes a bounded share of a run."""

from __future__ import annotations

import pytest

from msprobe_ms.accuracy.execution.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_is_due_after_the_seconds_that_were_asked_for() -> None:
    clock = Clock()
    pace = Pace(10.0, clock)
    clock.now += 9
    assert not pace.is_due
    clock.now += 2
    assert pace.is_due
    with pace.writing():
        clock.now += 0.1
    assert not pace.is_due
    clock.now += 11
    assert pace.is_due


@pytest.mark.parametrize("results", [1_000, 10_000, 100_000])
def test_writing_ever_more_takes_a_bounded_share_of_the_run(results: int) -> None:
    clock, spent = Clock(), 0.0
    pace = Pace(10.0, clock)
    begun = clock.now
    for known in range(results):
        clock.now += 0.01
        if pace.is_due:
            with pace.writing():
                clock.now += (cost := 1e-4 * known)
            spent += cost
    assert spent <= 0.07 * (clock.now - begun), "every ten seconds it would be a third of the longest"
