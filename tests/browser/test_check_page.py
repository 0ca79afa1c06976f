"""The page of a pre-check in the browser: its filter, its colours, and names that are no markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.accuracy.judging.model import ApiResult, Judged, Status
from msprobe_ms.accuracy.page import write_check_page
from tests.browser.conftest import Open, Opened
from tests.browser.test_accessible import violations

HOSTILE = "<img src=x onerror=alert(1)>"


def result(name: str, status: Status) -> ApiResult:
    row = Judged(
        f"{name}.forward.output.0", "float64", "float32", (2, 3), {"ulp": 2.0, "allowed_ulp": 4.0}, status,
        "benchmark", "pointwise: 4 ULP", "", "pytorch",
    )  # fmt: skip
    return ApiResult(name, status, None, "", (row,))


@pytest.fixture
def html(tmp_path: Path) -> str:
    calls = [result(f"Mint.{api}.{n}", Status.PASS) for api in ("sub", "exp") for n in range(3)]
    file = tmp_path / "page.html"
    write_check_page(
        file, tmp_path / "dump.json", [*calls, result(f"Mint.{HOSTILE}.0", Status.ERROR)], "ERROR: 7 results"
    )
    return file.read_text("utf-8")


def shown(page: Opened) -> list[str]:
    names: list[str] = page.page.evaluate(
        "[...document.querySelectorAll('tbody')].filter((b) => !b.hidden).map((b) => b.querySelector('th').textContent)"
    )
    return names


def test_the_filter_leaves_what_was_asked_for(opened: Open, html: str) -> None:
    page = opened(html, wait=False)
    assert shown(page)[0] == f"Mint.{HOSTILE}.0" and len(shown(page)) == 7
    page.press("Tab")
    page.page.keyboard.type("exp bench")
    assert shown(page) == ["Mint.exp.0", "Mint.exp.1", "Mint.exp.2"]
    assert page.page.inner_text("#shown") == "3 of 7 calls"
    page.press("Tab", "Tab", "Tab", "Space")  # statuses: error, warning, pass
    assert shown(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_narrow(opened: Open, html: str, scheme: str) -> None:
    page = opened(html, wait=False, color_scheme=scheme, viewport={"width": 320, "height": 800})
    assert violations(page) == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 320
