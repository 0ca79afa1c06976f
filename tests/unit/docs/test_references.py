"""Every reference to a document, a heading or a file of the repository leads somewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import msprobe_ms

PACKAGE = Path(msprobe_ms.__file__).parent
ROOT = PACKAGE.parent
FOLDERS = ("msprobe_ms", "tests", "benchmarks", "torture", "samples", "tools")
CODE = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
FURTHER = ("benchmarks/*.md", "torture/*.md", "zoo/*.md", "docs/*.ipynb")
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
PAGES += [page for pattern in FURTHER for page in sorted(ROOT.glob(pattern))]
CHINESE = ROOT / "docs" / "zh"

#: ``docs/format.md, "Entry names"``, also where a line ends in between; ``docs/mindspore/`` is another repository's.
_CITATION = re.compile(r"""(?<!/)(docs/(?!mindspore/)[\w/-]+\.md)(?:`*, \\?["“]([^"”\\]+)\\?["”])?""")
_LINE_BREAK = re.compile(r"\s*\n\s*(?:#:?\s*)?")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        return "\n\n".join(
            "".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"
        )
    return _CODE_BLOCK.sub("", text)


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(page)}


def citations() -> Iterator[tuple[str, str, str]]:
    """The file that cites, the document, and the heading or ""."""
    for path in [*CODE, *PAGES]:
        text = _LINE_BREAK.sub(" ", path.read_text(encoding="utf-8"))
        for document, heading in _CITATION.findall(text):
            yield str(path.relative_to(ROOT)), document, heading


def links() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        yield from ((str(page.relative_to(ROOT)), link) for link in _LINK.findall(prose(page)) if "://" not in link)


def test_every_cited_heading_exists() -> None:
    cited = sorted(set(citations()))
    assert sum(document == "docs/format.md" and bool(heading) for _, document, heading in cited) > 15
    for file, document, heading in cited:
        assert (ROOT / document).is_file(), (file, document)
        assert not heading or heading in headings(ROOT / document), (file, document, heading)


def test_sections_are_cited_by_sign_of_books_alone() -> None:
    sign = chr(0xA7)
    for path in CODE:
        for line in path.read_text(encoding="utf-8").splitlines():
            assert sign not in line or " ed., " in line, (path, line)


@pytest.mark.parametrize(("page", "link"), list(links()))
def test_every_link_of_a_page_leads_somewhere(page: str, link: str) -> None:
    file, _, anchor = link.partition("#")
    target = ((ROOT / page).parent / file).resolve() if file else ROOT / page
    if not target.exists() and CHINESE in target.parents:  # pages are translated one by one; the site shows the English
        target = ROOT / "docs" / target.relative_to(CHINESE)
    assert target.exists()
    assert not anchor or anchor in anchors(target)


def test_the_tree_of_the_architecture_has_every_folder() -> None:
    tree = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")} - {Path()}
    for folder in folders:
        if len(folder.parts) == 1 or folder.parts[0] != "compat":
            indent = "  " * len(folder.parts)
            assert re.search(rf"^{indent}{re.escape(folder.name)}/ ", tree, re.MULTILINE), folder


def test_the_files_that_contributing_names_exist() -> None:
    named = set(re.findall(r"`((?:[\w-]+/)*[\w-]+\.py)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    beside_others = {name for name in named if "/" not in name or name.startswith(("tests/", "msprobe_ms/", "tools/"))}
    assert len(named - beside_others) > 8
    for name in named - beside_others:
        assert (PACKAGE / name).is_file(), name
