"""The rank that is recorded is the one a script names, else the framework's; who is left out is told once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from msprobe_ms.recording.selection.process_rank import ProcessRank


@pytest.mark.parametrize(
    ("own", "given", "selected", "recorded"),
    [
        (None, None, [], True), (None, None, [0, 3], True), (None, None, [1], False), (2, None, [2], True),
        (2, None, [0], False), (2, 0, [0], True), (None, 5, [5], True), (None, 5, [0], False),
    ],
)  # fmt: skip
def test_which_ranks_are_recorded(own: int | None, given: int | None, selected: list[int], recorded: bool) -> None:
    said: list[Any] = []
    framework: Any = SimpleNamespace(rank=lambda: own)
    rank = ProcessRank(framework, lambda level, text: said.append(text))
    rank.given = given
    assert rank.known == (own if given is None else given)
    assert rank.is_selected(selected) is recorded
    rank.say_unselected(selected)
    assert len(said) == (not recorded)
    if not recorded and rank.known is None:
        assert "start(model, rank_id=1)" in said[0]
