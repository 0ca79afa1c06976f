"""A page says what the comparison found: every call, every value, every figure, and where the error begins."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_parts import compared, dump, null, tensor, value
from report_page import Page, is_missing
from repository import DATA

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.model import Comparison, Outcome, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.page import choice
from msprobe_ms.comparison.page.choice import findings
from msprobe_ms.comparison.page.report import write_content, write_report, write_report_to
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.comparison.statistics import RELATIVES
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import UsageError

MAPPING = DATA / "mapping"
HOSTILE = '</script><img src=x onerror="alert(1)">\u202e\x1b[31m\ud800'


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    target, golden = (read_dump(MAPPING / f"encoder_{framework}_L0") for framework in ("mindspore", "pytorch"))
    return Outcome("", target, golden, compare_dumps(target, golden, Options(align=True)), [])


@pytest.fixture(scope="module")
def page(outcome: Outcome, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page.of(write_report(outcome, tmp_path_factory.mktemp("page"), "20260101000000"))


def outcome_of(target: Dump, golden: Dump, **options: Any) -> Outcome:
    return Outcome("", target, golden, compare_dumps(target, golden, Options(**options)), [])


def page_of(outcome: Outcome, folder: Path, **options: Any) -> Page:
    write_report_to(folder / "page.html", outcome, **options)
    return Page.of(folder / "page.html")


def rows_of(comparison: Comparison) -> list[Row]:
    return [row for pair in comparison.pairs for row in pair.rows]


def test_every_call_has_its_names_what_paired_it_and_what_encloses_it(outcome: Outcome, page: Page) -> None:
    pairs = outcome.comparison.pairs
    names = page.column("call_names")
    assert names == [(pair.target or pair.golden).name for pair in pairs]
    goldens = [name if golden == 0 else golden for name, golden in zip(names, page.column("call_goldens"), strict=True)]
    assert goldens == [pair.golden.name if pair.golden else None for pair in pairs]
    assert page.column("call_how") == [str(pair.how) for pair in pairs]
    flags = page.column("call_flags")
    assert [bool(flag & 1) for flag in flags] == [pair.target is not None for pair in pairs]
    assert [bool(flag & 4) for flag in flags] == [(pair.target or pair.golden).parsed.is_module for pair in pairs]
    parents = [names[parent - 1] if parent else None for parent in page.column("call_parent")]
    for pair, parent in zip(pairs, parents, strict=True):
        if pair.target is not None and pair.target.parent in names:
            assert parent == pair.target.parent
    assert any(parents)


def test_every_value_has_its_name_and_what_was_judged_of_it(outcome: Outcome, page: Page) -> None:
    rows = rows_of(outcome.comparison)
    assert page.names() == [(row.target or row.golden).name for row in rows]
    flags, deviations = page.column("row_flags"), page.column("row_deviation")
    assert [bool(flag & 4) for flag in flags] == [row.differs for row in rows]
    assert [bool(flag & 3 == 3) for flag in flags] == [row.matched for row in rows]
    assert is_missing(deviations).tolist() == [row.deviation is None for row in rows]
    told = [row.deviation for row in rows if row.deviation is not None]
    assert deviations[~is_missing(deviations)].tolist() == pytest.approx(told, rel=1e-4)
    assert page.column("row_result") == [row.result for row in rows]
    assert page.column("row_reason") == [row.reason for row in rows]
    tolerances = [row.held_to for row in rows]
    assert page.column("row_tolerance") == pytest.approx(tolerances, rel=1e-3)


def test_every_figure_is_that_of_the_dumps(outcome: Outcome, page: Page) -> None:
    rows = rows_of(outcome.comparison)
    for side in ("target", "golden"):
        items = [getattr(row, side) for row in rows]
        for name, attribute in (("max", "maximum"), ("min", "minimum"), ("mean", "mean"), ("norm", "norm")):
            found = page.column(f"{side}_{name}")
            figures = [getattr(item, attribute) if item and item.kind == "tensor" else None for item in items]
            assert is_missing(found).tolist() == [figure is None for figure in figures]
            expected = np.array([figure for figure in figures if figure is not None], np.float32)
            assert found[~is_missing(found)].tobytes() == expected.tobytes()
        types = page.column(f"{side}_type")
        assert [bool(text) for text in types] == [item is not None for item in items]
    relative = page.column("metric_norm_relative")
    for row, found in zip(rows, relative, strict=True):
        expected = row.metrics.get(RELATIVES[3])
        if expected is not None and (row.target or row.golden).kind == "tensor":
            assert found == pytest.approx(expected, rel=1e-4)


def test_the_origin_stands_in_the_index_and_in_the_static_part(tmp_path: Path) -> None:
    target = dump([tensor("input.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.5])])
    golden = dump([tensor("input.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.0])])
    found = outcome_of(target, golden)
    page = page_of(found, tmp_path)
    (origin,) = page.index["origins"]
    assert page.names()[origin["row"]] == "Functional.op.0.forward.output.0"
    assert page.column("call_names")[origin["call"]] == "Functional.op.0.forward"
    assert origin["reason"] == found.comparison.origins[0].reason
    assert origin["command"] == "--node Functional.op.0.forward.output.0"
    assert "<strong>DIVERGENT</strong> The error begins" in page.static
    assert "<title>DIVERGENT at Functional.op.0.forward.output.0</title>" in page.static
    assert found.comparison.origins[0].reason[:40] in page.static
    (given,) = page.column("call_given")
    assert given == pytest.approx(error_ratio(found.comparison.pairs[0].rows[1]), rel=1e-2)


def test_where_nothing_differs_the_page_says_so(page: Page, outcome: Outcome) -> None:
    assert page.index["verdict"] == outcome.comparison.verdict
    assert f'class="{outcome.comparison.verdict}"' in page.static


def test_plain_values_and_whole_numbers_are_told_as_text(tmp_path: Path) -> None:
    large = 2**53 + 1
    items = [value("input.0", 3), value("input.1", "a"), null("input.2"), tensor("output.0", [large], dtype="Int64")]
    items[3] = items[3]._replace(maximum=large, minimum=large, mean=float(large), norm=float(large))
    page = page_of(outcome_of(dump(items), dump(items)), tmp_path)
    assert page.column("target_text")[:3] == ["3", "a", ""]
    assert page.column("target_type") == ["int", "str", "null", "Int64 [1]"]


@pytest.mark.parametrize("figure", [math.nan, math.inf, -math.inf, 1e300, 5e-324, -0.0])
def test_figures_of_every_kind_are_written(tmp_path: Path, figure: float) -> None:
    item = tensor("output.0", [1.0], maximum=figure)
    page = page_of(outcome_of(dump([item]), dump([tensor("output.0", [1.0])])), tmp_path)
    (found,) = page.column("target_max")
    with np.errstate(over="ignore"):
        assert np.array_equal([found], [np.float32(figure)], equal_nan=True)
    (flags,) = page.column("row_flags")
    assert bool(flags & 32) == (not math.isfinite(figure))


def test_names_of_a_dump_are_text_wherever_they_stand(tmp_path: Path) -> None:
    entry = f"Functional.{HOSTILE}.0.forward"
    target = dump([tensor("output.0", [2.0], entry), tensor("output.0", [2.0])])
    golden = dump([tensor("output.0", [1.0], entry), tensor("output.0", [1.0])])
    page = page_of(outcome_of(target, golden), tmp_path)
    assert page.text.count("<script") == page.text.count("</script>")
    assert "<img" not in page.text and "\x1b" not in page.text and "\u202e" not in page.text
    assert page.column("call_names")[0] == entry
    assert page.index["origins"][0]["command"] == ""


def test_the_same_comparison_writes_the_same_page(outcome: Outcome, page: Page, tmp_path: Path) -> None:
    assert Page.of(write_report(outcome, tmp_path, "20260101000000")).text == page.text


def test_without_stacks_no_source_is_named(tmp_path: Path) -> None:
    found = outcome_of(dump([tensor("output.0", [2.0])]), dump([tensor("output.0", [1.0])]))
    for pair in found.comparison.pairs:
        assert pair.target is not None
        pair.target.stack = ("File /secret/net.py, line 1, in f, \n f(x)",)
    assert page_of(found, tmp_path).column("frames") == ["File /secret/net.py, line 1, in f, f(x)"]
    assert page_of(found, tmp_path, stacks=False).column("frames") == []


def test_a_backward_call_has_the_stack_of_its_forward_call(tmp_path: Path) -> None:
    names = ("Cell.a.Dense.forward.0", "Cell.a.Dense.backward.0", "Cell.b.Dense.backward.0")
    target, golden = (dump([tensor("output.0", [1.0], name) for name in names]) for _ in range(2))
    target.entries[names[0]].stack = ("File net.py, line 3, in construct, x = self.a(x)",)
    page = page_of(outcome_of(target, golden), tmp_path)
    assert page.column("call_names") == list(names)
    assert page.column("call_stack") == [[0], [0], []] and page.column("call_golden_stack") == [[], [], []]


def test_of_very_many_values_the_figures_that_matter_are_kept(
    outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "_MOST_ROWS", 50)
    monkeypatch.setattr(choice, "_CHOSEN", 40)
    rows, deviations = rows_of(outcome.comparison), outcome.comparison.deviations
    worst = next(place for place, row in enumerate(rows) if row.state == "input" and row.deviation is not None)
    values = deviations.values.copy()
    values[worst] = 1e3
    monkeypatch.setitem(vars(outcome.comparison), "deviations", deviations._replace(values=values))
    page = page_of(outcome, tmp_path)
    assert page.index["truncated"] == {"rows": 40, "command": "--html-rows all"}
    assert len(page.column("figure_rows")) == len(page.column("target_max")) == 40
    assert len(page.column("row_deviation")) == len(rows)
    assert worst in page.column("figure_rows")
    assert page_of(outcome, tmp_path, all_rows=True).index["truncated"] is None


def test_compare_writes_it_first_of_its_files(tmp_path: Path) -> None:
    found = compared(MAPPING / "encoder_mindspore_L0", MAPPING / "encoder_pytorch_L0", tmp_path, Options(html=True))
    assert found.files[0] == tmp_path / "compare_report_now.html"
    (told,) = re.findall(r"files beside this one</dt><dd><bdi>(.*?)</bdi>", Page.of(found.files[0]).static)
    assert "compare_result_now.xlsx" in told
    assert all((tmp_path / name).exists() for name in told.split(", "))


def test_a_folder_that_cannot_be_written_is_said(outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="the report cannot be written"):
        write_report(outcome, tmp_path / "file", "1")


def test_a_page_of_some_pairs_keeps_the_verdict_of_all(outcome: Outcome, page: Page) -> None:
    file = io.BytesIO()
    write_content(file, outcome, outcome.comparison.pairs[:9])
    few = Page(file.getvalue().decode())
    assert few.static.partition("<style>")[0] == page.static.partition("<style>")[0]
    assert few.index["calls"] == 9
    assert few.names() == page.names()[: few.index["rows"]]


def test_what_a_notebook_shows_is_bounded(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_FINDINGS", 60)
    shown = findings(outcome.comparison)
    assert 0 < sum(len(pair.rows) for pair in shown) <= 60
    places = [outcome.comparison.pairs.index(pair) for pair in shown]
    assert places == sorted(places)


def test_what_explanations_allowed_is_told_of_what_is_beyond_its_tolerance(tmp_path: Path) -> None:
    target = dump([tensor("input.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.5])])
    golden = dump([tensor("input.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.0])])
    found = outcome_of(target, golden)
    page = page_of(found, tmp_path)
    (told,) = page.column("asked")
    assert page.names()[told["row"]] == "Functional.op.0.forward.output.0"
    assert told["text"].startswith("its deviation is an error; too small to explain it: rounding (up to ")
    assert "explanations that do not apply: result of a call inside, ReLU switching" in told["text"]


def test_where_nothing_differs_no_explanation_is_told(tmp_path: Path) -> None:
    same = dump([tensor("input.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.0])])
    assert "asked" not in page_of(outcome_of(same, same), tmp_path).index["columns"]


@pytest.mark.parametrize("command", ["compare", "view"])
def test_a_page_to_hand_on_names_no_file_and_no_line(tmp_path: Path, command: str) -> None:
    target, golden = (DATA / "golden" / name for name in ("mindspore_lenet_L1_tensor", "pytorch_lenet_L0_tensor"))
    sides = {"compare": ["-tp", f"{target}/proc16362", "-gp", f"{golden}/proc16325"], "view": [f"{target}/proc16362"]}
    told = {}
    for option in ([], ["--html-no-stacks"]):
        out = tmp_path / f"out{len(option)}"
        assert main([command, *sides[command], "-o", str(out), *option]) == 0
        (page,) = (Page.of(path) for path in out.glob("*.html"))
        columns = [page.column(name) for name, each in page.index["columns"].items() if each["type"] == "json"]
        told[bool(option)] = (
            page.static.partition("<style>")[0]
            + page.static.partition("</style>")[2]
            + str([{**page.index, "columns": 0}, *columns])
        )
    for word in (str(DATA), "line ", ".py"):
        assert word in told[False] and word not in told[True].replace("numpy", ""), word
