"""The page of many ranks and steps: what of each pair is told, links to their own pages, errors over the steps."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from rank_dumps import write_run
from report_page import Page

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.many.page import quantised

processes = pytest.mark.processes


@pytest.fixture
def pages(tmp_path: Path, one_worker: None) -> dict[str, Page]:
    good = write_run(tmp_path / "good", steps=2, ranks=2)
    bad = write_run(tmp_path / "bad", steps=2, ranks=2, faulty=1, from_step=1)
    assert main(["compare", "-tp", str(bad), "-gp", str(good), "-o", str(tmp_path / "out"), "--csv"]) == 0
    return {path.name: Page.of(path) for path in (tmp_path / "out").glob("*.html")}


@processes
def test_every_pair_is_told_with_the_name_of_its_page(pages: dict[str, Page]) -> None:
    (page,) = [page for page in pages.values() if page.index["kind"] == "ranks"]
    pairs = page.index["pairs"]
    assert [(each["step"], each["rank"]) for each in pairs] == [
        (step, f"rank{rank}") for step in (0, 1) for rank in (0, 1)
    ]
    assert [each["verdict"] for each in pairs[:2]] == ["consistent"] * 2
    assert "divergent" in {each["verdict"] for each in pairs[2:]}
    assert {each["page"] for each in pairs} == {name for name in pages if "step" in name}
    for each in pairs:
        assert pages[each["page"]].index["verdict"] == each["verdict"]


@processes
def test_the_static_part_links_the_pages_of_what_differs(pages: dict[str, Page]) -> None:
    (page,) = [page for page in pages.values() if page.index["kind"] == "ranks"]
    assert "<strong>DIVERGENT</strong> 4 pairs of dumps" in page.static
    links = re.findall(r'<a href="\./([^"]+)">divergent</a>', page.static)
    assert links and set(links) <= set(pages)


@processes
def test_errors_over_the_steps_are_there_for_every_node(pages: dict[str, Page]) -> None:
    (page,) = [page for page in pages.values() if page.index["kind"] == "ranks"]
    assert [each["rank"] for each in page.index["trends"]] == ["rank0", "rank1"]
    faulty = page.index["trends"][1]
    names, steps = page.column(faulty["names"]), faulty["steps"]
    (measure,) = faulty["measures"]
    matrix = page.column(measure["column"]).reshape(len(names), len(steps))
    assert measure["title"] == "error ratio" and set(faulty["growing"]) <= set(names)
    assert steps == [0, 1] and page.index["of"] == "comparisons"
    assert (matrix[:, 1] > matrix[:, 0]).any()


def test_error_ratios_become_bytes() -> None:
    found = quantised(np.array([0.0, np.nan, 1e-9, 1e-4, 1.0, 1e8, 1e12, np.inf]))
    assert found.tolist() == [0, 0, 1, 1, 85, 254, 254, 255]
