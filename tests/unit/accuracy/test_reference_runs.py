"""How far results move with their arguments, and results judged beside a reference."""

from __future__ import annotations

import numpy as np

from msprobe_ms.accuracy.judging.model import ApiKey, Status
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.accuracy.reference_runs import Data, judge_beside, movement, nearby
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument


def floats(*values: float, dtype: str = "float64") -> TypedArray:
    return TypedArray(dtype, np.array(values, dtype))


def test_data_move_one_way_and_the_other_and_otherwise() -> None:
    x, gradient = floats(1.0, -2.0, 0.0, dtype="float32"), floats(3.0, dtype="float32")
    data = Data(Arguments((x, DtypeArgument("float32")), {"n": 2}), (gradient, None))
    up, down, *others = nearby(data, 1, "Mint.add.0")
    firsts = [each.arguments.positional[0].values[0] for each in (up, *others)]
    assert len(set(firsts)) == 3, "moves of their own"
    for one, other, exact in (
        (up.arguments.positional[0], down.arguments.positional[0], x),
        (up.gradients[0], down.gradients[0], gradient),  # type: ignore[index]
    ):
        apart = one.values - exact.values
        np.testing.assert_allclose(other.values - exact.values, -apart, rtol=1e-6)
        assert (np.abs(apart) <= np.abs(exact.values) * 2.0**-24).all() and apart[0] != 0
    assert up.arguments.positional[1] == DtypeArgument("float64") and up.arguments.keywords == {"n": 2}
    assert up.gradients is not None and up.gradients[1] is None
    assert next(nearby(data._replace(gradients=None), 1, "Mint.add.0")).gradients is None


def test_the_largest_movement_of_each_element_counts_twice() -> None:
    nan, inf = float("nan"), float("inf")
    found = movement(
        floats(1, 2, nan, inf, 1, 1), [floats(1.5, 2, nan, inf, nan, inf), floats(1.25, 1, nan, inf, 1, 1)]
    )
    assert found is not None and found.tolist() == [1, 2, 0, 0, inf, inf]
    assert movement(TypedArray("int64", np.arange(2)), []) is None and movement(3.0, [3.0]) is None
    assert (movement(floats(1, 2), [None, floats(1, 2, 3)]) == 0).all(), "a run that gave something else tells nothing"


def judged(device: TypedArray, *near: TypedArray) -> Status:
    x = floats(1.0, 2.0, dtype="float32")
    (row,) = judge_beside(
        [[floats(1.0, 2.0)], *([each] for each in near)], [device], Data(Arguments((x,)), None), load_thresholds(),
        api=ApiKey("pytorch", "Torch", "add", "forward"), entry="Torch.add.0.forward",
    )  # fmt: skip
    return row.status


def test_what_moves_with_the_arguments_is_no_error() -> None:
    off = floats(1.0, 2.01, dtype="float32")
    assert judged(floats(1.0, 2.0, dtype="float32")) is Status.PASS
    assert judged(off) is Status.ERROR
    assert judged(off, floats(1.0, 2.02)) is Status.PASS
    assert judged(off, floats(1.02, 2.0)) is Status.ERROR, "of another element"
