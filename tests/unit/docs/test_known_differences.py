"""docs/known_differences.md tells what is judged by, neither more nor less."""

from __future__ import annotations

import runpy
from pathlib import Path

from repository import ROOT

from msprobe_ms.accuracy.judging.known_errors import known_error
from msprobe_ms.accuracy.judging.model import ApiKey
from msprobe_ms.frameworks.mindspore.known_differences import known_difference

TOOL = runpy.run_path(str(ROOT / "tools" / "known_differences_page.py"))
PAGE = Path(TOOL["PAGE"]).read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    lines = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")][2:]


def test_it_is_what_the_tool_writes() -> None:
    assert TOOL["page"]() == PAGE, "python tools/known_differences_page.py"


def test_each_approximation_is_one_that_is_let_pass() -> None:
    told = rows("Approximations")
    for where, api, direction, dtype, bound, reason in told:
        framework, _, device = where.partition(" ")
        known = known_error(ApiKey(framework, "Mint", api.strip("`"), direction, device), dtype)
        assert known is not None and known.reason == reason
        parts = [f"{known.absolute:g}"] * bool(known.absolute) + [f"{known.relative:g} · result"] * bool(known.relative)
        assert bound == " + ".join(parts)
    assert len(told) > 10


def test_each_wrong_result_is_one_that_is_known() -> None:
    told = rows("Wrong results, and calls that raise")
    for names, direction, size, reason in told:
        for name in names.replace("`", "").split(", "):
            known = known_difference(*name.split(".", 1))
            assert known is not None and (known.direction, known.reason) == (direction, reason)
            assert (size == "raises") == (known.size is None)
    assert len(told) > 15
