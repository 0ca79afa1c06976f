"""Values of MindSpore's tensors as numpy sees them, without copies and without harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.common.initializer import initializer

from msprobe_ms.frameworks.mindspore.arrays import to_numpy

VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "transposed": lambda a: a.transpose(2, 0, 1),
    "sliced": lambda a: a[1:3, 2:, ::2],
    "broadcast": lambda a: ops.broadcast_to(a[:1], (4, 6, 5)),
    "selected": lambda a: a[:, 0],
    "empty": lambda a: a[2:2].transpose(1, 0, 2),
}
DTYPES = ("float16", "float32", "float64", "bfloat16", "int8", "int64", "uint8", "bool_", "complex64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("view", VIEWS)
def test_values_are_asnumpys(dtype: str, view: str) -> None:
    values = Tensor(np.random.default_rng(0).integers(0, 9, (4, 6, 5)).astype(np.float32)).astype(getattr(ms, dtype))
    tensor = VIEWS[view](values)
    found = to_numpy(tensor)
    expected = tensor.astype(ms.float32).asnumpy() if dtype == "bfloat16" else tensor.asnumpy()
    assert found.dtype == expected.dtype
    assert found.shape == tuple(tensor.shape)
    np.testing.assert_array_equal(found, expected)


def test_a_view_is_not_copied() -> None:
    tensor = Tensor(np.zeros((64, 32), np.float32)) * 2
    first, again = to_numpy(tensor.transpose(1, 0)), to_numpy(tensor)
    assert np.shares_memory(first, again)


def test_a_view_is_read_once_its_operator_has_run() -> None:
    matrix = Tensor(np.random.default_rng(0).standard_normal((700, 700)).astype(np.float32))
    for _ in range(5):
        product = ops.matmul(matrix, matrix)
        total = float(np.abs(to_numpy(product.transpose(1, 0))).sum())
        assert total == pytest.approx(float(np.abs(product.asnumpy()).sum()), rel=1e-6)


def test_a_parameter_that_has_no_memory_yet() -> None:
    parameter = initializer("ones", (3, 4), ms.float32)
    assert parameter.has_init
    assert to_numpy(parameter).sum() == 12
