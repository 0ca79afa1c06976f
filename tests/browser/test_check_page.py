"""The pages of a pre-check and of two environments in the browser: filters, colours, names that are no markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.accuracy.judging.model import ApiResult, Judged, Status
from msprobe_ms.accuracy.page import write_check_page
from msprobe_ms.environment.compare import ConfigRow
from msprobe_ms.environment.compare import Status as ConfigStatus
from msprobe_ms.environment.page import write_environments_page
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


@pytest.fixture
def environments(tmp_path: Path) -> str:
    rows = [
        ConfigRow("packages", "numpy", "1.26", "2.0", ConfigStatus.ERROR, "differs"),
        ConfigRow("environment", HOSTILE, "/a/b" * 50, None, ConfigStatus.WARNING, "only in the target"),
        ConfigRow("weights", "fc.weight", {"norm": 1.0}, {"norm": 1.0}, ConfigStatus.PASS),
    ]
    file = tmp_path / "page.html"
    write_environments_page(file, rows, (Path("a.zip"), Path("b.zip")), "DIFFERENT: 1 of 3 differ")
    return file.read_text("utf-8")


def test_the_filter_finds_settings_by_name_section_and_value(opened: Open, environments: str) -> None:
    page = opened(environments, wait=False)
    assert shown(page) == ["numpy", HOSTILE, "fc.weight"]
    page.press("Tab")
    page.page.keyboard.type("packages 2.0")
    assert shown(page) == ["numpy"] and page.page.inner_text("#shown") == "1 of 3 rows"


@pytest.mark.parametrize("which", ["html", "environments"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_narrow(opened: Open, request: pytest.FixtureRequest, which: str, scheme: str) -> None:
    html = request.getfixturevalue(which)
    page = opened(html, wait=False, color_scheme=scheme, viewport={"width": 320, "height": 800})
    assert violations(page) == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 320
