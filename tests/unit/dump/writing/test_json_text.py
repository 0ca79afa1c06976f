"""The text of dump.json is what Python's json writes."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.dump.writing.json_text import (
    FIELD_LEVEL,
    LEAF_LEVEL,
    TensorLeaf,
    Value,
    field_text,
    framed_leaf,
    leaf_frame,
    number_text,
    value_text,
)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)
statistics = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
names = st.text(st.characters(codec="utf-8", categories=["L", "N"]), max_size=8)
leaves = st.builds(
    TensorLeaf,
    type=st.sampled_from(["mindspore.Tensor", "torch.Tensor", "numpy.ndarray"]),
    dtype=st.sampled_from(["Float32", "torch.float32", ">f4", "BFloat16"]),
    shape=st.lists(st.integers(0, 10**9), max_size=4),
    strides=st.none() | st.lists(st.integers(0, 10**9), max_size=4),
    maximum=statistics, minimum=statistics, mean=statistics, norm=statistics,
    requires_grad=st.none() | st.booleans(),
    data_name=st.none() | st.text(),
    md5=st.none() | st.from_regex("[0-9a-f]{8}", fullmatch=True),
    sketch=st.none() | st.binary(min_size=64, max_size=64).map(lambda raw: b64encode(raw).decode()),
)  # fmt: skip


def plain(value: Any) -> Any:
    """The value as json knows it: leaves as dictionaries."""
    if isinstance(value, TensorLeaf):
        leaf: dict[str, Any] = {
            "type": value.type, "dtype": value.dtype, "shape": list(value.shape),
            "Max": value.maximum, "Min": value.minimum, "Mean": value.mean, "Norm": value.norm,
        }  # fmt: skip
        if value.requires_grad is not None:
            leaf["requires_grad"] = value.requires_grad
        if value.data_name is not None:
            leaf["data_name"] = value.data_name
        if value.md5 is not None:
            leaf["md5"] = value.md5
        if value.sketch is not None:
            leaf["Sketch"] = value.sketch
        if value.strides is not None:
            leaf["stride"] = value.strides
        return leaf
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, (list, tuple)) else value


@given(values)
def test_any_value(value: Value) -> None:
    assert value_text(value, 0) == json.dumps(value, indent=1)


@given(leaves)
def test_any_tensor_leaf(leaf: TensorLeaf) -> None:
    assert value_text(leaf, 0) == json.dumps(plain(leaf), indent=1)


@given(
    st.text(),
    st.recursive(
        scalars | leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
)
def test_a_field_stands_where_it_will_in_dump_json(name: str, value: Any) -> None:
    whole = json.dumps({"data": {"entry": {name: plain(value)}}}, indent=1)
    assert FIELD_LEVEL == 3
    assert whole == '{\n "data": {\n  "entry": {\n' + field_text(name, value).decode() + "\n  }\n }\n}"


@given(st.floats())
def test_numbers_survive(number: float) -> None:
    """NaN and infinities as the bare tokens of the format; every other bit too."""
    again = json.loads(number_text(number))
    assert math.isnan(again) if math.isnan(number) else again == number
    assert math.copysign(1, again) == math.copysign(1, number) or math.isnan(number)


def test_tokens() -> None:
    assert [number_text(number) for number in (math.nan, math.inf, -math.inf)] == ["NaN", "Infinity", "-Infinity"]


def test_deep_values() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value, {"k": value} if _ % 50 == 0 else None]
    assert value_text(value, 0) == json.dumps(value, indent=1)


@given(leaves.map(lambda leaf: leaf._replace(data_name=None, md5=None, strides=None, shape=tuple(leaf.shape))))
def test_a_leaf_is_made_of_its_frame_and_figures(leaf: TensorLeaf) -> None:
    frame = leaf_frame(leaf.type, leaf.dtype, tuple(leaf.shape), leaf.requires_grad)
    figures: list[Any] = [leaf.maximum, leaf.minimum, leaf.mean, leaf.norm]
    sketch = leaf.sketch if isinstance(leaf.sketch, str) else None
    assert framed_leaf(frame, figures, sketch).decode() == value_text(leaf, LEAF_LEVEL)
