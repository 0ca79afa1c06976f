"""The two reports' columns, tokens, verdicts and colours; 1.1.0's against a report that 1.1.0 itself wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from compare_parts import DATA, dump, null, scale_against_good, side_by_side, tensor, value

from msprobe_ms.arrays.metrics import (
    COSINE,
    EUCLIDEAN,
    FIVE_THOUSANDTHS,
    MAX_ABSOLUTE,
    MAX_RELATIVE,
    ONE_THOUSANDTH,
    TENSOR_METRICS,
    Missing,
)
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Comparison, Origin, Pair, Row
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import load_mappings
from msprobe_ms.comparison.reporting.advisor import advice
from msprobe_ms.comparison.reporting.files import write_tables
from msprobe_ms.comparison.reporting.profiles import PROFILES, judge
from msprobe_ms.comparison.reporting.profiles.base import Cell, Profile, blocks
from msprobe_ms.comparison.reporting.profiles.latest import Latest, LatestThresholds
from msprobe_ms.comparison.reporting.profiles.v110 import V110, V110Thresholds
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.reading.reader import read_dump

OLD, NEW = PROFILES["v110"], PROFILES["latest"]

SIX = ["NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"]
FIGURES = [f"{side} {name}" for side in ("NPU", "Bench") for name in ("max", "min", "mean", "l2norm")]
RATIOS = ["One Thousandth Err Ratio", "Five Thousandths Err Ratio"]
DIFFERENCES = ["Max diff", "Min diff", "Mean diff", "L2norm diff"]
RELATIVES = ["MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"]


def judged(
    profile: Profile, *pairs: Pair, mode: str = "statistics", frameworks: str = "mindspore mindspore"
) -> Comparison:
    target, golden = frameworks.split()
    measure(list(pairs), dump([], target), dump([], golden), mode)
    comparison = Comparison(mode, list(pairs))
    judge(comparison, profile)
    return comparison


def cells(profile: Profile, comparison: Comparison, stack: bool = False) -> list[dict[str, Cell]]:
    columns = profile.columns(comparison.mode, stack=stack)
    return [{column.title: column.cells(block)[0] for column in columns} for block in blocks(comparison, 1)]


def real(metrics: dict[str, Any], state: str = "output.0", **changed: Any) -> Row:
    """A row of real data with these metrics, as if measured."""
    item = tensor(state, np.ones(4, np.float32), **changed)
    return Row(item, item, {**dict.fromkeys(TENSOR_METRICS, Missing.NO_DATA), **metrics}, 1.0, 1e-5)


def titles(profile: Profile, mode: str, stack: bool = False) -> list[str]:
    return [column.title for column in profile.columns(mode, stack=stack)]


# 1.1.0 ---------------------------------------------------------------------------------------------------------------


def test_v110_report_equals_the_one_1_1_0_wrote(tmp_path: Path) -> None:
    """710 rows of 25 columns: every value, its type, and every row's colour; and the advice, byte for byte."""
    comparison, target, golden = scale_against_good(tmp_path)
    measure(comparison.pairs, target, golden, "statistics")
    judge(comparison, OLD)
    (path,) = write_tables(comparison, OLD, tmp_path, "20260101000000", stack=True)
    ours, theirs = _sheet(path), _sheet(tmp_path / "report.xlsx")
    assert len(ours) == 711
    assert len(ours[0]) == 25
    for mine, expected in zip(ours, theirs, strict=True):
        assert mine == expected
    assert sum(row[0][1] == "FF0000" for row in ours) == 79
    assert sum(row[0][1] == "FFFF00" for row in ours) == 24
    assert advice(comparison) == (tmp_path / "advisor.txt").read_text()


def _sheet(path: Path) -> list[list[tuple[Any, str, type]]]:
    """Value, colour and type of every cell."""
    return [
        [(cell.value, cell.fill.fgColor.rgb[2:] if cell.fill.fill_type else "", type(cell.value)) for cell in row]
        for row in openpyxl.load_workbook(path).worksheets[0].iter_rows()
    ]


def test_v110_columns() -> None:
    assert titles(OLD, "statistics") == [*SIX, *DIFFERENCES, *RELATIVES, *FIGURES, "Result", "Err_message"]
    assert titles(OLD, "md5", stack=True) == [*SIX, "NPU MD5", "BENCH MD5", "Result", "NPU_Stack_Info"]
    assert titles(OLD, "tensor", stack=True) == [
        *SIX, "Cosine", "MaxAbsErr", "MaxRelativeErr", *RATIOS, *FIGURES,
        "Accuracy Reached or Not", "Err_message", "NPU_Stack_Info", "Data_name",
    ]  # fmt: skip


