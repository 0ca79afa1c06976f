"""Names of exported files."""

from __future__ import annotations

from pathlib import Path

from msprobe_ms.comparison.export.files import Naming


def test_names_tell_the_time_and_the_place() -> None:
    assert Naming(Path("out"), "2026").path("_step0_rank1", ".dot") == Path("out/export_step0_rank1_2026.dot")
