"""Columns are below each other on a terminal, in either language."""

from __future__ import annotations

from msprobe_ms.support.columns import display_width, padded


def test_a_chinese_character_is_two_wide() -> None:
    assert [display_width(text) for text in ("", "norm", "范数", "（a）")] == [0, 4, 4, 5]
    assert (padded("范数", 6), padded("范数", 6, right=True), padded("范数", 3)) == ("范数  ", "  范数", "范数")
