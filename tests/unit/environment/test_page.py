"""The page of two environments: what changes numbers first, everything once, and nothing collected as markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from msprobe_ms.environment.compare import ConfigRow, Status
from msprobe_ms.environment.page import write_environments_page

HOSTILE = "</td><img src=x onerror=alert(1)>\"'&"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.cell: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_data(self, data: str) -> None:
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self.cell is not None:
            self.rows[-1].append(self.cell)
            self.cell = None


@pytest.fixture
def page(tmp_path: Path) -> _Reader:
    rows = [
        ConfigRow("packages", "numpy", "1.26.4", "1.26.4", Status.PASS),
        ConfigRow("environment", HOSTILE, HOSTILE, None, Status.WARNING, "only in the target"),
        ConfigRow("hyperparameters", "lr", 1e-3, 1e-4, Status.ERROR, "differs"),
        ConfigRow(
            "weights", "fc.weight", {"shape": [2, 3], "md5": None, "norm": 1 / 3}, {HOSTILE: [1]}, Status.ERROR,
            "norm 0.3333333 and 1",
        ),
    ]  # fmt: skip
    file = tmp_path / "page.html"
    write_environments_page(file, rows, (Path("one.zip"), Path(f"{HOSTILE}.zip")), "DIFFERENT: 2 of 4 differ")
    reader = _Reader()
    reader.feed(file.read_text("utf-8"))
    return reader


def test_what_changes_numbers_comes_first_and_every_row_is_there(page: _Reader) -> None:
    assert page.rows == [
        ["Name", "Section", "Result", "Target", "Golden", "Note"],
        ["lr", "hyperparameters", "error", "0.001", "0.0001", "differs"],
        [
            "fc.weight", "weights", "error", "shape [2, 3], norm 0.3333333", f"{HOSTILE} [1]", "norm 0.3333333 and 1",
        ],
        [HOSTILE, "environment", "warning", HOSTILE, "", "only in the target"],
        ["numpy", "packages", "pass", "1.26.4", "1.26.4", ""],
    ]  # fmt: skip


def test_the_rows_can_be_filtered_by_result_and_by_what_stands_in_them(page: _Reader) -> None:
    bodies = [attributes for tag, attributes in page.tags if tag == "tbody"]
    assert [body["data-status"] for body in bodies] == ["error", "error", "warning", "pass"]
    assert bodies[0]["data-about"] == "lr hyperparameters 0.001 0.0001"
    assert [each["value"] for tag, each in page.tags if tag == "input" and "value" in each] == [
        "error", "warning", "pass",
    ]  # fmt: skip


def test_what_was_collected_is_text_and_nothing_is_loaded(page: _Reader) -> None:
    assert not [tag for tag, _ in page.tags if tag in ("img", "link", "iframe")]
    assert not [each for _, each in page.tags if "src" in each or "href" in each]
    policy = next(each["content"] for _, each in page.tags if each.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-")
