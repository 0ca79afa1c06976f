"""The page of a pre-check: what is wrong first, every call, and nothing from a dump as markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from msprobe_ms.accuracy.judging.model import ApiResult, Judged, Status
from msprobe_ms.accuracy.page import write_check_page

HOSTILE = "<img src=x onerror=alert(1)>\"'&"


def result(name: str, status: Status, message: str = "") -> ApiResult:
    row = Judged(
        f"{name}.forward.output.0", "float64", "float32", (2, 3), {"ulp": 2.0, "allowed_ulp": 4.0}, status,
        "benchmark", "pointwise: 4 ULP", message, "pytorch",
    )  # fmt: skip
    return ApiResult(name, status, None, message, () if status is Status.SKIP else (row,))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def page(tmp_path: Path) -> _Reader:
    results = [
        result("Mint.abs.0", Status.PASS),
        result("Cell.fc.Dense.forward.0", Status.SKIP, "a module"),
        result(f"Mint.{HOSTILE}.0", Status.ERROR, HOSTILE),
        result("Mint.exp.0", Status.WARNING),
    ]
    file = tmp_path / "page.html"
    write_check_page(file, tmp_path / "dump.json", results, "ERROR: dump.json: 3 API calls judged")
    reader = _Reader()
    reader.feed(file.read_text("utf-8"))
    return reader


def test_what_is_wrong_comes_first_and_every_call_is_there(page: _Reader) -> None:
    bodies = [attributes["data-status"] for tag, attributes in page.tags if tag == "tbody"]
    assert bodies == ["error", "warning", "pass", "SKIP"]
    assert "ERROR: dump.json: 3 API calls judged" in page.texts


def test_names_from_a_dump_are_text(page: _Reader) -> None:
    assert [tag for tag, _ in page.tags if tag == "img"] == []
    assert f"Mint.{HOSTILE}.0" in page.texts
    policy = next(attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-")