def test_v110_unmatched_rows() -> None:
    alone = side_by_side((tensor("input.0", [1.0]), None))
    (row,) = cells(OLD, judged(OLD, alone))
    assert {row[title] for title in row if title.startswith("Bench ") or title in DIFFERENCES + RELATIVES} == {"N/A"}
    assert (row["NPU max"], row["Result"], row["Err_message"]) == (1.0, "N/A", "No bench data matched.")


def test_v110_item_beyond_its_bench_entry() -> None:
    both = tensor("input.0", [1.0])
    extra = side_by_side((both, both), (tensor("input.1", [1.0]), None))
    assert cells(OLD, judged(OLD, extra))[1]["Bench Name"] == "Nan"


def test_v110_non_finite_figures_end_with_a_tab_and_are_red() -> None:
    pair_ = side_by_side((tensor("output.0", [np.nan]), tensor("output.0", [1.0])))
    comparison = judged(OLD, pair_)
    (row,) = cells(OLD, comparison)
    assert row["NPU max"] == "nan\t"
    assert row["Max diff"] == "nan\t"
    assert pair_.rows[0].colour == "red"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Missing.NO_DATA, ["None"] * 5 + ["None"]),
        (Missing.SHAPE, ["shape unmatched"] * 5 + ["Unmatched"]),
        (Missing.NON_FINITE, ["N/A"] * 5 + ["No"]),
        (Missing.EMPTY, ["unsupported", 0, 0, 0, 0, "None"]),
    ],
)
def test_v110_tokens_of_real_data(reason: Missing, expected: list[Cell]) -> None:
    assert _real_cells(OLD, dict.fromkeys(TENSOR_METRICS, reason)) == expected


def _real_cells(profile: Profile, metrics: dict[str, Any]) -> list[Cell]:
    row = real(metrics)
    entry = side_by_side((row.target, row.golden))
    comparison = Comparison("tensor", [Pair(entry.target, entry.golden, [row], "name")])
    judge(comparison, profile)
    names = ["Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", *RATIOS, "Accuracy Reached or Not"]
    (found,) = cells(profile, comparison)
    return [found[name] for name in names if name in found]


def test_v110_scalars_and_zero_vectors() -> None:
    scalar = {**dict.fromkeys(TENSOR_METRICS, Missing.SCALAR), MAX_ABSOLUTE: 0.5, MAX_RELATIVE: 0.25}
    assert _real_cells(OLD, scalar) == ["unsupported", 0.5, 0.25, "Nan", "Nan", "None"]
    zero = {COSINE: Missing.ZERO_VECTOR, MAX_ABSOLUTE: 1.0, MAX_RELATIVE: 1.0, ONE_THOUSANDTH: 0, FIVE_THOUSANDTHS: 0}
    assert _real_cells(OLD, zero) == ["Nan", 1.0, 1.0, 0, 0, "None"]


@pytest.mark.parametrize(
    ("cosine", "absolute", "reached"),
    [(1.0, 0.0, "Yes"), (0.98, 0.0009, "Yes"), (0.98, 0.0011, "No"), (0.89, 0.0, "No"), (0.999, 1.1, "No")],
)
def test_v110_accuracy(cosine: float, absolute: float, reached: str) -> None:
    metrics = {COSINE: cosine, MAX_ABSOLUTE: absolute, MAX_RELATIVE: 0, ONE_THOUSANDTH: 1, FIVE_THOUSANDTHS: 1}
    assert _real_cells(OLD, metrics)[-1] == reached


def test_v110_cosine_digits() -> None:
    assert _real_cells(OLD, {COSINE: 0.9999912345678901})[0] == 1.0
    assert _real_cells(OLD, {COSINE: 0.12345678901234567})[0] == 0.123456789012


def colour_of(before: dict[str, Any], after: dict[str, Any]) -> str:
    rows = [real({MAX_ABSOLUTE: 0.1, **before}, "input.0"), real({MAX_ABSOLUTE: 0.1, **after})]
    entry = side_by_side(*((row.target, row.golden) for row in rows))
    judge(Comparison("tensor", [Pair(entry.target, entry.golden, rows, "name")]), OLD)
    return rows[1].colour


