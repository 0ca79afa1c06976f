"""Pages as the commands write them: a comparison, one dump alone, many ranks and steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rank_dumps import write_run, write_step

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.page.proofs import add_proof
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
    assert "DIVERGENT" in (verdict := page.text("#verdict")) and "settings" in verdict
    page.until("document.querySelector('.asked')")
    assert page.text(".asked") == "explanations tried: its deviation is an error"
    page.page.locator(".asked summary").press("Enter")
    assert "too small to explain it" in page.text(".asked")
    assert "explanations that do not apply: " in page.text(".asked")
    told = json.loads((tmp_path / "bad" / "rank0" / "dump.json").read_text())["data"]["Cell.fc.Dense.forward.0"][
        "output"
    ][0]
    assert page.text(".figures tbody.selected tr:nth-child(2)").startswith(f"\ttarget\t{told['Max']:.3f}"[:10])
    assert violations(page) == []


def test_a_comparison_with_a_proof(opened: Open, tmp_path: Path) -> None:
    write_step(tmp_path / "good", 1, {})
    write_step(tmp_path / "bad", 1, {0: 0.01})
    dumps = [str(tmp_path / name / "rank0") for name in ("bad", "good")]
    main(["compare", "-tp", dumps[0], "-gp", dumps[1], "-o", str(tmp_path / "out")])
    (report,) = (tmp_path / "out").glob("*.html")
    granted = {"permissions": ["clipboard-read", "clipboard-write"]}
    page = opened(page_of(tmp_path / "out"), **granted)
    page.settled()
    page.page.locator("button", has_text="copy the command").click()
    page.until("document.querySelector('.node').innerText.includes('copied')")
    copied = page.page.evaluate("navigator.clipboard.readText()")
    summary = report.name.replace("compare_report", "compare_summary").replace(".html", ".json")
    assert copied == f"msprobe prove {summary} --node Cell.fc.Dense.forward.0"
    assert f"msprobe prove {summary}" in page.text("#proofs")

    name, hostile = "Cell.fc.Dense.forward.0", "</div><img src=x onerror=window.PWNED=1>\u202e"
    assert add_proof(report, {"calls": [name], "answer": "wrong", "sentence": hostile, "details": [hostile, "more"]})
    plain = opened(page_of(tmp_path / "out"), wait=False, java_script_enabled=False)
    assert f"WRONG {name}: </div><img" in plain.text("#proofs") and "msprobe prove" not in plain.text("#proofs")
    page = opened(page_of(tmp_path / "out"))
    page.settled()
    page.page.locator(".node .proof summary").press("Enter")
    assert "onerror=window.PWNED=1>\\u202e" in page.text(".node .proof") and "more" in page.text(".node .proof")
    assert page.page.evaluate("typeof window.PWNED") == "undefined"
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
    assert "received through MintDistributed.all_reduce.1" in page.text(".why")
    link = page.page.locator(".why a").get_attribute("href")
    assert (tmp_path / "out" / link).exists()
    assert "Cell.fc.Dense.forward.0" in page.text(".adders")
    assert "error ratio of" in str(page.page.locator("canvas").first.get_attribute("aria-label"))
    assert violations(page) == []
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_steps_and_ranks_of_a_dump_alone(opened: Open, tmp_path: Path) -> None:
    for step, size in enumerate((0.0, 9.0, 99.0, float("nan"))):
        write_step(tmp_path / "dump" / f"step{step}", 2, {1: size})
    assert main(["view", str(tmp_path / "dump"), "-o", str(tmp_path / "out")]) == 0
    page = opened(page_of(tmp_path / "out", "dump_view_2*.html"))
    page.settled()
    first = page.page.locator('.matrix [aria-pressed="true"]')
    assert first.get_attribute("aria-label") == "step 3, rank1: not finite, the first"
    assert (tmp_path / "out" / (page.page.locator(".why a").get_attribute("href") or "")).exists()
    panel = page.page.locator('section[aria-label="rank1 over the steps"]')
    line = panel.locator("tbody tr", has_text="Cell.fc.Dense.forward.0.output.0").first.locator("canvas")
    norms = (line.get_attribute("aria-label") or "").removeprefix("over the steps: ").split(", ")
    assert norms[3] == "NaN" and float(norms[2]) > 5 * float(norms[1]) > 5 * float(norms[0])
    panel.locator("button", has_text="magnitude").press("Enter")
    panel.locator("input").fill("head")
    page.settled()
    assert "largest magnitude" in panel.locator("h2").inner_text()
    assert all("head" in name for name in panel.locator("tbody tr").all_inner_texts())
    assert violations(page) == []


def test_the_page_of_ranks_has_help_and_both_colours(opened: Open, tmp_path: Path) -> None:
    write_run(tmp_path / "dump", steps=2, ranks=1)
    main(["view", str(tmp_path / "dump"), "-o", str(tmp_path / "out")])
    page = opened(page_of(tmp_path / "out", "dump_view_2*.html"))
    page.page.locator('.tools [aria-label="help"]').press("Enter")
    assert "each field a step" in page.text("dialog")
    page.press("Escape")
    page.page.locator("dialog").wait_for(state="detached")
    ink = page.page.evaluate("getComputedStyle(document.body).color")
    page.page.locator('.tools [aria-label="dark colours"]').press("Enter")
    assert page.page.evaluate("getComputedStyle(document.body).color") != ink
