"""Powers, roots, logarithms and quotients: an error small beside a tensor is large beside its smallest element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from compare_parts import dump, tensor, value
from layer_dumps import Array

from msprobe_ms.comparison.origin.steep_functions import condition_of_steep_function
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.names import parse_entry

Function = Callable[..., Array]
#: Variances of tokens, of which one hardly varies.
VARIANCES = np.array([3e-5, 0.01, 0.012, 0.02, 0.018, 0.015], np.float32)
FUNCTIONS: list[tuple[str, Function]] = [
    ("rsqrt", lambda x: 1 / np.sqrt(x)),
    ("reciprocal", lambda x: 1 / x),
    ("sqrt", np.sqrt),
    ("log", np.log),
    ("log2", np.log2),
    ("log10", np.log10),
    ("log1p", np.log1p),
]


def side(name: str, arguments: list[Item], result: Array) -> Dump:
    entry = f"Tensor.{name}.0.forward"
    return dump([each._replace(entry=entry) for each in arguments] + [tensor("output.0", result, entry)])


def origins(target: Dump, golden: Dump) -> list[str]:
    golden.framework = "pytorch"
    return [origin.target for origin in compare_dumps(target, golden, Options()).origins]


def conditioned(name: str, arguments: list[Array], result: Array, *numbers: float) -> float | None:
    parsed = parse_entry(f"Tensor.{name}.0.forward")
    assert parsed is not None
    items = [tensor(f"input.{place}", each) for place, each in enumerate(arguments)]
    return condition_of_steep_function(parsed, items, numbers, tensor("output.0", result))


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_no_error_of_the_argument_becomes_larger_than_the_condition_says(name: str, function: Function) -> None:
    known = conditioned(name, [VARIANCES], function(VARIANCES))
    assert known is not None
    wide = VARIANCES.astype(np.float64)
    for element in range(len(wide)):  # all of the error in one element
        moved = wide.copy()
        moved[element] *= 1 + 1e-6
        before = np.linalg.norm(moved - wide) / np.linalg.norm(wide)
        after = np.linalg.norm(function(moved) - function(wide)) / np.linalg.norm(function(wide))
        assert after <= max(1.0, known) * before * 1.001


@pytest.mark.parametrize("exponent", [-0.5, -1.0, 0.5, 2.0, 3.0])
def test_a_power_has_the_slope_of_its_exponent(exponent: float) -> None:
    result = VARIANCES**exponent
    known = conditioned("pow", [VARIANCES], result, exponent)
    ends = VARIANCES.min(), VARIANCES.max()
    steepest = max(abs(exponent) * end ** (exponent - 1) for end in ends)
    assert known == pytest.approx(max(1.0, steepest * np.linalg.norm(VARIANCES) / np.linalg.norm(result)), rel=1e-4)


def test_a_quotient_is_as_steep_as_its_smallest_divisor() -> None:
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    divisors = VARIANCES[:, None]
    known = conditioned("div", [x, divisors], x / divisors)
    assert known is not None
    moved = divisors.astype(np.float64)
    moved[0] *= 1 + 1e-6
    before = np.linalg.norm(moved - divisors) / np.linalg.norm(divisors)
    after = np.linalg.norm(x / moved - x / divisors.astype(np.float64)) / np.linalg.norm(x / divisors)
    assert before * 2 < after <= known * before


@pytest.mark.parametrize("name", ["log", "rsqrt", "pow", "div"])
def test_of_arguments_that_may_be_zero_it_is_not_known(name: str) -> None:
    x = np.array([-1.0, 0.0, 1.0, 2.0], np.float32)
    assert conditioned(name, [x, x], np.array([np.inf, 1.0, 1.0, 2.0], np.float32), -1.0) is None


@pytest.mark.parametrize("name", ["rsqrt", "pow"])
def test_the_reciprocal_root_of_a_small_variance_is_no_origin(name: str) -> None:
    moved = VARIANCES.copy()
    moved[0] *= 1 + 2e-4  # nothing beside the others
    more = [value("input.1", -0.5)] if name == "pow" else []
    target, golden = (
        side(name, [tensor("input.0", each), *more], (1 / np.sqrt(each)).astype(np.float32))
        for each in (moved, VARIANCES)
    )
    assert origins(target, golden) == []


def test_one_that_is_off_where_nothing_is_steep_is_an_origin() -> None:
    x = np.linspace(1, 2, 64, dtype=np.float32)
    target, golden = (side("rsqrt", [tensor("input.0", x)], part / np.sqrt(x)) for part in (np.float32(1.001), 1))
    assert origins(target, golden) == ["Tensor.rsqrt.0.forward.output.0"]