def test_v110_colours_of_real_data() -> None:
    assert colour_of({ONE_THOUSANDTH: 0.95}, {ONE_THOUSANDTH: 0.5}) == "red"
    assert colour_of({ONE_THOUSANDTH: 0.8}, {ONE_THOUSANDTH: 0.5}) == "yellow"
    assert colour_of({COSINE: 0.9}, {COSINE: 0.7}) == "yellow"
    assert colour_of({MAX_ABSOLUTE: 2.0}, {MAX_ABSOLUTE: 21.0}) == "yellow"
    assert colour_of({MAX_ABSOLUTE: 0.001}, {MAX_ABSOLUTE: 0.9}) == ""
    assert colour_of({}, {MAX_ABSOLUTE: 2e10}) == "red"
    assert colour_of({ONE_THOUSANDTH: 0.95, COSINE: 1.0}, {ONE_THOUSANDTH: 0.9, COSINE: 0.95}) == ""


def test_v110_thresholds_can_be_overridden() -> None:
    strict = replace(V110(), thresholds=V110Thresholds(statistic_warning=0.01))
    values = (tensor("output.0", [1.0]), tensor("output.0", [1.1]))
    assert judged(V110(), side_by_side(values)).pairs[0].rows[0].result == ""
    assert judged(strict, side_by_side(values)).pairs[0].rows[0].result == "Warning"


def test_v110_md5() -> None:
    rows = side_by_side(
        (tensor("input.0", [1.0]), tensor("input.0", [1.0])),
        (value("input.1", 3), value("input.1", 4)),
        (tensor("output.0", [1.0]), tensor("output.0", [2.0])),
    )
    comparison = judged(OLD, rows, mode="md5")
    assert [row["Result"] for row in cells(OLD, comparison)] == ["pass", "pass", "Different"]
    assert cells(OLD, comparison)[1]["NPU MD5"] == "None"
    assert all(row.colour == "" for row in rows.rows)


def test_v110_keyword_arguments_are_numbered_as_1_1_0_does() -> None:
    item = value("input.approximate", "none", keyword=True)
    assert cells(OLD, judged(OLD, side_by_side((item, item))))[0]["NPU Name"].endswith(".input.approximate.0")
    mask = tensor("input.mask", [1.0], keyword=True)
    assert cells(OLD, judged(OLD, side_by_side((mask, mask)), mode="tensor"))[0]["NPU Name"].endswith(".kwargs.mask")


# today ---------------------------------------------------------------------------------------------------------------

EIGHT = [*SIX, "NPU Requires_grad", "Bench Requires_grad"]
VERDICT = ["Requires_grad Consistent", "Result", "Err_message"]


def test_latest_columns() -> None:
    assert titles(NEW, "statistics") == [*EIGHT, *DIFFERENCES, *RELATIVES, *FIGURES, *VERDICT]
    assert titles(NEW, "md5", stack=True) == [*EIGHT, "NPU MD5", "BENCH MD5", *VERDICT, "NPU_Stack_Info"]
    assert titles(NEW, "tensor", stack=True) == [
        *EIGHT, "Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", *RATIOS, *FIGURES,
        *VERDICT, "NPU_Stack_Info", "Data_name",
    ]  # fmt: skip


def test_latest_cells() -> None:
    mine = tensor("input.0", [3.0, np.inf], requires_grad=True)
    rows = side_by_side(
        (mine, tensor("input.0", [3.0, 4.0], requires_grad=True)),
        (value("input.1", True), value("input.1", "mean")),
        (null("input.2"), null("input.2")),
    )
    first, second, third = cells(NEW, judged(NEW, rows), stack=True)
    assert (first["NPU max"], first["Max diff"], first["MaxRelativeErr"]) == (" inf", " inf", " inf")
    assert (first["Min diff"], first["MinRelativeErr"]) == (0.0, "0.0%")
    assert (first["NPU Requires_grad"], first["Requires_grad Consistent"]) == ("True", "True")
    assert first["NPU_Stack_Info"] == "['File /a/b.py, line 1, in f, \\n f(x)']"
    assert (second["NPU max"], second["Bench max"], second["Max diff"]) == ("True", "mean", "Diff")
    assert second["NPU_Stack_Info"] == "None"
    assert (third["NPU Dtype"], third["NPU max"], third["Max diff"]) == ("N/A",) * 3


def test_latest_data_names() -> None:
    item = tensor("input.0", [1.0])
    one, other = cells(NEW, judged(NEW, side_by_side((item, item), (value("input.1", 1), None)), mode="tensor"))
    assert one["Data_name"] == str([item.data_name, item.data_name])
    assert other["Data_name"] == "-1"


