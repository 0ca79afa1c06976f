"""One dump as a page: its values as they were recorded, and where what is not finite comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rank_dumps import call, write_dump
from report_page import Page, is_missing
from repository import DATA

from msprobe_ms.comparison.view.view import view
from msprobe_ms.dump.reading.reader import read_dump

LENET = DATA / "golden" / "mindspore_lenet_L1_tensor" / "proc16362"


def test_the_page_holds_every_value_of_the_dump(tmp_path: Path) -> None:
    (file,) = view(LENET, tmp_path, "1")
    page, dump = Page.of(file), read_dump(LENET)
    assert page.index["kind"] == "dump"
    assert page.column("call_names") == list(dump.entries)
    items = [item for entry in dump.entries.values() for item in entry.items]
    assert page.names() == [item.name for item in items]
    found = page.column("target_norm")
    norms = [item.norm if item.kind == "tensor" else None for item in items]
    assert is_missing(found).tolist() == [norm is None for norm in norms]
    assert found[~is_missing(found)].tolist() == [np.float32(norm) for norm in norms if norm is not None]
    assert "every value finite" in page.static
    assert str(LENET / "dump.json") in page.static


def test_the_first_that_is_not_finite_is_named(tmp_path: Path) -> None:
    ones = np.ones(4, np.float32)
    bad = np.array([1, np.nan, 1, 1], np.float32)
    calls = {"Cell.a.Dense.forward.0": call(ones, ones), "Cell.b.Dense.forward.0": call(ones, bad)}
    write_dump(tmp_path / "dump", {**calls, "Cell.c.Dense.forward.0": call(bad, bad)})
    (file,) = view(tmp_path / "dump", tmp_path, "1")
    page = Page.of(file)
    (origin,) = page.index["origins"]
    assert page.names()[origin["row"]] == "Cell.b.Dense.forward.0.output.0"
    assert "<h1>NaN first at Cell.b.Dense.forward.0.output.0</h1>" in page.static
    assert page.column("row_flags")[origin["row"]] & 32


def test_overflow_check_says_what_it_found_first_and_where_it_found_nothing(tmp_path: Path) -> None:
    ones, bad = np.ones(4, np.float32), np.array([1, np.inf, 1, 1], np.float32)
    write_dump(tmp_path / "dump" / "step0" / "rank0", {}, "overflow_check")
    found = {"Cell.b.Dense.forward.0": call(ones, bad), "Cell.c.Dense.forward.0": call(bad, bad)}
    write_dump(tmp_path / "dump" / "step1" / "rank0", found, "overflow_check")
    nothing, first, both = map(Page.of, view(tmp_path / "dump", tmp_path, "1"))
    assert "<h1>overflow_check found no NaN and no infinity</h1>" in nothing.static
    assert "<h1>inf first at Cell.b.Dense.forward.0.output.0</h1>" in first.static
    assert "although the inputs of the call are finite" in first.static and "2 entries of the dump hold" in first.static
    assert "first in step 1, rank0, at Cell.b.Dense.forward.0.output.0" in both.static
