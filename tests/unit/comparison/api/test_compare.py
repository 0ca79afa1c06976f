"""Comparing from Python: the object, the table, the notebook, the assertion."""

from __future__ import annotations

import html
import inspect
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openpyxl
import pandas
import pytest
import yaml
from compare_parts import scale_against_good
from rank_dumps import call, write_dump, write_run, write_step
from report_page import Page
from repository import DATA, ROOT

import msprobe_ms
from msprobe_ms.comparison.api.result import ComparisonResult
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import CompareError, DumpFormatError, MappingError, UsageError

MAPPING = DATA / "mapping"


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    scale_against_good(tmp_path / "dumps")
    return tmp_path / "dumps" / "scale", tmp_path / "dumps" / "good"


def test_two_dumps(both: tuple[Path, Path]) -> None:
    comparison = msprobe_ms.compare(both[0], str(both[1] / "dump.json"))
    assert comparison.verdict == "divergent"
    assert comparison.origins[0].target == "Functional.layer_norm.2.forward.input.2"
    assert comparison.summary["matched"] == 710
    assert repr(comparison) == f"<divergent: 710 values compared, {len(comparison.origins)} origin>"
    assert str(comparison).splitlines()[0] == "DIVERGENT: the error begins in forward, at"
    # Dumps already read, and what has a path, are as good.
    again = msprobe_ms.compare(read_dump(both[0]), both[1])
    assert [origin.reason for origin in again.origins] == [origin.reason for origin in comparison.origins]
    assert msprobe_ms.compare(both[1], both[1]).verdict == "consistent"


def test_the_frame_is_the_report(both: tuple[Path, Path], tmp_path: Path) -> None:
    comparison = msprobe_ms.compare(*both, profile="v110")
    frame = comparison.frame
    assert comparison.to_csv(tmp_path / "out" / "a.csv") == tmp_path / "out" / "a.csv"
    written = pandas.read_csv(tmp_path / "out" / "a.csv", keep_default_na=False)
    assert list(frame.columns) == list(written.columns) and frame["NPU Name"].tolist() == written["NPU Name"].tolist()
    assert frame.set_index("NPU Name").loc["Functional.layer_norm.2.forward.input.2", "Max diff"] == pytest.approx(
        float(written.set_index("NPU Name").loc["Functional.layer_norm.2.forward.input.2", "Max diff"])
    )
    comparison.to_xlsx(tmp_path / "a.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").active
    assert [cell.value for cell in next(sheet.iter_rows(max_row=1))] == list(frame.columns)
    assert json.loads(comparison.to_json(tmp_path / "a.json").read_text()) == comparison.summary
    with pytest.raises(UsageError, match=r"a\.txt: accepted is a file name that ends with \.csv"):
        comparison.to_csv(tmp_path / "a.txt")


def test_infinities_are_numbers_in_the_frame(tmp_path: Path) -> None:
    ones = np.ones(4, np.float32)
    for side, elements in (("good", 4), ("bad", 2)):
        calls = {"Cell.a.A.forward.0": call(ones, ones), "Cell.b.B.forward.0": call(ones, ones[:elements])}
        write_dump(tmp_path / side, calls)
    frame = msprobe_ms.compare(tmp_path / "bad", tmp_path / "good").frame
    assert frame["Deviation"].dtype == float
    assert frame["Deviation"].tolist() == [0.0, 0.0, 0.0, np.inf]
    write_dump(tmp_path / "empty", {})
    with pytest.raises(CompareError, match="both dumps are empty"):
        msprobe_ms.compare(tmp_path / "empty", tmp_path / "empty")


def test_a_wrong_setting_is_named_and_help_tells_the_right_ones() -> None:
    with pytest.raises(TypeError, match=r"^compare\(\) got an unexpected keyword argument 'layer_maping'"):
        msprobe_ms.compare("a", "b", layer_maping=True)  # type: ignore[call-arg]
    text = pydoc.plain(pydoc.render_doc(msprobe_ms.compare))
    settings = [name for name in inspect.signature(msprobe_ms.compare).parameters if name not in ("target", "golden")]
    assert len(settings) == 11
    assert all(f"{name}: " in text for name in settings)
    assert "``thresholds``" in text and "``ranks``, ``steps``" in text


