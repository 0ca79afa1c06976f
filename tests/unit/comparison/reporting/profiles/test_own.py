"""Our own report: its columns, and each row's one result, one reason and one colour."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from compare_parts import dump, null, side_by_side, tensor, value
from repository import ROOT

from msprobe_ms.arrays.metrics import COSINE, MAX_ABSOLUTE, MORE_METRICS, TENSOR_METRICS, Missing
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Allowance, Comparison, Effect, Origin, Pair, Row
from msprobe_ms.comparison.reporting.profiles import PROFILES, judge, own
from msprobe_ms.comparison.reporting.profiles.base import Cell, blocks
from msprobe_ms.dump.model import Item

OWN = PROFILES["own"]


def judged(*pairs: Pair, mode: str = "statistics", frameworks: str = "mindspore mindspore") -> Comparison:
    target, golden = frameworks.split()
    measure(list(pairs), dump([], target), dump([], golden), mode, more=True)
    comparison = Comparison(mode, list(pairs))
    judge(comparison, OWN)
    return comparison


def cells(comparison: Comparison, stack: bool = False) -> list[dict[str, Cell]]:
    columns = OWN.columns(comparison.mode, stack=stack)
    return [{column.title: column.cells(block)[0] for column in columns} for block in blocks(comparison, 1)]


def told(target: Item | None, golden: Item | None, **how: Any) -> tuple[str, str, str]:
    pair = side_by_side((target, golden))
    judged(pair, **how)
    (row,) = pair.rows
    return row.result, row.reason, row.colour


HEAD = [
    "NPU Name", "Bench Name", "Result", "Reason", "Inherited From", "Explained By", "Deviation", "Tolerance",
    "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape",
]  # fmt: skip
FIGURES = [f"{side} {name}" for side in ("NPU", "Bench") for name in ("max", "min", "mean", "l2norm")]
GRADIENTS = ["NPU Requires_grad", "Bench Requires_grad"]


def titles(mode: str, stack: bool = False) -> list[str]:
    return [column.title for column in OWN.columns(mode, stack=stack)]


def test_columns() -> None:
    assert titles("statistics") == [
        *HEAD,
        "MaxRelativeErr",
        "MinRelativeErr",
        "MeanRelativeErr",
        "NormRelativeErr",
        *FIGURES,
        *GRADIENTS,
    ]
    assert titles("md5", stack=True) == [*HEAD, "NPU MD5", "BENCH MD5", *FIGURES, *GRADIENTS, "Call Site"]
    assert titles("tensor", stack=True) == [
        *HEAD, "Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr",
        "One Thousandth Err Ratio", "Five Thousandths Err Ratio", "RelativeEuclideanDistance",
        "AccumulatedRelativeError", "MeanRelativeError", "MeanAbsoluteError", "RootMeanSquareError",
        "KullbackLeiblerDivergence", "StandardDeviation",
        *FIGURES, *GRADIENTS, "Call Site", "NPU Data_name", "Bench Data_name",
    ]  # fmt: skip


def test_numbers_are_numbers_and_nothing_is_blank() -> None:
    mine = tensor("input.0", [3.0, np.inf], requires_grad=True)
    rows = side_by_side(
        (mine, tensor("input.0", [2.0, 4.0])), (value("input.1", True), value("input.1", True)), (null("input.2"), None)
    )
    first, second, third = cells(judged(rows), stack=True)
    assert (first["NPU max"], first["NPU min"], first["MaxRelativeErr"]) == ("inf", 3.0, "inf")
    assert first["MinRelativeErr"] == 0.5
    assert (first["Deviation"], first["NPU Requires_grad"], first["Bench Requires_grad"]) == ("inf", "True", None)
    assert first["Call Site"] == "File /a/b.py, line 1, in f, f(x)"
    assert (second["NPU max"], second["Call Site"]) == ("True", None)
    assert [third[title] for title in ("Bench Name", "Deviation", "NPU max", "Bench max", "MaxRelativeErr")] == [
        None
    ] * 5


def test_real_data_has_every_metric_and_the_files() -> None:
    item = tensor("output.0", [1.0, 2.0])
    measured = dict.fromkeys(TENSOR_METRICS, 0.25) | dict.fromkeys(MORE_METRICS, 0.5) | {COSINE: Missing.ZERO_VECTOR}
    row = Row(item, item, measured, 0.0, 1e-5)
    entry = side_by_side((item, item))
    (found,) = cells(Comparison("tensor", [Pair(entry.target, entry.golden, [row], "name")]))
    assert (found["Cosine"], found["EucDist"], found["MeanRelativeError"]) == ("one side is zero", 0.25, 0.5)
    assert found["NPU Data_name"] == found["Bench Data_name"] == item.data_name


# Results and reasons -------------------------------------------------------------------------------------------------


def test_what_agrees_says_nothing() -> None:
    item = tensor("output.0", [1.0, 2.0])
    assert told(item, tensor("output.0", [1.0, 2.0000001])) == ("agrees", "", "")


def test_what_differs_gives_its_figures() -> None:
    result, reason, colour = told(tensor("output.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.5]))
    assert (result, colour) == ("differs", "yellow")
    assert reason == "It deviates by 0.17 of its size, beyond the tolerance 1e-06."


def test_what_inherits_says_from_whom() -> None:
    pair = side_by_side((tensor("output.0", [1.0]), tensor("output.0", [2.0])))
    pair.rows[0].inherited_from = "Cell.fc1.Dense.forward.0"
    (cell,) = cells(judged(pair))
    assert (cell["Result"], cell["Inherited From"]) == ("inherited", "Cell.fc1.Dense.forward.0")
    assert str(cell["Reason"]).endswith(", inherited from Cell.fc1.Dense.forward.0.")
    assert pair.rows[0].colour == "yellow"


def test_what_follows_from_an_origin_of_its_own_call_says_so() -> None:
    pair = side_by_side((tensor("output.0", [1.0]), tensor("output.0", [2.0])))
    assert pair.target is not None
    pair.rows[0].inherited_from = pair.target.name
    (cell,) = cells(judged(pair))
    assert cell["Result"] == "inherited" and str(cell["Reason"]).endswith(", as the error begins in this call.")


def test_what_agrees_inherits_nothing() -> None:
    pair = side_by_side((tensor("output.0", [1.0]), tensor("output.0", [1.0])))
    pair.rows[0].inherited_from = "Cell.fc1.Dense.forward.0"
    judged(pair)
    assert (pair.rows[0].result, pair.rows[0].reason) == ("agrees", "")


@pytest.mark.parametrize("whole", [False, True])
def test_an_origin_is_red_whether_its_item_or_its_entry_is_named(whole: bool) -> None:
    pair = side_by_side(
        (tensor("input.0", [1.0]), tensor("input.0", [1.0])), (tensor("output.0", [1.0]), tensor("output.0", [2.0]))
    )
    comparison = judged(pair)
    name = "Functional.op.0.forward" + ("" if whole else ".output.0")
    comparison.origins.append(Origin(name, name, "output", "its inputs agree", {}))
    judge(comparison, OWN)
    assert [(row.result, row.colour) for row in pair.rows] == [("agrees", ""), ("origin", "red")]
    assert pair.rows[1].reason == "The error begins here: its inputs agree"


def test_random_numbers_are_nobodys_fault() -> None:
    pair = side_by_side((tensor("output.0", [1.0]), tensor("output.0", [2.0])))
    comparison = judged(pair)
    name = "Functional.op.0.forward"
    comparison.random.append(Origin(name, name, "output", "dropout draws its own", {}, "random"))
    judge(comparison, OWN)
    (row,) = pair.rows
    assert (row.result, row.reason, row.colour) == ("random", "Random numbers: dropout draws its own", "")


def test_what_has_no_twin_says_what_is_missing() -> None:
    item = tensor("output.0", [1.0])
    assert told(item, None) == ("unmatched", "The golden has no such call.", "")
    pair = side_by_side((item, item), (tensor("output.1", [1.0]), None))
    judged(pair)
    assert pair.rows[1].reason == "The golden's call has no such value."


def test_refuted_records_are_not_judged() -> None:
    pair = side_by_side((tensor("output.0", [1.0]), tensor("output.0", [2.0])))
    pair.rows[0].explained = Allowance("later uses agree", effect=Effect.NO_ERROR)
    judged(pair)
    assert (pair.rows[0].result, pair.rows[0].colour) == ("not judged", "")


def test_apis_without_values_of_their_own_are_not_judged() -> None:
    name = "Tensor.new_empty.0.forward"
    result, reason, colour = told(tensor("output.0", [1.0], name), tensor("output.0", [9.0], name))
    assert (result, colour) == ("not judged", "") and "undefined or a mere copy" in reason


ONES = np.ones((2, 2), np.float32)
NAN, INFINITE = np.array([1, np.nan], np.float32), np.array([1, np.inf], np.float32)


@pytest.mark.parametrize(
    ("target", "golden", "result", "reason"),
    [
        (tensor("output.0", ONES), tensor("output.0", [[1.0]]), "differs", "The shapes differ: [2, 2] and [1, 1]."),
        (tensor("output.0", ONES), tensor("output.0", ONES.ravel()), "agrees", "The shapes differ: [2, 2] and [4]."),
        (tensor("output.0", ONES), tensor("output.0", ONES[0]), "agrees", "The shapes differ: [2, 2] and [2]."),
        (
            tensor("output.0", ONES),
            tensor("output.0", ONES.astype(int)),
            "differs",
            "The dtypes differ in kind: Float32 and Int64.",
        ),
        (
            tensor("output.0", ONES.astype(np.float16)),
            tensor("output.0", ONES),
            "agrees",
            "The dtypes differ: Float16 and Float32.",
        ),
        (tensor("output.0", NAN), tensor("output.0", ONES[0]), "differs", "It holds NaN, the golden is finite."),
        (
            tensor("output.0", ONES[0]),
            tensor("output.0", INFINITE),
            "differs",
            "It is finite, the golden holds infinity.",
        ),
        (tensor("output.0", NAN), tensor("output.0", INFINITE), "differs", "It holds NaN, the golden infinity."),
        (tensor("output.0", NAN), tensor("output.0", NAN), "agrees", "It holds NaN, as the golden."),
        (tensor("output.0", ONES), tensor("output.0", 0 * ONES), "differs", "It differs from a golden of zeros."),
        (tensor("output.0", ONES[:0]), tensor("output.0", ONES[:0]), "not compared", "Both are empty."),
        (value("input.1", 3), value("input.1", 4), "differs", "It is 3 here and 4 in the golden."),
        (value("input.1", "a"), value("input.1", "b"), "differs", "It is a here and b in the golden."),
        (value("input.1", 3), value("input.1", 3.0), "agrees", ""),
        (null("input.0"), null("input.0"), "not compared", "There is nothing on both sides."),
        (null("input.0"), value("input.0", 3), "differs", "It is nothing here and 3 in the golden."),
        (
            tensor("output.0", ONES, requires_grad=True),
            tensor("output.0", ONES, requires_grad=False),
            "agrees",
            "requires_grad is True here and False in the golden.",
        ),
    ],
)
def test_reasons(target: Item, golden: Item, result: str, reason: str) -> None:
    assert told(target, golden) == (result, reason, {"differs": "yellow"}.get(result, ""))


def test_arguments_of_two_frameworks_are_told_and_not_judged() -> None:
    found = told(value("input.1", 3), value("input.1", 4), frameworks="mindspore pytorch")
    assert found == (
        "not compared",
        "It is 3 here and 4 in the golden: the results of the call tell whether it matters.",
        "",
    )


def test_checksums() -> None:
    one, other = tensor("output.0", [1.0], md5="aa"), tensor("output.0", [1.0], md5="bb")
    assert told(one, other, mode="md5") == ("differs", "The checksums differ: aa and bb.", "yellow")
    across = told(one, other, mode="md5", frameworks="mindspore pytorch")
    assert across == ("agrees", "The checksums differ, as they will between frameworks; the statistics agree.", "")


def test_places_of_nan_in_real_data() -> None:
    item = tensor("output.0", NAN)
    metrics = dict.fromkeys((*TENSOR_METRICS, *MORE_METRICS), Missing.NON_FINITE)
    pair = side_by_side((item, item))
    pair.rows[0] = Row(item, item, metrics, math.inf, 1e-5)
    judge(Comparison("tensor", [pair]), OWN)
    assert pair.rows[0].reason == "NaN or infinity stand at other places than in the golden."
    pair.rows[0] = Row(item, item, {MAX_ABSOLUTE: 0.0}, 0.0, 1e-5)
    judge(Comparison("tensor", [pair]), OWN)
    assert pair.rows[0].reason == "It holds NaN, at the same places as the golden."


def test_a_file_that_cannot_be_read_is_told() -> None:
    result, reason, _ = told(tensor("output.0", [1.0]), tensor("output.0", [1.0]), mode="tensor")
    assert result == "agrees" and reason.startswith("Real data not compared: ")


def test_every_result_is_in_the_docs() -> None:
    docs = (ROOT / "docs" / "compare_columns.md").read_text(encoding="utf-8")
    assert [result for result in own.RESULTS if f"| `{result}` |" not in docs] == []
