"""Pages as the commands write them: a comparison, one dump alone, many ranks and steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rank_dumps import write_run, write_step

from msprobe_ms.cli.main import main
from tests.browser.conftest import Open
from tests.browser.test_accessible import NARROW, violations


def page_of(folder: Path, pattern: str = "*.html") -> str:
    (page,) = folder.glob(pattern)
    return page.read_text("utf-8")


def test_a_comparison(opened: Open, tmp_path: Path) -> None:
    write_step(tmp_path / "good", 1, {})
    write_step(tmp_path / "bad", 1, {0: 0.01})
    dumps = [str(tmp_path / name / "rank0") for name in ("bad", "good")]
    main(["compare", "-tp", dumps[0], "-gp", dumps[1], "-o", str(tmp_path / "out")])
    page = opened(page_of(tmp_path / "out"))
    page.settled()
    assert page.node == "Cell.fc.Dense.forward.0"
    assert "DIVERGENT" in page.text("#verdict") and "settings" in page.text(".origin-box")
    told = json.loads((tmp_path / "bad" / "rank0" / "dump.json").read_text())["data"]["Cell.fc.Dense.forward.0"][
        "output"
    ][0]
    assert page.text(".figures tbody.selected tr:nth-child(2)").startswith(f"\ttarget\t{told['Max']:.3f}"[:10])
    assert violations(page) == []


@pytest.mark.parametrize("broken", [False, True])
def test_one_dump_alone(opened: Open, tmp_path: Path, broken: bool) -> None:
    write_step(tmp_path / "dump", 1, {0: float("nan") if broken else 0.0})
    assert main(["view", str(tmp_path / "dump" / "rank0"), "-o", str(tmp_path / "out")]) == 0
    page = opened(page_of(tmp_path / "out"))
    page.settled()
    assert "magnitude" in page.text(".plot h2")
    assert page.page.locator("text=golden").all_inner_texts() == []
    if broken:
        assert page.node == "Cell.fc.Dense.forward.0"
        assert "first not finite" in page.text("#grid")
        page.press("Home", "n")
        page.settled()
        assert "not finite" in page.text('#grid [aria-selected="true"]')
    for tab in ("neighbours", "stack", "raw", "elements"):
        page.page.locator(f"#tab-{tab}").click()
        page.settled()
    assert violations(page) == []


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": NARROW}], ids=["light", "dark", "narrow"]
)
def test_many_ranks_and_steps(opened: Open, tmp_path: Path, one_worker: None, options: dict[str, object]) -> None:
    good = write_run(tmp_path / "good", steps=2, ranks=2)
    bad = write_run(tmp_path / "bad", steps=2, ranks=2, faulty=1, from_step=1)
    main(["compare", "-tp", str(bad), "-gp", str(good), "-o", str(tmp_path / "out"), "--csv"])
    page = opened(page_of(tmp_path / "out", "compare_report_2*.html"), **options)
    page.settled()
    first = page.page.locator('.matrix [aria-pressed="true"]')
    assert first.get_attribute("aria-label") == "step 1, rank1: divergent, the first"
    assert "Cell.fc.Dense.forward.0" in page.text(".why")
    page.page.locator('.matrix [aria-label^="step 1, rank0"]').press("Enter")
    assert "handed to it by MintDistributed.all_reduce.1" in page.text(".why")
    link = page.page.locator(".why a").get_attribute("href")
    assert (tmp_path / "out" / link).exists()
    assert "Cell.fc.Dense.forward.0" in page.text(".adders")
    assert "error ratio of" in str(page.page.locator("canvas").first.get_attribute("aria-label"))
    assert violations(page) == []
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