def test_mappings_are_files_or_dicts() -> None:
    sides = MAPPING / "encoder_mindspore_L0", MAPPING / "encoder_pytorch_L0"
    file = MAPPING / "encoder_layer_mapping.yaml"
    as_file = msprobe_ms.compare(*sides, layer_mapping=file)
    as_dict = msprobe_ms.compare(
        *sides,
        layer_mapping=yaml.safe_load(file.read_text()),
        data_mapping={"Cell.nowhere.forward.0.input.0": "Module.nowhere.forward.0.input.0"},
        cell_mapping=True,
    )
    assert as_file.verdict == as_dict.verdict == "consistent"
    assert msprobe_ms.compare(*sides).verdict == "incomplete"
    with pytest.raises(MappingError, match=r"layer mapping given as a value: EncoderLayer \(line 2\): a list"):
        msprobe_ms.compare(*sides, layer_mapping={"EncoderLayer": ["a"]})


def test_bare_flags_and_thresholds(tmp_path: Path) -> None:
    sides = MAPPING / "encoder_mindspore_L0", MAPPING / "encoder_pytorch_L0"
    found = msprobe_ms.compare(*sides, layer_mapping=True, api_mapping=True)
    assert found.verdict == "consistent" and found.summary["matched"] > 100
    write_step(tmp_path / "good", 1, {})
    write_step(tmp_path / "bad", 1, {0: 0.001})
    assert msprobe_ms.compare(tmp_path / "bad", tmp_path / "good").verdict == "divergent"
    wide = {"tolerances": {"statistics": 0.1}}
    assert msprobe_ms.compare(tmp_path / "bad", tmp_path / "good", thresholds=wide).verdict == "consistent"
    with pytest.raises(UsageError, match=r"given as a value.*nonsense"):
        msprobe_ms.compare(*sides, thresholds={"tolerances": {"nonsense": 1}})


def test_what_cannot_be_compared_is_named(both: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(DumpFormatError, match="nowhere: no such file or folder; accepted are a dump"):
        msprobe_ms.compare("nowhere", both[1])
    with pytest.raises(UsageError, match="compare: int is not accepted; accepted are a path, or what record or load"):
        msprobe_ms.compare(3, both[1])
    with pytest.raises(UsageError, match=r"profile 'latst' \(did you mean .latest.\?\); accepted are "):
        msprobe_ms.compare(*both, profile="latst")
    with pytest.raises(CompareError, match="run: 2 dumps, to compare with one: name one of its folders"):
        msprobe_ms.compare(read_dump(both[0]), write_run(tmp_path / "run", ranks=2))


@pytest.mark.processes
def test_many_ranks_and_steps(tmp_path: Path) -> None:
    good = write_run(tmp_path / "good", steps=2, ranks=3)
    bad = write_run(tmp_path / "bad", steps=2, ranks=3, faulty=1, from_step=1)
    (bad / "step0" / "rank2" / "dump.json").write_text("{")
    with ThreadPoolExecutor(2) as threads:
        found = msprobe_ms.compare(bad, good, executor=threads)
    assert (found.verdict, len(found)) == ("divergent", 5)
    assert list(found) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)] and list(found.failed) == [(0, 2)]
    assert found.first == (1, 1) and found.first_rank.ranks == ["rank1"]
    assert {key: pair.verdict for key, pair in found.items()} == {
        (0, 0): "consistent", (0, 1): "consistent", (1, 0): "divergent", (1, 1): "divergent", (1, 2): "divergent",
    }  # fmt: skip
    assert [origin.target for origin in found.origins] == [
        origin.target for key in found for origin in found[key].origins
    ]
    with pytest.raises(KeyError):
        found[7, 7]
    frame = found.frame
    assert frame.groupby(["Step", "Rank"]).size().tolist() == [10] * 5
    out = tmp_path / "out"
    written = found.to_csv(out)
    assert sorted(written) == sorted(out.iterdir()) and len(list(out.glob("compare_result_*.csv"))) == 5
    (summary,) = (path for path in written if path.stem.count("_") == 2 and path.suffix == ".json")
    assert (
        json.loads(found.to_json(tmp_path / "a.json").read_text())["ranks"] == json.loads(summary.read_text())["ranks"]
    )
    assert "\nrank1 differs first, by its own computation, at Cell.fc.Dense" in str(found)
    assert "\nthe error ratio (deviation / tolerance) grows over the steps" in str(found)


