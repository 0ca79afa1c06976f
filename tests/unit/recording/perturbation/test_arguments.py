"""Arguments are found in nested containers, and exchanged without a trace in those of the script."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from msprobe_ms.recording.perturbation.arguments import Leaves, NotRepeatableError, in_order, leaves


class Pair(NamedTuple):
    first: Any
    second: Any


def test_leaves_are_found_in_order_and_exchanged_in_new_containers() -> None:
    given = [1, (2, [3]), {"a": Pair(4, 5)}]
    assert leaves(given) == [1, 2, 3, 4, 5]
    assert in_order((1, [2]), {"b": 3}) == [1, 2, 3]
    other = Leaves(lambda leaf: leaf * 10).of(given)
    assert other == [10, (20, [30]), {"a": Pair(40, 50)}] and type(other[2]["a"]) is Pair
    assert given == [1, (2, [3]), {"a": Pair(4, 5)}]


@pytest.mark.parametrize(
    ("value", "why"),
    [(iter([1]), "read but once"), (len, "a function"), ([[]] * 10_001, "many"), (None, "")],
)
def test_what_cannot_be_given_twice_is_refused(value: Any, why: str) -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    for given, reason in ((value, why), (cyclic, "nested deeply")):
        if reason:
            with pytest.raises(NotRepeatableError, match=reason):
                in_order((given,), {})
        else:
            assert in_order((given,), {}) == [None]
