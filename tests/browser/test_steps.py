"""Several steps: the page of one in windows of usual sizes, and what the page over all says of those after an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rank_dumps import write_run

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.many.page import PairTold, TrendColumns, write_many
from tests.browser.conftest import Open, Opened
from tests.browser.test_accessible import violations
from tests.browser.test_kinds import page_of


def below(page: Opened, selector: str) -> Any:
    """Where what stands below an element begins."""
    box = page.box(selector)
    return pytest.approx(box["y"] + box["height"] + 10, abs=1)


def test_the_figures_of_an_origin_are_seen_without_scrolling(opened: Open, tmp_path: Path, one_worker: None) -> None:
    good = write_run(tmp_path / "good", steps=2, ranks=2)
    bad = write_run(tmp_path / "bad", steps=2, ranks=2, faulty=1, from_step=1)
    out = tmp_path / "out"
    main(["compare", "-tp", str(bad), "-gp", str(good), "-o", str(out)])
    page = opened(page_of(out, "compare_report_step1_rank1_*.html"))
    page.until("document.querySelector('.figures tbody.selected')")
    for width, height in ((1280, 720), (1366, 768), (1920, 1080)):
        page.page.set_viewport_size({"width": width, "height": height})
        page.settled()
        plot, node, value = map(page.box, ("section.plot", "section.node", ".figures tbody.selected"))
        assert value["y"] + value["height"] <= height and page.page.evaluate("scrollY") == 0
        assert plot["x"] + plot["width"] <= node["x"] and plot["y"] == node["y"] == below(page, "#verdict")
        assert page.page.evaluate("document.documentElement.scrollWidth") == width
    page.page.set_viewport_size({"width": 1440, "height": 1200})
    page.settled()
    assert page.box("section.plot")["width"] > 1400 and "settings" in page.text(".origin-box")
    assert (out / (page.page.locator("#verdict a").get_attribute("href") or "")).exists()


def test_a_step_after_the_error_is_not_told_as_if_all_were_well(opened: Open, tmp_path: Path) -> None:
    pairs = [
        PairTold(0, "rank0", "consistent"),
        PairTold(
            1,
            "rank0",
            "divergent",
            origin="Cell.layers.0.norm.LayerNorm.forward.0.output.0",
            reason="it differs; " * 30,
        ),
        PairTold(
            2,
            "rank0",
            "consistent",
            reason="512 values differ by rounding errors that have added up",
            differing=512,
        ),
    ]
    write_many(tmp_path / "many.html", ["DIVERGENT: 3 pairs"], pairs, "divergent", TrendColumns())
    page = opened(page_of(tmp_path))
    assert page.page.locator(".matrix button").all_inner_texts() == ["✓", "①✖", "~"]
    page.page.locator('.matrix [aria-label="step 2, rank0: consistent, values differ"]').press("Enter")
    assert "512 values differ" in page.text(".why")
    assert "; ~ consistent, though values differ" in page.text("section:has(.matrix) > p.muted:last-child")
    page.press("?")
    page.settled()
    assert "look there first" in page.text("dialog")
    assert page.box("#verdict thead th")["height"] < 24  # its word is not broken
    assert page.box("section.panel")["y"] == below(page, "#verdict")
    assert violations(page) == []