@pytest.mark.parametrize(
    ("folders", "keys"),
    [
        (("step0/nodeA", "step0/nodeB", "step0/rank0"), [(0, "nodeA"), (0, "nodeB"), (0, 0)]),
        (("rank0", "step0/rank0", "step1/rank0"), [(None, "rank0"), (0, "rank0"), (1, 0)]),
    ],
)
def test_every_pair_has_a_key_of_its_own(folders: tuple[str, ...], keys: list[object], tmp_path: Path) -> None:
    (good,) = (write_run(tmp_path / "run", ranks=1) / "step0").iterdir()
    for folder in folders:
        shutil.copytree(good, tmp_path / "all" / folder)
    with ThreadPoolExecutor(2) as threads:
        result = msprobe_ms.compare(tmp_path / "all", tmp_path / "all", executor=threads)
    assert sorted(result, key=str) == sorted(keys, key=str)
    assert all(result[key].verdict == "consistent" for key in keys)
    assert (len(result.found), result.failed, result.first) == (3, {}, None)


def test_halves_of_a_step_are_one_pair_a_rank(tmp_path: Path) -> None:
    write_run(tmp_path / "good", ranks=3)
    write_run(tmp_path / "bad/graph", ranks=3, faulty=2)
    values = np.arange(4, dtype=np.float32)
    for rank in range(3):
        write_dump(tmp_path / f"bad/pynative/step0/rank{rank}", {"Jit.Net.0.forward": call(values, -values)})
    with ThreadPoolExecutor(2) as threads:
        result = msprobe_ms.compare(tmp_path / "bad", tmp_path / "good", executor=threads)
    assert result.first_rank is not None
    assert result.first_rank.ranks[0] == "rank2"
    assert result.first == (0, 2) and sorted(result) == [(0, 0), (0, 1), (0, 2)]


def test_what_failed_is_not_in_it(tmp_path: Path) -> None:
    good, bad = write_run(tmp_path / "good", ranks=2), write_run(tmp_path / "bad", ranks=2)
    (bad / "step0/rank1/dump.json").write_text("{")
    with ThreadPoolExecutor(2) as threads:
        result = msprobe_ms.compare(bad, good, executor=threads)
    assert ((0, 0) in result, (0, 1) in result, (9, 9) in result, "x" in result) == (True, False, False, False)


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_of_whole_roots_the_place_in_the_step_is_told(tmp_path: Path) -> None:
    good = write_run(tmp_path / "good", steps=2, ranks=1)
    bad = write_run(tmp_path / "bad", steps=2, ranks=1, faulty=0, from_step=1)
    result, origin = msprobe_ms.compare(bad, good), "Cell.fc.Dense.forward.0.output.0"
    assert f"look at step 1, the first that diverges; its error begins at {origin}" in str(result)
    with pytest.raises(AssertionError, match=rf"The error begins at {origin} \(golden: {origin}\):\n.*deviates by"):
        msprobe_ms.assert_consistent(bad, good)


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_a_process_without_a_rank_is_rank_minus_one(tmp_path: Path) -> None:
    good = write_run(tmp_path / "good", steps=2, ranks=1)
    for step in range(2):
        (good / f"step{step}/rank0").rename(good / f"step{step}/proc7")
    assert list(msprobe_ms.compare(good, good)) == [(0, -1), (1, -1)]


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_notebooks_show_a_table_that_nothing_from_a_dump_can_break_out_of(tmp_path: Path) -> None:
    ones = np.ones(4, np.float32)
    for side, factor in (("good", 1), ("bad", 2)):
        for rank in range(2):
            write_dump(tmp_path / side / f"rank{rank}", {"Cell.<script>.A&B.forward.0": call(ones, ones * factor)})
    one = msprobe_ms.compare(tmp_path / "bad" / "rank0", tmp_path / "good" / "rank0")
    many = msprobe_ms.compare(tmp_path / "bad", tmp_path / "good")
    for shown in (one._repr_html_(), many._repr_html_()):
        assert "<b>DIVERGENT</b>" in shown and "<table>" in shown
        assert "Cell.&lt;script&gt;.A&amp;B.forward.0.output.0" in shown and "<script>" not in shown
    assert "deviates by 1" in one._repr_html_() and "both ranks differ by their own computation" in many._repr_html_()
    same = msprobe_ms.compare(tmp_path / "good", tmp_path / "good")._repr_html_()
    assert "<b>CONSISTENT</b>" in same and "<table>" not in same


