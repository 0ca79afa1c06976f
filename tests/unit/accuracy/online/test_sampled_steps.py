"""Which steps are sampled, by what sampling has cost so far."""

from __future__ import annotations

from msprobe_ms.accuracy.online.sampled_steps import SampledSteps


class Training:
    """Steps of one second; sampled ones take ``extra`` longer, and the next ``judged`` ones a tenth of a second.

    Every tenth takes ``slow`` longer, whatever is recorded.
    """

    def __init__(self, share: float, extra: float, *, judged: int = 0, first: float = 0.0, slow: float = 0.0) -> None:
        self.now = 100.0
        self.steps = SampledSteps(share, lambda: self.now)
        self.sampled: list[int] = []
        self._extra, self._judged, self._first, self._slow = extra, judged, first, slow
        self._judging = 0

    def run(self, count: int) -> None:
        for number in range(count):
            sampled = self.steps.wants()
            judging = self._judging > 0
            self.now += 1 + (number == 0) * self._first + (number % 10 == 9) * self._slow
            self.now += sampled * self._extra + judging * 0.1
            self._judging = self._judged if sampled else max(0, self._judging - 1)
            if sampled:
                self.sampled.append(number)
            self.steps.end(sampled=sampled, judging=judging)


def test_the_training_takes_longer_by_no_more_than_the_share() -> None:
    for share in (0.01, 0.05, 0.3):
        training = Training(share, extra=2.0)
        training.run(2000)
        cost = 2.0 * len(training.sampled)
        assert abs(training.steps.spent - cost) < 1e-6
        assert 0.8 * share < cost / (training.now - 100.0) <= share
        assert training.steps.sampled == len(training.sampled) and training.steps.steps == 2000


def test_steps_that_are_slow_as_others_are_judged_count_as_well() -> None:
    training = Training(0.05, extra=0.5, judged=5)
    training.run(2000)
    cost = len(training.sampled) * (0.5 + 5 * 0.1)
    assert 0.8 * 0.05 < cost / (training.now - 100.0) <= 0.05


def test_the_first_step_is_sampled_and_the_second_once_it_is_known_what_steps_take() -> None:
    training = Training(0.1, extra=1.0, first=500.0)  # it compiles, too, which nobody can tell apart
    training.run(100)
    assert training.sampled[:2] == [0, 9]
    assert training.steps.spent == len(training.sampled)


def test_steps_that_are_slow_for_reasons_of_their_own_cost_nothing() -> None:
    training = Training(0.05, extra=1.0, judged=5, slow=30.0)
    training.run(2000)
    cost = len(training.sampled) * (1.0 + 5 * 0.1)
    assert abs(training.steps.spent - cost) < 0.2 * cost
    assert 0.8 * 0.05 < cost / (training.now - 100.0) <= 0.06


def test_sampling_that_costs_nothing_goes_on() -> None:
    training = Training(0.05, extra=-0.2)  # recorded steps of a framework that runs ahead may be the faster ones
    training.run(100)
    assert len(training.sampled) > 90


def test_a_share_of_all_samples_every_step() -> None:
    training = Training(1.0, extra=5.0)
    training.run(10)
    assert training.sampled == list(range(10))
