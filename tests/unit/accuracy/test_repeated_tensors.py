"""Recorded gradients of one tensor in several places, beside those of a reference."""

from __future__ import annotations

import numpy as np
import pytest

from msprobe_ms.accuracy.judging.model import ApiKey, Status
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.accuracy.reference_runs import Data, judge_beside
from msprobe_ms.accuracy.repeated_tensors import beside_whole_gradients, whole_gradients
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments


def single(*values: float) -> TypedArray:
    return TypedArray("float32", np.array(values, np.float32))


def double(*values: float) -> TypedArray:
    return TypedArray("float64", np.array(values))


X, Y = single(2.0, 3.0, -1.5), single(0.5, 7.0, 4.0)


def statuses(arguments: Arguments, parts: list[TypedArray], recorded: list[TypedArray | None]) -> list[Status]:
    runs, gradients = beside_whole_gradients(arguments, [parts, parts, None], recorded)
    rows = judge_beside(
        runs, gradients, Data(arguments, (single(1.0, 1.0, 1.0),)), load_thresholds(),
        api=ApiKey("pytorch", "Tensor", "mul", "backward"), entry="Tensor.mul.0.backward",
    )  # fmt: skip
    return [row.status for row in rows]


def test_the_whole_is_the_sum_of_the_parts() -> None:
    part, whole = double(2.0, 3.0, -1.5), single(4.0, 6.0, -3.0)
    assert statuses(Arguments((X, X)), [part, part], [whole, whole]) == [Status.PASS] * 2
    wrong = single(4.0, 6.0, -2.999)
    assert statuses(Arguments((X, X)), [part, part], [wrong, wrong]) == [Status.ERROR] * 2
    found = whole_gradients(Arguments((X, Y, X)), [part, part, part], [wrong, whole, wrong])
    assert [each.values[0] for each in found] == [4.0, 2.0, 4.0]


def test_tensors_that_are_alike_by_chance_keep_their_own_gradients() -> None:
    part, own = double(2.0, 3.0, -1.5), single(2.0, 3.0, -1.5)
    assert statuses(Arguments((X, X)), [part, part], [own, own]) == [Status.PASS] * 2
    doubled = single(4.0, 6.0, -3.0)
    assert statuses(Arguments((X, Y)), [part, part], [doubled, doubled]) == [Status.ERROR] * 2
    assert statuses(Arguments((X, X)), [part, part], [doubled, None])[0] is Status.ERROR


def test_parts_that_cancel_are_held_against_their_own_size() -> None:
    third = 1 / 3
    parts = [double(third, 1e9 / 7, third), double(-third, -1e9 / 7, 2 * third)]
    rounding = single(0.0, 8.0, 1.0)  # of a part of 1.4e8, float32 has steps of 16
    assert statuses(Arguments((X,), {"other": X}), parts, [rounding, rounding]) == [Status.PASS] * 2
    wrong = single(1e-3, 8.0, 1.0)
    assert statuses(Arguments((X,), {"other": X}), parts, [wrong, wrong]) == [Status.ERROR] * 2


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_so(odd: float) -> None:
    parts, whole = [double(1.0, odd, 1.0)] * 2, single(2.0, odd, 2.0)
    assert (
        statuses(Arguments((X, Y, X)), [parts[0], double(0, 0, 0), parts[1]], [whole, single(0, 0, 0), whole])
        == [Status.PASS] * 3
    )
