"""Two devices set against each other: every output of either table has one row, whatever the tables look like."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from precheck_tables import APIS, details

from msprobe_ms.accuracy.judging.model import PROFILES, Profile, Status
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.accuracy.precision_compare import (
    PrecisionComparison,
    compare_precision,
    detail_titles,
    write_comparison,
)
from msprobe_ms.support.errors import DumpFormatError

TITLES = [
    "API Name", "小值域错误比值", "小值域判定结果", "均方根误差比值", "均方根误差判定结果", "相对误差最大值比值",
    "相对误差最大值判定结果", "相对误差平均值比值", "相对误差平均值判定结果", "误差均衡性比值", "误差均衡性判定结果",
    "inf/nan错误率", "inf/nan判定结果", "相对误差错误率", "相对误差判定结果", "绝对误差错误率", "绝对误差判定结果",
    "二进制一致错误率", "二进制一致错误率判定结果", "ULP误差平均值", "ULP误差大于阈值占比", "ULP误差大于阈值占比比值",
    "ULP误差判定结果", "双千指标", "双千指标判定结果", "比对结果", "比对算法", "Message",
]  # fmt: skip


def compared(target: Path, golden: Path, profile: Profile = "own") -> PrecisionComparison:
    return compare_precision(target, golden, load_thresholds(), profile)


def statuses(comparison: PrecisionComparison) -> dict[str, str]:
    return {row.name: str(row.status) for row in comparison.rows}


def rewritten(path: Path, change: Callable[[list[list[str]]], Sequence[Sequence[str]]]) -> Path:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(change(rows))
    return path


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("framework", ["pytorch", "mindspore"])
def test_equal_devices_pass_and_a_worse_one_does_not(framework: str, profile: Profile, tmp_path: Path) -> None:
    noise = dict.fromkeys(APIS, 1e-7)
    good = details(tmp_path / "good", noise, profile, framework)
    bad = details(tmp_path / "bad", {**noise, "softmax": 1e-2}, profile, framework, seed=1)
    comparison = compared(good, good, profile)
    failed = {row.name for row in comparison.rows if row.status is Status.ERROR}
    assert len(comparison.rows) == 2 * len(APIS)
    assert not failed - {f"Torch.relu.0.{direction}.output.0" for direction in ("forward", "backward")}
    found = statuses(compared(bad, good, profile))
    assert found["Torch.softmax.0.forward.output.0"] == found["Torch.softmax.0.backward.output.0"] == "error"
    assert found["Torch.exp.0.forward.output.0"] != "error"


def test_verdicts_do_not_depend_on_order(tmp_path: Path) -> None:
    noise = dict.fromkeys(APIS, 1e-5)
    target = details(tmp_path / "a", {**noise, "exp": 1e-2}, "v110")
    golden = details(tmp_path / "b", noise, "v110", seed=2)
    plain = statuses(compared(target, golden, "v110"))

    def shuffled(rows: list[list[str]]) -> list[list[str]]:
        order = random.Random(5).sample(range(len(rows[0])), len(rows[0]))
        body = random.Random(6).sample(rows[1:], len(rows) - 1)
        return [[row[place] for place in order] for row in [rows[0], *body, *body[:3]]]  # some rows twice

    rewritten(target, shuffled)
    rewritten(golden, shuffled)
    assert statuses(compared(target, golden, "v110")) == plain
    assert plain["Torch.exp.0.forward.output.0"] == "error"


@pytest.mark.parametrize("side", [0, 1])
def test_a_row_that_one_side_lacks_is_skipped_with_the_reason(side: int, tmp_path: Path) -> None:
    tables = [details(tmp_path / name, {}) for name in ("a", "b")]
    rewritten(tables[side], lambda rows: [row for row in rows if row[0] != "Torch.exp.0.forward.output.0"])
    comparison = compared(*tables)
    row = next(row for row in comparison.rows if row.name == "Torch.exp.0.forward.output.0")
    assert (row.status, row.message) == (Status.SKIP, f"{tables[side].name}: has no such output")
    assert len(comparison.rows) == 2 * len(APIS)
    api = next(api for api in comparison.apis if api.name == "Torch.exp.0")
    assert (api.status(backward=False), api.status(backward=True)) == (Status.SKIP, Status.PASS)


def test_rows_that_contradict_each_other_are_skipped(tmp_path: Path) -> None:
    target, golden = (details(tmp_path / name, dict.fromkeys(APIS, 1e-6)) for name in ("a", "b"))
    rewritten(golden, lambda rows: [*rows, [*rows[1][:-1], "another"]])
    row = compared(target, golden).rows[0]
    assert (row.status, row.message) == (Status.SKIP, f"{golden.name}: has 2 rows of it that differ")


def test_missing_columns_are_named(tmp_path: Path) -> None:
    target, golden = (details(tmp_path / name, {}, "v110") for name in ("a", "b"))
    rewritten(golden, lambda rows: [row[:10] + row[12:] for row in rows])
    with pytest.raises(DumpFormatError, match="has no column 均方根误差, 误差均衡性; accepted is accuracy_checking"):
        compared(target, golden)
    rewritten(target, lambda rows: [row[1:] for row in rows])
    with pytest.raises(DumpFormatError, match="has no column API Name; "):
        compared(target, golden)
    golden.write_text("", encoding="utf-8")
    with pytest.raises(DumpFormatError, match="has no column API Name, DEVICE Dtype, 小值域错误占比"):
        compared(golden, target)


def test_cells_that_are_no_numbers_cost_their_row_alone(tmp_path: Path) -> None:
    target, golden = (details(tmp_path / name, {}) for name in ("a", "b"))
    rewritten(target, lambda rows: [rows[0], [*rows[1][:4], "=1+1", *rows[1][5:]], *rows[2:]])
    first, *others = compared(target, golden).rows
    assert first.status is Status.SKIP and "'=1+1' is no number" in first.message
    assert {row.status for row in others} == {Status.PASS}


def test_names_of_no_output_are_rows_too(tmp_path: Path) -> None:
    target, golden = (details(tmp_path / name, {}) for name in ("a", "b"))
    rewritten(target, lambda rows: [rows[0], ["=cmd()", *rows[1][1:]], *rows[2:]])
    comparison = compared(target, golden)
    assert statuses(comparison)["=cmd()"] == "SKIP"
    paths = write_comparison(comparison, tmp_path, "20260101000000")
    assert all("'=cmd()" in path.read_text(encoding="utf-8-sig") for path in paths)


def test_the_tables_of_the_mindspore_checker_alone_are_enough(tmp_path: Path) -> None:
    noise = dict.fromkeys(APIS, 1e-6)
    target = details(tmp_path / "a", {**noise, "softmax": 1e-3}, "v110", "mindspore")
    golden = details(tmp_path / "b", noise, "v110", "mindspore")
    comparison = compared(target, golden)
    found = statuses(comparison)
    assert found["Torch.softmax.0.forward.output.0"] == "error" and found["Torch.exp.0.forward.output.0"] == "pass"
    row = next(row for row in comparison.rows if ".softmax." in row.name)
    assert row.cells["相对误差最大值比值"] == pytest.approx(1000, rel=0.9)
    mixed = details(tmp_path / "c", noise, "v110", "pytorch")
    assert statuses(compared(target, mixed))["Torch.softmax.0.forward.output.0"] in ("error", "SKIP")


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_written(profile: Profile, tmp_path: Path) -> None:
    target = details(tmp_path / "a", dict.fromkeys(APIS, 1e-3), profile)
    golden = details(tmp_path / "b", dict.fromkeys(APIS, 1e-7), profile)
    paths = write_comparison(compared(target, golden, profile), tmp_path, "20260102030405", profile)
    assert [path.name for path in paths] == [
        "api_precision_compare_result_20260102030405.csv",
        "api_precision_compare_details_20260102030405.csv",
    ]
    assert detail_titles(profile)[: len(TITLES)] == TITLES and (len(TITLES) < len(detail_titles(profile))) == (
        profile == "own"
    )
    tables = []
    for path in paths:
        assert path.read_bytes().startswith(b"\xef\xbb\xbf")
        with path.open(encoding="utf-8-sig", newline="") as file:
            tables.append(list(csv.DictReader(file)))
    results, rows = tables
    assert list(results[0]) == ["API Name", "Forward Test Success", "Backward Test Success", "Message"]
    assert [row["API Name"] for row in results] == [f"Torch.{api}.0" for api in APIS]
    by_name = {row["API Name"]: row for row in rows}
    exp = by_name["Torch.exp.0.forward.output.0"]
    assert (exp["均方根误差判定结果"], exp["比对算法"], exp["二进制一致错误率"]) == ("error", "标杆比对法", " ")
    assert exp["Message"].startswith("ERROR: ") and results[0]["Forward Test Success"] == exp["比对结果"] == "error"


def test_thresholds_of_the_user_count(tmp_path: Path) -> None:
    target = details(tmp_path / "a", dict.fromkeys(APIS, 1e-5))
    golden = details(tmp_path / "b", dict.fromkeys(APIS, 1e-7))
    (tmp_path / "t.yaml").write_text(
        "compare_v110:\n"
        + "".join(
            f"  {key}: {{warning: 1e9, error: 1e9}}\n"
            for key in (
                "small_value_error_ratio",
                "root_mean_square_error",
                "max_relative_error",
                "mean_relative_error",
            )
        )
    )
    found = statuses(compare_precision(target, golden, load_thresholds(tmp_path / "t.yaml")))
    assert found["Torch.exp.0.forward.output.0"] == "pass"
    assert statuses(compared(target, golden))["Torch.exp.0.forward.output.0"] == "error"
