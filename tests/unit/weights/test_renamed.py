"""Which parameters are the same under another name, by their numbers."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.weights.model import Weight
from msprobe_ms.weights.renamed import renamed


def weight(name: str, values: object, dtype: str = "float32") -> Weight:
    array = np.asarray(values, dtype)
    return Weight(name, dtype, array.shape, lambda: array)


def test_equal_numbers_under_other_names_are_paired() -> None:
    ours = [weight("a", [1.0, 2.0]), weight("b", [[1.0, 2.0]]), weight("c", [5.0, 6.0])]
    theirs = [weight("y", [[1.0, 2.0]]), weight("x", [1.0, 2.0]), weight("z", [5.0, 6.5])]
    assert renamed(ours, theirs) == ({"a": "x", "b": "y"}, {})


def test_of_what_several_hold_nobody_can_tell_where_the_other_side_has_fewer() -> None:
    twice = [weight("a", [1.0, 2.0]), weight("b", [1.0, 2.0])]
    once = [weight("x", [1.0, 2.0])]
    assert renamed(twice, once) == renamed(once, twice) == ({}, {})


def test_constants_pair_with_equal_ones() -> None:
    found, _ = renamed([weight("a", [0.0, 0.0]), weight("s", 3.0)], [weight("x", [1.0, 1.0]), weight("t", 3.0)])
    assert found == {"s": "t"}


def test_what_cannot_be_read_and_what_is_transposed_is_left_alone() -> None:
    def load() -> NoReturn:
        raise DumpFormatError("cut off")

    damaged = Weight("a", "float32", (2,), load)
    assert (
        renamed([damaged, weight("b", [[1, 2], [3, 4]])], [weight("x", [1, 2]), weight("y", [[1, 3], [2, 4]])])[0] == {}
    )
    strided = np.arange(8, dtype=np.float32).reshape(4, 2)[:, 0]
    assert renamed([weight("a", strided)], [weight("x", [0, 2, 4, 6])])[0] == {"a": "x"}
