"""docs/coverage.md: every row is shown by tests that tests/coverage.md names, and they are there."""

from __future__ import annotations

import ast
import re

import pytest
from repository import ROOT

PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
EVIDENCE = (ROOT / "tests" / "coverage.md").read_text(encoding="utf-8")

#: `test_module`, `test_function` or `test_module::test_function`.
NAMED = re.findall(r"`(test_\w+(?:::test_\w+)?)`", EVIDENCE)

#: Pages for those who change the code.
FOR_MAINTAINERS = {"architecture.md", "report_page_design.md"}


def first_cells(table: str) -> list[str]:
    """Return the first cell of each row, links as their text."""
    return [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", line.strip("|").split(" | ")[0].strip()) for line in table.splitlines()]


def tables(page: str, head: str) -> list[str]:
    """Return the rows of each table with that head."""
    return re.findall(rf"^{head}\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)


@pytest.fixture(scope="module")
def functions() -> dict[str, set[str]]:
    """Every module of tests with its functions."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        names = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        found.setdefault(path.stem, set()).update(names)
    return found


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_the_named_test_exists(name: str, functions: dict[str, set[str]]) -> None:
    module, _, function = name.partition("::")
    if function:
        assert function in functions[module]
    else:
        assert name in functions or any(name in found for found in functions.values())


def test_every_row_is_shown_by_a_test() -> None:
    pages = [*tables(PAGE, r"\| what runs \| L0 \| L1 \| mix \|"), *tables(PAGE, r"\| level \| O0, O1 \| O2 \|.*")]
    evidence = tables(EVIDENCE, r"\| what runs \| shown by \|")
    assert sum(len(table.splitlines()) for table in pages) > 50
    assert [first_cells(table) for table in pages] == [first_cells(table) for table in evidence]
    for row in "".join(evidence).splitlines():
        assert re.search(r"`test_\w+::test_\w+`", row), row


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_pages_for_users_name_no_tests(page: str) -> None:
    if page not in FOR_MAINTAINERS:
        assert not re.findall(r"`test_\w+|tests/\w+", (ROOT / "docs" / page).read_text(encoding="utf-8"))