def result(
    *rows: tuple[Item | None, Item | None], mode: str = "statistics", frameworks: str = "mindspore mindspore"
) -> str:
    """The last row's result: that of the output where there are inputs before it."""
    pair_ = side_by_side(*rows)
    judged(NEW, pair_, mode=mode, frameworks=frameworks)
    row = pair_.rows[-1]
    assert row.colour == {"error": "red", "warning": "yellow"}.get(row.result, "")
    assert bool(row.reason) == (row.result != "pass")
    return row.result


def scaled(place: str, factor: float, **changed: Any) -> tuple[Item, Item]:
    array = np.linspace(1, 2, 8, dtype=np.float32)
    return tensor(place, array * factor, **changed), tensor(place, array)


def test_latest_relative_rule() -> None:
    same = scaled("input.0", 1.0)
    assert result(same, scaled("output.0", 1.6)) == "error"
    assert result(scaled("input.0", 1.6), scaled("output.0", 1.6)) == "warning"
    assert result(same, scaled("output.0", 1.2)) == "warning"
    assert result(same, scaled("output.0", 1 + 1e-6)) == "pass"


def test_latest_difference_that_no_rule_names_is_a_warning() -> None:
    assert result(scaled("input.0", 1.0), scaled("output.0", 1.001)) == "warning"


def test_latest_inf_and_nan_rule() -> None:
    finite, infinite = tensor("output.0", [1.0, 2.0]), tensor("output.0", [1.0, np.inf])
    assert result((infinite, finite)) == "error"
    assert result((infinite, infinite)) == "pass"


def test_latest_dtypes_compare_by_meaning() -> None:
    mine, _ = scaled("output.0", 1.0)
    torch = mine._replace(dtype="torch.float32", type="torch.Tensor")
    cross = "mindspore pytorch"
    assert result((mine, torch), frameworks=cross) == "pass"
    assert result((mine, torch._replace(dtype="torch.bfloat16")), frameworks=cross) == "warning"
    assert result((mine, torch._replace(dtype="torch.int32")), frameworks=cross) == "error"
    ids = tensor("input.0", [1, 2], dtype="Int32")
    assert result((ids, ids._replace(dtype="torch.int64", type="torch.Tensor")), frameworks=cross) == "pass"


def test_latest_shape_and_requires_grad_rules() -> None:
    assert result((tensor("output.0", [1.0, 1.0]), tensor("output.0", [[1.0, 1.0]]))) == "error"
    mine, golden = scaled("output.0", 1.0)
    grad = mine._replace(requires_grad=True), golden._replace(requires_grad=False)
    assert result(grad) == "error"
    assert result((grad[0], grad[1]._replace(type="torch.Tensor"))) == "warning"


def test_latest_scalar_parameters_warn_across_frameworks() -> None:
    one, other = value("input.1", 1e-5), value("input.1", 1e-2)
    assert result((one, other)) == "error"
    assert result((one, other), frameworks="mindspore pytorch") == "warning"
    assert result((one, other), frameworks="mindtorch pytorch") == "error"
    assert result((value("input.1", 2), value("input.1", 2.0))) == "pass"


def test_latest_nothing_beside_something() -> None:
    assert result((null("input.0"), tensor("input.0", [1.0]))) == "error"
    assert result((null("input.0"), tensor("input.0", [1.0])), frameworks="mindspore pytorch") == "warning"
    assert result((null("input.0"), null("input.0"))) == "pass"


def test_latest_md5() -> None:
    assert result((tensor("output.0", [1.0]), tensor("output.0", [2.0])), mode="md5") == "error"
    assert result((tensor("output.0", [1.0]), None), mode="md5") == "warning"
    assert result((tensor("output.0", [1], dtype="Int32"), tensor("output.0", [1])), mode="md5") == "warning"


def real_result(before: dict[str, Any], after: dict[str, Any]) -> str:
    rows = [real(before, "input.0"), real(after)]
    entry = side_by_side(*((row.target, row.golden) for row in rows))
    judge(Comparison("tensor", [Pair(entry.target, entry.golden, rows, "name")]), NEW)
    return rows[1].result


def test_latest_rules_of_real_data() -> None:
    assert real_result({ONE_THOUSANDTH: 0.95}, {ONE_THOUSANDTH: 0.59}) == "error"
    assert real_result({ONE_THOUSANDTH: 0.95}, {ONE_THOUSANDTH: 0.61}) == "warning"
    assert real_result({ONE_THOUSANDTH: 0.85}, {ONE_THOUSANDTH: 0.1}) == "warning"
    rows = [real({COSINE: 0.95}, "input.0"), real({COSINE: 0.8, EUCLIDEAN: 1.0})]
    entry = side_by_side(*((row.target, row.golden) for row in rows))
    judge(Comparison("tensor", [Pair(entry.target, entry.golden, rows, "name")]), NEW)
    assert "cosine" in rows[1].reason


