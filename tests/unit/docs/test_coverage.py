"""docs/coverage.md: every claim names the tests that show it, and they are there."""

from __future__ import annotations

import ast
import re

import pytest
from repository import ROOT

PAGE = (ROOT / "docs" / "coverage.md").read_text()

#: `test_module`, `test_function` or `test_module::test_function`.
NAMED = re.findall(r"`(test_\w+(?:::test_\w+)?)`", PAGE)

#: Rows of the tables whose last column says what shows them.
ROWS = [
    line
    for table in re.findall(r"^\|.*shown by \|\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    for line in table.splitlines()
]


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


def test_every_row_names_a_test() -> None:
    assert len(ROWS) > 30
    for row in ROWS:
        cells = row.strip("|").split(" | ")
        assert len(cells) == 5, row
        assert re.search(r"`test_\w+::test_\w+`", cells[-1]), row
        assert all(cell.strip() for cell in cells), row
