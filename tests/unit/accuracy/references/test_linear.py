"""Linear layers and the gradients of matrix products."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import assert_gradients, gradients, normal, outputs, reference

LINEAR, LINEAR_BACKWARD = reference("npu_linear"), reference("npu_linear_backward")
MATMUL_BACKWARD = reference("matmul_backward")


@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_over_any_leading_axes(leading: tuple[int, ...], with_bias: bool) -> None:
    x, weight, bias = normal(*leading, 4), normal(5, 4, seed=1), normal(5, seed=2)
    given = (x, weight, bias) if with_bias else (x, weight)
    np.testing.assert_allclose(outputs(LINEAR, *given)[0], x @ weight.T + bias * with_bias, rtol=1e-13)
    assert_gradients(LINEAR, *given)


def test_a_weight_of_one_axis_is_one_row() -> None:
    assert outputs(LINEAR, normal(2, 3, 4), normal(4))[0].shape == (2, 3)
    assert_gradients(LINEAR, normal(2, 3, 4), normal(4, seed=1), normal(1)[0:1].reshape(()))


def test_the_backward_of_linear_is_an_operator_of_its_own() -> None:
    x, weight, g = normal(2, 3, 4), normal(5, 4, seed=1), normal(2, 3, 5)
    for one, other in zip(outputs(LINEAR_BACKWARD, g, x, weight), gradients(LINEAR, [g], x, weight), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


SHAPES = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4, 5)),
          ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5))]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_matmul_backward(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = normal(*first), normal(*second, seed=1)
    g = normal(*(a @ b).shape, seed=2)
    found = outputs(MATMUL_BACKWARD, g, a, b)
    for place, (leaf, gradient) in enumerate(zip((a, b), found, strict=True)):
        differences = np.zeros(leaf.shape)
        for index in np.ndindex(leaf.shape):
            moved = [a.copy(), b.copy()]
            moved[place][index] += 1.0  # the product is linear in each
            differences[index] = np.sum(g * (moved[0] @ moved[1] - a @ b))
        np.testing.assert_allclose(gradient, differences, atol=1e-12)


def test_only_what_is_asked_for_is_given() -> None:
    a, b = normal(3, 4), normal(4, 5)
    assert outputs(MATMUL_BACKWARD, a @ b, a, b, [False, True])[0] is None
