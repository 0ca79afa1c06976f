"""Plain arguments of two counterpart calls: which of them say that the calls compute different things."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare_parts import null, tensor, value

from msprobe_ms.comparison.pairing.arguments import other_settings
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import parse_entry

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
BOTH = "mindspore", "pytorch"


def call(name: str, *given: Any, shape: tuple[int, ...] = (2, 3, 4), attributes: Any = None, **keywords: Any) -> Entry:
    """A call of ``x`` and further arguments."""
    entry = f"{name}.0.forward"
    items: list[Item] = [tensor("input.0", X.reshape(shape), entry)]
    for place, each in [*enumerate(given, 1), *keywords.items()]:
        keyword = isinstance(place, str)
        leaves = enumerate(each) if isinstance(each, tuple) else [("", each)]
        for number, leaf in leaves:
            at = f"input.{place}.{number}" if number != "" else f"input.{place}"
            made = null(at, entry) if leaf is None else value(at, leaf, entry)
            items.append(made._replace(keyword=keyword))
    return Entry(entry, parse_entry(entry), items, attributes=attributes)


def names(target: Entry, golden: Entry, frameworks: tuple[str, str] = BOTH) -> list[str]:
    return [each.name for each in other_settings(target, golden, frameworks)]


@pytest.mark.parametrize(
    ("target", "golden", "expected"),
    [
        (call("Functional.gelu", approximate="tanh"), call("Functional.gelu", approximate="none"), ["approximate"]),
        (call("Functional.gelu", "tanh"), call("Functional.gelu"), ["approximate"]),
        (call("Functional.leaky_relu", 0.2), call("Functional.leaky_relu", negative_slope=0.1), ["alpha"]),
        (call("Functional.softmax", axis=1), call("Functional.softmax", 2), ["axis"]),
        (call("Tensor.__mul__", 0.5), call("Tensor.__mul__", 0.25), ["other"]),
        (
            call("Functional.avg_pool2d", (2, 2), 2, 0, False, False),
            call("Functional.avg_pool2d", 2, 2, 0, False, True),
            ["count_include_pad"],
        ),
        (
            call("Primitive.norm.LayerNorm", attributes={"epsilon": {"type": "float", "value": 1e-3}}),
            call("Functional.layer_norm", (4,), None, None, 1e-5),
            ["epsilon"],
        ),
    ],
)
def test_values_that_differ_are_other_settings_under_whatever_name(
    target: Entry, golden: Entry, expected: list[str]
) -> None:
    assert names(target, golden) == expected


@pytest.mark.parametrize(
    ("target", "golden"),
    [
        (call("Functional.softmax", axis=-1), call("Functional.softmax", 2, _stacklevel=5)),
        (call("Functional.softmax", axis=1), call("Functional.softmax", dim=2, shape=(4, 3, 2))),  # another layout
        (call("Functional.max_pool2d", 2), call("Functional.max_pool2d", (2, 2), ceil_mode=False)),
        (call("Functional.gelu"), call("Functional.gelu", approximate="none")),
        (call("Functional.pad", (1, 1), "CONSTANT"), call("Functional.pad", (1, 1), "constant", None)),
        (call("Functional.interpolate", align_corners=None), call("Functional.interpolate", align_corners=False)),
        (
            call("Functional.group_norm", 2, None, None, 1e-5),
            call("Functional.group_norm", 2, eps=9.999999747378752e-6),
        ),
        (call("Tensor.masked_fill", value=-1e9), call("Tensor.masked_fill", value=-65504.0)),
        (call("Functional.conv2d", pad_mode="same"), call("Functional.conv2d", padding=1)),
        (call("Functional.relu"), call("Functional.relu", inplace=True)),
        (call("Functional.dropout", keep_prob=0.9), call("Functional.dropout", p=0.1)),
        (call("Functional.known_to_nobody", 1), call("Functional.another", 2)),
    ],
)
def test_another_vocabulary_is_no_other_setting(target: Entry, golden: Entry) -> None:
    assert names(target, golden) == []


def test_places_without_a_name_mean_the_same_in_one_function_alone() -> None:
    assert names(call("Functional.mine", 1), call("Functional.mine", 2), ("mindspore", "mindspore")) == ["argument 1"]
    assert names(call("Functional.mine", 1), call("Functional.mine", 2)) == []
