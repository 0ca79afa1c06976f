"""Which steps are sampled, by what sampling has cost so far."""

from __future__ import annotations

from msprobe_ms.accuracy.online.sampled_steps import SampledSteps


class Training:
    """Steps of one second; sampled ones take ``extra`` longer, and the next ``judged`` ones a tenth of a second."""

    def __init__(self, share: float, extra: float, *, judged: int = 0, first: float = 0.0) -> None:
        self.now = 100.0
        self.steps = SampledSteps(share, lambda: self.now)
        self.sampled: list[int] = []
        self._extra, self._judged, self._first = extra, judged, first
        self._judging = 0

    def run(self, count: int) -> None:
        for number in range(count):
            sampled = self.steps.wants()
            judging = self._judging > 0
            self.now += 1 + (number == 0) * self._first + sampled * self._extra + judging * 0.1
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


def test_the_first_step_is_sampled_and_the_second_when_the_first_is_paid_for() -> None:
    training = Training(0.1, extra=1.0, first=9.0)  # it compiles, too, which nobody can tell apart
    training.run(300)
    assert training.sampled[0] == 0
    assert 80 < training.sampled[1] < 110
    assert training.sampled[2] - training.sampled[1] < 25


def test_sampling_that_costs_nothing_goes_on() -> None:
    training = Training(0.05, extra=-0.2)  # recorded steps of a framework that runs ahead may be the faster ones
    training.run(100)
    assert len(training.sampled) > 90


def test_a_share_of_all_samples_every_step() -> None:
    training = Training(1.0, extra=5.0)
    training.run(10)
    assert training.sampled == list(range(10))
