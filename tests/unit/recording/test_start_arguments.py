"""What ``start`` cannot work with is said in its own words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from msprobe_ms.recording.start_arguments import check_start, tokens_of
from msprobe_ms.support.errors import UsageError

FRAMEWORK: Any = SimpleNamespace(is_module=lambda each: each == "net", module_type="nn.Module")


@pytest.mark.parametrize(
    ("level", "model", "token_range", "rank_id", "problem"),
    [
        ("L0", 1, None, None, "model is a int; give a nn.Module or a list of them"),
        ("L0", ["net", 1], None, None, r"model\[1\] is a int"),
        ("L0", None, None, None, "level L0 records modules and needs the network"),
        ("L1", None, [0, 1], None, r"token_range \[0, 1\] is not accepted; give \[first, last\] and a model"),
        ("L0", "net", [1, 0], None, "token_range"),
        ("L0", "net", None, -1, "rank_id -1 is not accepted"),
        ("L0", "net", None, "1", "rank_id '1' is not accepted"),
    ],
)
def test_what_is_refused(level: str, model: Any, token_range: Any, rank_id: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        check_start(FRAMEWORK, level, model, token_range, rank_id)


@pytest.mark.parametrize(
    ("given", "tokens"),
    [([1, 3], {1, 2, 3}), ((0, 0), {0}), ({0, 5}, {0, 5}), (range(2, 8, 3), {2, 5}), (frozenset({4}), {4})],
)
def test_tokens(given: Any, tokens: set[int]) -> None:
    found = tokens_of(given)
    assert found is not None and {number for number in range(10) if number in found} == tokens


@pytest.mark.parametrize("given", [3, [1], [2, 1], [0, 1, 2], {-1}, {"0"}, {True}, set(), range(0), None])
def test_what_is_no_tokens(given: Any) -> None:
    assert tokens_of(given) is None


@pytest.mark.parametrize(("level", "model"), [("L0", "net"), ("mix", ["net"]), ("L1", None)])
def test_what_is_accepted(level: str, model: Any) -> None:
    check_start(FRAMEWORK, level, model, [0, 3] if model else None, 0)
