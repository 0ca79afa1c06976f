"""Leaves of plain values: what is written of each kind, and that a subclass is not asked."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

from msprobe_ms.recording.output.plain_values import LONGEST_TEXT, is_long_text, plain_leaf


class Colour(enum.IntEnum):
    RED = 1


def ran(*_: Any) -> Any:
    raise AssertionError


def loud(kind: type, value: Any) -> Any:
    """A number or text of a class whose methods must not run."""
    names = ("__int__", "__index__", "__float__", "__str__", "__repr__", "__len__", "__sub__", "__eq__", "__bool__")
    methods = {name: ran for name in (*names, "__getitem__", "bit_length")}  # noqa: C420
    return type("Loud", (kind,), {**methods, "__class__": property(ran)})(value)


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        (True, "bool", True),
        (3, "int", 3),
        (-(1 << 13_999), "int", -(1 << 13_999)),
        (2.5, "float", 2.5),
        ("sum", "str", "sum"),
        ("x" * LONGEST_TEXT, "str", "x" * LONGEST_TEXT),
        ("x" * (LONGEST_TEXT + 1), "str", "x" * LONGEST_TEXT + "… (1001 characters)"),
        (slice(1, None, True), "slice", [1, None, None]),
        (slice(1 << 14_000, "a"), "slice", [None, None, None]),
        (..., "ellipsis", "..."),
        (np.float64(2.5), "float", 2.5),
        (np.float16(2.5), "float16", 2.5),
        (np.longdouble(2.5), np.longdouble.__name__, 2.5),
        (np.int8(3), "int8", 3),
        (np.bool_(True), "bool_", True),
    ],
)
def test_leaves(value: Any, kind: str, written: Any) -> None:
    leaf = plain_leaf(value)
    assert leaf == {"type": kind, "value": written} and type(leaf["value"]) is type(written)


@pytest.mark.parametrize("value", [3, 2.5, "sum"])
def test_a_subclass_is_not_asked(value: Any) -> None:
    assert plain_leaf(loud(type(value), value)) == {"type": type(value).__name__, "value": value}


@pytest.mark.parametrize(
    "value", [None, 1 << 14_001, Colour.RED, object(), b"", 1j, np.datetime64("2020"), np.complex64(1), int]
)
def test_what_has_no_leaf(value: Any) -> None:
    assert plain_leaf(value) is None


def test_a_text_of_a_gigabyte_costs_nothing() -> None:
    text = "x" * (1 << 30)
    assert is_long_text(text) and not is_long_text("x") and not is_long_text(3)
    assert plain_leaf(text)["value"].endswith("(1073741824 characters)")