def test_a_notebook_holds_the_page_in_a_frame_of_its_own(tmp_path: Path) -> None:
    write_step(tmp_path / "good", 1, {})
    write_step(tmp_path / "bad", 1, {0: 0.5})
    shown = msprobe_ms.compare(tmp_path / "bad", tmp_path / "good")._repr_html_()
    (source,) = re.findall(r'<iframe sandbox="allow-scripts" [^>]*srcdoc="([^"]*)"></iframe>', shown)
    assert Page(html.unescape(source)).index["verdict"] == "divergent"
    assert len(shown) < 300_000


def test_the_page_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    write_step(tmp_path / "good", 1, {})
    write_step(tmp_path / "bad", 1, {0: 0.5})
    comparison = msprobe_ms.compare(tmp_path / "bad", tmp_path / "good")
    page = Page.of(comparison.to_html(tmp_path / "report.html"))
    assert page.index["origins"][0]["reason"] == comparison.origins[0].reason
    with pytest.raises(UsageError, match=r"a file name that ends with \.html"):
        comparison.to_html(tmp_path / "report.htm")


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_every_pair_has_a_page_of_its_own(tmp_path: Path) -> None:
    good = write_run(tmp_path / "good", steps=2, ranks=1)
    files = msprobe_ms.compare(good, good).to_html(tmp_path / "pages")
    assert [file.name for file in files] == ["compare_report_step0_rank0.html", "compare_report_step1_rank0.html"]
    assert {Page.of(file).index["verdict"] for file in files} == {"consistent"}


