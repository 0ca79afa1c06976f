"""Leaves that numpy makes: those of figures, made once of what is met again, and anew of what changed."""

from __future__ import annotations

import numpy as np
import pytest

from msprobe_ms.arrays import one_pass
from msprobe_ms.arrays.one_pass import KINDS, Elements
from msprobe_ms.arrays.statistics import LARGE, summary
from msprobe_ms.dump.writing.json_text import LEAF_LEVEL, TensorLeaf, leaf_frame, value_text
from msprobe_ms.recording.output.numpy_leaves import NumpyLeaves

SHAPE = (30, 40)
FRAME = leaf_frame("mindspore.Tensor", "Float32", SHAPE, None)


def elements(array: np.ndarray) -> Elements:
    return Elements(array.ctypes.data, KINDS["float32"], array.shape, None, None, "Float32")


def test_a_tensor_met_again_has_the_same_text() -> None:
    leaves, array = NumpyLeaves(sketch=True), np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    first = leaves.leaf(elements(array), FRAME)
    assert first is not None and leaves.leaf(elements(array), FRAME) is first
    other = leaves.leaf(elements(array), leaf_frame("mindspore.Tensor", "Float32", SHAPE, True))
    assert other is not None and b'"requires_grad": true' in other


def test_a_tensor_that_changed_has_another() -> None:
    leaves, array = NumpyLeaves(sketch=True), np.ones(SHAPE, np.float32)
    leaves.leaf(elements(array), FRAME)
    array[29, 39] = np.nextafter(np.float32(1), np.float32(2))
    found = leaves.leaf(elements(array), FRAME)
    array[29, 39] = 1
    again = leaves.leaf(elements(array), FRAME)
    assert found is not None and again is not None and found != again
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_pass, "_figures", None)
        statistics, sketch = summary(array)
    leaf = TensorLeaf("mindspore.Tensor", "Float32", SHAPE, *statistics, sketch=sketch)
    assert again.decode() == value_text(leaf, LEAF_LEVEL)


def test_other_axes_at_the_same_address_are_another_tensor() -> None:
    leaves, array = NumpyLeaves(sketch=True), np.random.default_rng(2).normal(size=(30, 30)).astype(np.float32)
    frame = leaf_frame("torch.Tensor", "torch.float32", (30, 30), False)
    address = array.ctypes.data
    for _ in range(2):
        one = leaves.leaf(Elements(address, KINDS["float32"], (30, 30), None, None, "torch.float32"), frame)
        other = leaves.leaf(Elements(address, KINDS["float32"], (30, 30), (4, 120), None, "torch.float32"), frame)
        assert one is not None and other is not None
        assert one != other  # the sketch is one of their order
        assert one.split(b'"Sketch"')[0] == other.split(b'"Sketch"')[0]


def test_a_large_tensor_is_read_in_parts_by_others() -> None:
    large = Elements(8, KINDS["float32"], (LARGE + 1,), None, None, "Float32")
    assert NumpyLeaves(sketch=True).leaf(large, FRAME) is None