def test_latest_no_rule_fires_within_the_tolerance() -> None:
    """What 26.x calls an error on gradients of size 1e-8 that are rounding through and through."""
    rows = [real({ONE_THOUSANDTH: 1.0, COSINE: 1.0}, "input.0"), real({ONE_THOUSANDTH: 0.1, COSINE: 0.2})]
    rows[1].deviation = 1e-6
    entry = side_by_side(*((row.target, row.golden) for row in rows))
    judge(Comparison("tensor", [Pair(entry.target, entry.golden, rows, "name")]), NEW)
    assert rows[1].result == "pass"


def test_latest_ignored_apis() -> None:
    name = "Tensor.new_empty.0.forward"
    items = tensor("output.0", [1.0], name), tensor("output.0", [9.0], name)
    assert result(items) == "pass"
    name = "Distributed.all_to_all_single.0.forward"
    both = [(tensor(place, [1.0], name), tensor(place, [9.0], name)) for place in ("input.0", "output.0")]
    pair_ = side_by_side(*both)
    judged(NEW, pair_)
    assert [row.result for row in pair_.rows] == ["pass", "warning"]


def test_latest_unmatched_is_no_error() -> None:
    pair_ = side_by_side((tensor("input.0", [1.0]), None))
    (row,) = cells(NEW, judged(NEW, pair_))
    assert (row["Bench Name"], row["Result"], row["Err_message"]) == ("N/A", "N/A", '["No bench data matched."]')
    assert pair_.rows[0].colour == ""


def test_latest_origin_is_an_error_whatever_the_rules_say() -> None:
    pair_ = side_by_side(scaled("input.0", 1.0), scaled("output.0", 1.001))
    comparison = judged(NEW, pair_)
    name = pair_.rows[1].target.name if pair_.rows[1].target else ""
    comparison.origins.append(Origin(name, name, "output", "its inputs agree", {}))
    judge(comparison, NEW)
    assert [row.result for row in pair_.rows] == ["pass", "error"]
    assert pair_.rows[1].reason == "The error begins here: its inputs agree"


def test_latest_thresholds_can_be_overridden() -> None:
    lenient = replace(Latest(), thresholds=LatestThresholds(bad_relative=0.9))
    pair_ = side_by_side(scaled("input.0", 1.0), scaled("output.0", 1.6))
    judged(lenient, pair_)
    assert pair_.rows[1].result == "warning"


def test_latest_consistent_frameworks_give_no_error_and_no_warning() -> None:
    """MindSpore's Float32 beside torch.float32: 26.x marks every such row an error."""
    target, golden = (
        read_dump(DATA / "mapping" / f"encoder_{name}_L0" / "dump.json") for name in ("mindspore", "pytorch")
    )
    pairs = pair(target, golden, load_mappings(layer=DATA / "mapping" / "encoder_layer_mapping.yaml"))
    measure(pairs, target, golden, "statistics")
    comparison = Comparison("statistics", pairs)
    judge(comparison, NEW)
    assert {row.result for row in comparison.rows if row.matched} == {"pass"}


def test_rows_without_a_target_have_no_line() -> None:
    pair_ = side_by_side((tensor("input.0", [1.0]), tensor("input.0", [1.0])), (None, tensor("input.1", [1.0])))
    for profile in (OLD, NEW):
        assert len(cells(profile, judged(profile, pair_))) == 1


# advice --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "place", "begins"),
    [
        ("Functional.relu.0.forward", "input.0", "1. Analyze the model to view the input source."),
        ("Functional.relu.0.forward", "output.0", "This is a forward API computation error."),
        ("Functional.relu.0.backward", "input.0", "Check whether the forward computation"),
        ("Functional.relu.0.backward", "output.0", "This is a backward API computation error."),
        ("Functional.conv2d.0.forward", "output.0", "The kernel of this API can add in another order"),
        ("Functional.batch_norm.0.forward", "input.1", "The running statistics of batch_norm"),
    ],
)
def test_advice_by_place(entry: str, place: str, begins: str) -> None:
    pair_ = side_by_side((tensor(place, [1.0], entry), tensor(place, [9.0], entry)))
    text = advice(judged(OLD, pair_))
    assert text.startswith(f"Line: 0\nSuspect Nodes: {entry}.{place}\nExpert Advice: {begins}")


def test_advice_when_all_is_good() -> None:
    assert advice(judged(OLD, side_by_side(scaled("output.0", 1.0)))).startswith("Line: NA\nSuspect Nodes: NA\n")
