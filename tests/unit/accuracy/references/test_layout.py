"""Operators that move or cast elements."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import assert_gradients, gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotJudged, NotReproducible
from msprobe_ms.frameworks.api_calls import DtypeArgument

CONFUSION, CAST, SORT = (reference(name) for name in ("npu_confusion_transpose", "npu_dtype_cast", "npu_sort_v2"))
MINT_SORT, OPS_SORT = (reference("sort", prefix, "mindspore") for prefix in ("Mint", "Functional"))


@pytest.mark.parametrize("transpose_first", [True, False])
def test_confusion_transpose(transpose_first: bool) -> None:
    x = normal(2, 3, 4)
    perm, shape = ((2, 0, 1), (4, 6)) if transpose_first else ((1, 2, 0), (4, 3, 2))
    expected = x.transpose(perm).reshape(shape) if transpose_first else x.reshape(shape).transpose(perm)
    np.testing.assert_array_equal(outputs(CONFUSION, x, perm, shape, transpose_first)[0], expected)
    assert_gradients(CONFUSION, x, perm, shape, transpose_first)


def test_a_cast_rounds_to_even_and_lets_gradients_through() -> None:
    x = np.array([1.00390625, 1.01171875, -0.3])
    outcome = CAST.run(_call(x, DtypeArgument("bfloat16")))
    assert outcome.outputs[0].dtype == "bfloat16"
    np.testing.assert_array_equal(outcome.outputs[0].values, np.float32([1.0, 1.015625, -0.30078125]))
    (gradient,) = gradients(CAST, [np.array([1.0, 2.0, 3.0])], x, DtypeArgument("float16"))
    np.testing.assert_array_equal(gradient, [1, 2, 3])
    with pytest.raises(NotReproducible, match="5 is no dtype"):
        outputs(CAST, x, 5)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sort(descending: bool, dim: int) -> None:
    x = normal(4, 5, 3)
    expected = np.sort(x, axis=dim)
    expected = np.flip(expected, dim) if descending else expected
    np.testing.assert_array_equal(outputs(SORT, x, dim, descending)[0], expected)
    values, order = outputs(MINT_SORT, x, dim=dim, descending=descending, stable=True)
    np.testing.assert_array_equal(np.take_along_axis(x, order, dim), values)
    assert_gradients(SORT, x, dim, descending)


def test_equal_elements_keep_their_order_where_it_is_promised() -> None:
    x = np.array([2.0, 1.0, 2.0, 1.0, np.nan])
    values, order = outputs(MINT_SORT, x, descending=True, stable=True)
    np.testing.assert_array_equal(values, [np.nan, 2, 2, 1, 1])
    assert order.tolist() == [4, 0, 2, 1, 3]
    assert outputs(MINT_SORT, x, stable=True)[1].tolist() == [1, 3, 0, 2, 4]
    assert isinstance(outputs(MINT_SORT, x)[1], NotJudged)
    assert isinstance(outputs(OPS_SORT, x)[1], NotJudged)
    assert outputs(OPS_SORT, x[1:3], 0, True)[1].tolist() == [1, 0]


def _call(*positional: object) -> object:
    from reference_calls import arguments

    return arguments(*positional)
