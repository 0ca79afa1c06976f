"""Which calls of a training are taken: APIs judged least first, within bounds by API, by step and by bytes."""

from __future__ import annotations

from collections import Counter

from msprobe_ms.accuracy.online.sampled_calls import SampledCalls
from msprobe_ms.accuracy.online.settings import Budget

#: A step with a loop over one API, others that it calls a few times, and one that it calls once, at its end.
STEP = ["Functional.relu"] * 50 + ["Tensor.add", "Tensor.mul"] * 5 + ["Functional.softmax"]


def taken(calls: SampledCalls, step: list[str]) -> list[int]:
    """The positions of the calls of one step that are recorded."""
    calls.begin_step()
    return [place for place, base in enumerate(step) if calls.takes(base)]


def test_the_first_calls_of_each_api_are_taken_at_once() -> None:
    assert taken(SampledCalls(Budget()), STEP) == [0, 1, 50, 51, 52, 53, 60]


def test_rare_apis_come_first_and_then_calls_that_were_not_taken_yet() -> None:
    calls = SampledCalls(Budget(calls_a_step=4))
    taken(calls, STEP)
    assert calls.taken == {"Functional.relu": 2, "Tensor.add": 1, "Tensor.mul": 1}
    second = taken(calls, STEP)
    assert 60 in second, "it has never been taken"
    assert calls.taken.keys() == set(STEP)
    for _ in range(20):
        taken(calls, STEP)
    counts = sorted(calls.taken.values())
    assert counts[-1] - counts[0] <= 2
    calls = SampledCalls(Budget())
    places: Counter[int] = Counter(place for _ in range(25) for place in taken(calls, STEP))
    assert set(places) == set(range(len(STEP))), "each call has its turn"
    assert {places[place] for place in range(50)} == {1}


def test_the_same_seed_takes_the_same_calls() -> None:
    chosen = []
    for seed in (1, 1, 2):
        calls = SampledCalls(Budget(seed=seed))
        chosen.append([taken(calls, STEP) for _ in range(3)])
    assert chosen[0] == chosen[1] != chosen[2]


def test_bounds_hold() -> None:
    calls = SampledCalls(Budget(calls=3, calls_a_step=5))
    for _ in range(10):
        assert len(taken(calls, STEP)) <= 5
    assert calls.taken == dict.fromkeys(set(STEP), 3)
    assert calls.seen == {base: 10 * STEP.count(base) for base in set(STEP)}


def test_an_api_that_comes_later_in_the_training_is_taken() -> None:
    calls = SampledCalls(Budget(calls=2))
    for _ in range(3):
        taken(calls, STEP)
    assert taken(calls, [*STEP, "Functional.gelu"]) == [len(STEP)]


def test_no_more_bytes_are_taken_than_a_step_may_have() -> None:
    calls = SampledCalls(Budget(disk=1000))
    calls.begin_step()
    assert calls.fits(240)
    assert calls.takes("Functional.relu")
    assert calls.fits(100)
    assert not calls.takes("Functional.relu"), "gradients are to fit as well"
    assert not calls.fits(200) and calls.fits(160)
    calls.begin_step()
    assert calls.fits(240)
    assert calls.most_waiting == 500


def test_what_can_never_be_judged_is_counted_with_its_reason() -> None:
    calls = SampledCalls(Budget())
    assert taken(calls, ["Functional.rand", "Distributed.all_reduce", "Jit.step", "Functional.relu"]) == [3]
    assert calls.unchecked == {
        "Functional.rand": "random output",
        "Distributed.all_reduce": "distributed",
        "Jit.step": "a compiled function",
    }
    assert taken(calls, ["Functional.rand"]) == []
