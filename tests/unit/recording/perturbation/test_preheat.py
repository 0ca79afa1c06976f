"""Preheating counts, samples, and adapts its thresholds by a factor of two."""

from __future__ import annotations

from msprobe_ms.recording.perturbation.preheat import Preheat


def test_a_sample_of_the_calls_is_taken_another_in_each_step() -> None:
    preheat = Preheat(steps=4, most=2)
    taken = []
    for _ in range(6):
        taken.append([number for number in range(6) if preheat.takes("a")])
        preheat.end_step()
    assert taken[0] == [] and taken[5] == list(range(6))
    assert [len(each) for each in taken[1:5]] == [2, 2, 2, 2]
    assert set().union(*taken[1:5]) == set(range(6))


def test_no_more_than_the_largest_sample() -> None:
    preheat = Preheat(steps=1, most=3)
    for expected in (0, 3):
        assert sum(preheat.takes("a") for _ in range(100)) == expected
        preheat.end_step()


def test_thresholds_follow_what_is_healthy_and_never_fall_below_the_least() -> None:
    preheat = Preheat(steps=9, most=1)
    assert preheat.threshold("a", "float32", 2e-4) == 1.05
    preheat.healthy("a", "float32", 1e-6)
    preheat.end_step()
    assert preheat.threshold("a", "float32", 2e-4) == 0.525
    preheat.healthy("a", "float32", 0.8)
    preheat.healthy("a", "float32", float("inf"))
    preheat.end_step()
    assert preheat.threshold("a", "float32", 2e-4) == 1.05
    for _ in range(20):
        preheat.healthy("a", "float32", 0.0)
        preheat.end_step()
    assert preheat.threshold("a", "float32", 2e-4) == 2e-4
    assert preheat.threshold("b", "float32", 2e-4) == 1.05
