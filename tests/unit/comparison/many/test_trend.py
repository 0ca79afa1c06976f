"""A ratio that was not measured in a step is none there: neither zero, nor the beginning of growth."""

from __future__ import annotations

import math
from array import array

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.comparison.many.trend import Errors, Trends, errors_of, growing
from msprobe_ms.comparison.model import Allowance, Comparison, Effect
from msprobe_ms.comparison.run import Options, compare_dumps

NAMES = ("Tensor.exp.0.backward", "Tensor.log.0.backward")


def compared(scale: float) -> Comparison:
    """Two calls whose gradients are ``scale`` times those of the other side."""
    values = [np.float32([1, number + 2]) for number in range(2)]
    target = dump([tensor("output.0", scale * value, name) for name, value in zip(NAMES, values, strict=True)])
    golden = dump([tensor("output.0", value, name) for name, value in zip(NAMES, values, strict=True)])
    return compare_dumps(target, golden, Options())


def test_a_value_whose_record_alone_differs_has_no_ratio_and_does_not_grow() -> None:
    first, second = compared(1.01), compared(1.1)
    misrecorded = first.pairs[0].rows[0]
    misrecorded.explained = Allowance("partial gradients", effect=Effect.NO_ERROR)
    with Trends() as trends:
        for step, comparison in enumerate((first, second)):
            trends.add("rank0", step, errors_of(comparison))
        (trend,) = trends.tables()
    ratios = dict(trend.rows)
    assert ratios[NAMES[0]][0] is None and ratios[NAMES[0]][1] is not None
    assert [each.node for each in growing(trend)] == [NAMES[1]]


def test_equal_values_have_the_ratio_zero_and_values_without_counterparts_none() -> None:
    assert list(errors_of(compared(1.0)).ratios) == [0.0, 0.0]
    alone = tensor("output.1", np.float32([1, 2]), NAMES[0])
    other = tensor("input.0", np.float32([1, 2]), NAMES[0])
    assert errors_of(compare_dumps(dump([alone]), dump([other]), Options())).nodes == []


def test_a_figure_that_is_nan_in_a_step_is_told_apart_from_one_that_is_missing() -> None:
    with Trends() as trends:
        for step, figure in enumerate((1.0, math.nan)):
            trends.add("rank0", step, Errors(["a"], array("f", [figure])))
        trends.add("rank0", 2, Errors())
        (trend,) = trends.tables()
    ((_, figures),) = trend.rows
    assert figures[0] == 1 and math.isnan(figures[1] or 0) and figures[2] is None
