"""What a change of a result is called, and when it is one."""

from __future__ import annotations

import pytest

from msprobe_ms.arrays.changes import Change
from msprobe_ms.recording.perturbation.judging import Bounds, angle_limit, judge

BOUNDS = Bounds(2e-4, noise=2e-7, by_share=True)


def test_within_the_limit_nothing_is_found() -> None:
    assert judge(Change(10, 1e-4, 1.0, 2), BOUNDS) is None
    assert judge(Change(10), Bounds(0.0)) is None


@pytest.mark.parametrize(
    ("change", "kind", "size"),
    [
        (Change(10, 0.5, 2.0, 1, before=2.0, after=1.5), "change", 0.25),
        (Change(10, 2.0, 2.0, 1, before=2.0, after=0.0), "zero", 1.0),
        (Change(10, 3.0, 2.0, 1, before=2.0, after=-1.0), "sign", 1.5),
        (Change(10, 1.0, 0.0, 1, before=0.0, after=1.0), "zero", float("inf")),
        (Change(10, 0.0, 2.0, nans=3), "nan", float("inf")),
        (Change(10, 0.0, 2.0, infinities=1), "infinity", float("inf")),
        (Change(10, 1e-5, 2.0, 3, before=1e-5, after=2e-5), "change", 5e-6),
    ],
)
def test_kinds(change: Change, kind: str, size: float) -> None:
    found = judge(change, BOUNDS)
    assert found is not None
    assert (found.kind, found.size, found.elements) == (kind, size, 10)
    assert found.condition == pytest.approx(size / 2e-7)


def test_a_loss_is_held_against_one_and_exact_means_exact() -> None:
    small = Change(1, 1e-5, 1e-5, 1, before=1e-5, after=2e-5)
    assert judge(small, BOUNDS._replace(by_share=False)) is not None
    assert judge(small, BOUNDS._replace(by_share=False, scale=1.0)) is None
    assert judge(Change(1, 1e-12, 1.0, 1, before=1.0, after=1.0), Bounds(0.0)) is not None
    assert angle_limit(2e-4) == 0.1 and angle_limit(0.25) == 0.25 and angle_limit(0.0) == 0.0
