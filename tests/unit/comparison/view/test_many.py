"""The page of dumps of many ranks and steps: figures of nodes over the steps, and the first that is not finite."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rank_dumps import call, write_dump, write_step
from report_page import Page, is_missing

from msprobe_ms.comparison.view import many
from msprobe_ms.comparison.view.view import view


def grown(root: Path, bad: float = 0.0) -> Path:
    """Three steps of two ranks; the layer of rank 1 grows, in the last step to ``bad`` where that is given."""
    for step, size in enumerate((0.0, 9.0, 99.0)):
        write_step(root / f"step{step}", 2, {1: bad if bad and step == 2 else size})
    return root


def page_of_all(dumps: Path, out: Path) -> Page:
    out.mkdir()
    return Page.of(list(view(dumps, out, "1"))[-1])


def test_norms_and_magnitudes_of_every_node_over_the_steps(tmp_path: Path) -> None:
    page = page_of_all(grown(tmp_path / "dump"), tmp_path / "out")
    assert (page.index["kind"], page.index["of"], page.index["verdict"]) == ("ranks", "dumps", "consistent")
    assert "<strong>FINITE</strong> every value of 6 dumps, steps 0 to 2" in page.static
    trend = next(each for each in page.index["trends"] if each["rank"] == "rank1")
    names = page.column(trend["names"])
    assert trend["steps"] == [0, 1, 2] and all(".output." in name for name in names)
    for title, key in (("norm", "Norm"), ("largest magnitude", "Max")):
        (column,) = [each["column"] for each in trend["measures"] if each["title"] == title]
        figures = page.column(column).reshape(len(names), 3)[names.index("Cell.fc.Dense.forward.0.output.0")]
        recorded = [
            json.loads((tmp_path / f"dump/step{step}/rank1/dump.json").read_text())["data"]["Cell.fc.Dense.forward.0"][
                "output"
            ][0]
            for step in range(3)
        ]
        wanted = [each["Norm"] if key == "Norm" else max(abs(each["Max"]), abs(each["Min"])) for each in recorded]
        assert figures.tolist() == pytest.approx(wanted, rel=1e-2)
        assert figures[2] > 50 * figures[0]


def test_the_first_step_and_rank_that_is_not_finite(tmp_path: Path) -> None:
    page = page_of_all(grown(tmp_path / "dump", bad=float("nan")), tmp_path / "out")
    pairs = page.index["pairs"]
    assert [each["verdict"] for each in pairs] == ["finite"] * 4 + ["not finite"] * 2
    assert pairs[5]["origin"] == "Cell.fc.Dense.forward.0.output.0"
    assert "although the inputs of the call are finite" in pairs[5]["reason"]
    assert pairs[4]["handed_by"] == "MintDistributed.all_reduce.1.forward"
    assert "first in step 2, rank1, at Cell.fc.Dense.forward.0.output.0" in page.static
    assert {each["page"] for each in pairs} == {path.name for path in (tmp_path / "out").glob("*rank*.html")}
    assert f'<a href="./{pairs[5]["page"]}">not finite</a>' in page.static


def test_a_node_that_a_step_has_not_is_no_number(tmp_path: Path) -> None:
    ones = np.ones(4, np.float32)
    for step in (0, 1):
        names = ["Cell.a.Dense.forward.0", "Cell.b.Dense.forward.0"][: 1 + step]
        write_dump(tmp_path / "dump" / f"step{step}" / "rank0", {name: call(ones, ones) for name in names})
    page = page_of_all(tmp_path / "dump", tmp_path / "out")
    (trend,) = page.index["trends"]
    figures = page.column(trend["measures"][0]["column"])
    assert is_missing(figures).tolist() == [False, False, True, False]


def test_of_very_many_nodes_those_that_change_most_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "_MOST", 3)
    page = page_of_all(grown(tmp_path / "dump"), tmp_path / "out")
    for trend in page.index["trends"]:
        assert len(page.column(trend["names"])) == 1
    assert page.column(page.index["trends"][1]["names"]) == ["Cell.fc.Dense.forward.0.output.0"]


def test_one_dump_has_no_page_of_all(tmp_path: Path) -> None:
    write_step(tmp_path / "dump" / "step0", 1, {})
    (tmp_path / "out").mkdir()
    (file,) = view(tmp_path / "dump", tmp_path / "out", "1")
    assert Page.of(file).index["kind"] == "dump"
