"""Tests that leaves are read alike however they are reached."""

from __future__ import annotations

from typing import Any

import pytest

from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.names import UNWRITTEN
from msprobe_ms.dump.reading.items import call_items

_TENSOR: dict[str, Any] = {
    "type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 1.0, "Min": 0.0, "Mean": 0.5,
    "Norm": 2.0, "requires_grad": True,
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"requires_grad": 1},
        {"requires_grad": [True]},
        {"shape": ["2", 3]},
        {"shape": None},
        {"shape": [[2, 3]]},
        {"Max": 1},
        {"Max": "NaN"},
        {"Norm": None},
        {"dtype": None},
        {"type": ["torch.Tensor"]},
        {"value": 3},
        {UNWRITTEN: True},
        {"md5": "0a", "data_name": "a.npy"},
        {"md5": 7, "data_name": "-1"},
    ],
)
def test_a_leaf_is_read_alike_whatever_was_read_before_it(changed: dict[str, Any]) -> None:
    odd = {**_TENSOR, **changed}
    tables = ItemTable(), ItemTable()
    call_items(tables[0], "a", {"input_args": [_TENSOR, _TENSOR]})
    after, alone = (list(call_items(table, "b", {"input_args": [None, odd]})) for table in tables)
    assert repr(after) == repr(alone)


def test_a_tensor_without_a_dtype_is_read_alike_after_others() -> None:
    table = ItemTable()
    body = {"output": [_TENSOR, {key: value for key, value in _TENSOR.items() if key != "dtype"}]}
    first, last = call_items(table, "a", body)
    assert (first.dtype, last.dtype) == ("torch.float32", "None")