@pytest.mark.processes
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    write_step(tmp_path / "good", 1, {})
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/shown\n')
    browser.chmod(0o755)
    code = (
        f"import msprobe_ms; print(msprobe_ms.compare({str(tmp_path / 'good')!r}, {str(tmp_path / 'good')!r}).view())"
    )
    environment = {**os.environ, "BROWSER": str(browser), "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    path = Path(ended.stdout.strip())
    assert (tmp_path / "shown").read_text().strip() == path.as_uri()
    assert Page.of(path).index["verdict"] == "consistent"


def test_the_assertion_reads_like_assert_close(tmp_path: Path) -> None:
    write_step(tmp_path / "good", 1, {})
    write_step(tmp_path / "bad", 1, {0: 0.5})
    msprobe_ms.assert_consistent(tmp_path / "good", tmp_path / "good")
    with pytest.raises(AssertionError) as caught:
        msprobe_ms.assert_consistent(tmp_path / "bad", tmp_path / "good")
    lines = str(caught.value).splitlines()
    deviation = msprobe_ms.compare(tmp_path / "bad", tmp_path / "good").frame  # the figures are those of the report
    assert lines[0] == "Dumps are not consistent!" and lines[1] == lines[4] == ""
    assert lines[2] == "Mismatched rows: 5 / 10 (50.0%)"
    assert lines[3].startswith("Greatest relative deviation: 0.4") and lines[3].endswith(" (up to 5.72e-06 allowed)")
    assert lines[5].startswith("The error begins at Cell.fc.Dense.forward.0.output.0 (golden: ")
    assert lines[6].startswith("output.0 deviates by 0.4") and lines[6].endswith(
        "though its inputs agree exactly: look at its settings and its code"
    )
    assert len(deviation) == 10


def test_one_pair_and_many_are_asked_alike(both: tuple[Path, Path], tmp_path: Path) -> None:
    good, bad = write_run(tmp_path / "good", ranks=2), write_run(tmp_path / "bad", ranks=2, faulty=1)
    with ThreadPoolExecutor(2) as threads:
        one, many = msprobe_ms.compare(*both), msprobe_ms.compare(bad, good, executor=threads)
    for result in (one, many):
        assert isinstance(result, ComparisonResult)
        assert result.verdict == "divergent" and result.origins
        assert {each.verdict for each in result.pairs.values()} == {"divergent"}
    assert list(one.pairs.values()) == [one]
    assert dict(many.pairs) == dict(many.items()) and len(many.pairs) == len(many.found)


def test_the_assertion_over_many_ranks(tmp_path: Path) -> None:
    good, bad = write_run(tmp_path / "good", ranks=3), write_run(tmp_path / "bad", ranks=3, faulty=2)
    with ThreadPoolExecutor(2) as threads, pytest.raises(AssertionError) as caught:
        msprobe_ms.assert_consistent(bad, good, executor=threads)
    text = str(caught.value)
    assert text.startswith("Dumps are not consistent, in 3 of 3 pairs!\n\nMismatched rows: 5 / 10 (50.0%)\n")
    assert "rank2 differs first, by its own computation, at Cell.fc.Dense.forward.0.output.0; rank0 and rank1" in text


def test_too_little_in_common_is_not_consistent() -> None:
    sides = MAPPING / "encoder_mindspore_L0", MAPPING / "encoder_pytorch_L0"
    with pytest.raises(AssertionError, match=r"too little of them could be compared!(.|\n)*pair them first") as caught:
        msprobe_ms.assert_consistent(*sides)
    assert "\\n" not in str(caught.value) and len(str(caught.value).splitlines()) > 4
    msprobe_ms.assert_consistent(*sides, allow_incomplete=True)


def test_compare_is_a_plain_function() -> None:
    assert inspect.isfunction(msprobe_ms.compare)
    assert msprobe_ms.compare.__name__ == "compare"
    assert list(inspect.signature(msprobe_ms.compare).parameters)[:3] == ["target", "golden", "layer_mapping"]


@pytest.mark.processes
def test_importing_costs_nothing() -> None:
    """No framework, no pandas, no cluster: neither by the import nor by a comparison."""
    code = (
        "import sys, time\nbegun = time.process_time()\nimport msprobe_ms\nspent = time.process_time() - begun\n"
        "light = {'numpy', 'yaml', 'pydantic', 'xlsxwriter'} & set(sys.modules)\n"
        "msprobe_ms.compare; msprobe_ms.assert_consistent\n"
        "heavy = {'mindspore', 'torch', 'pandas', 'distributed', 'dask', 'openpyxl'} & set(sys.modules)\n"
        "print(spent < 0.15, sorted(light), sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "True [] []\n"


def test_without_pandas_the_frame_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for side in ("a", "b"):
        write_dump(tmp_path / side, {"Cell.a.A.forward.0": call(np.ones(4, np.float32), np.ones(4, np.float32))})
    comparison = msprobe_ms.compare(tmp_path / "a", tmp_path / "b")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r'and \.frame needs it: pip install "msprobe-ms\[dataframe\]'):
        _ = comparison.frame
