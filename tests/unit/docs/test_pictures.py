"""The pictures of the report page that the script draws are there, and are shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PICTURES = re.findall(r'Picture\("(\w+\.png)"', (ROOT / "tools" / "page_pictures.py").read_text("utf-8"))
IMAGE = re.compile(r"!\[[^\]]+\]\((?:docs/)?img/([\w.]+)\)")


def shown(page: Path) -> list[str]:
    """Return the names of the pictures of a page of documentation, in order."""
    return IMAGE.findall(page.read_text("utf-8"))


def test_the_readme_begins_with_the_page() -> None:
    assert shown(ROOT / "README.md")[0] == PICTURES[0] == "report.png"


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_of_the_script_is_there_and_shown(name: str) -> None:
    content = (ROOT / "docs" / "img" / name).read_bytes()
    assert content.startswith(b"\x89PNG") and 10_000 < len(content) < 400_000
    assert any(name in shown(page) for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
