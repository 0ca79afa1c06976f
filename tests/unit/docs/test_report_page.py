"""Every test that the document of the report page names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "report_page_design.md").read_text("utf-8")
NAMED = re.compile(r"`((?:tests/)?[\w/]*test_\w+(?:\.py)?(?:::test_\w+)?)`")


@pytest.mark.parametrize("named", sorted(set(NAMED.findall(TEXT))))
def test_what_is_named_is_a_test(named: str) -> None:
    file, _, name = named.partition("::")
    browser = ROOT / "tests" / "browser"
    if not file.endswith(".py"):
        # The further tests of a line are of the file before.
        assert any(f"def {file}(" in path.read_text("utf-8") for path in browser.glob("*.py"))
        return
    path = ROOT / file if file.startswith("tests/") else browser / file
    assert f"def {name}(" in path.read_text("utf-8") if name else path.exists()
