"""Our advisor: what it detects, where it says it is, and what it says to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compare_parts import dump, scale_against_good, side_by_side, tensor

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Comparison, Pair
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.reporting.advisor import mindstudio_advice, own_advice, write_advice
from msprobe_ms.comparison.reporting.detections import (
    CONSISTENCY,
    FP16_OVERFLOW,
    INCONSISTENT_INPUT,
    NON_FINITE,
    PROBLEM_NODE,
    SINGLE_POINT,
    Finding,
    detect,
)
from msprobe_ms.comparison.reporting.profiles import PROFILES, judge
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.model import Item

ARRAY = np.linspace(1, 2, 8, dtype=np.float32)


def judged(*pairs: Pair) -> Comparison:
    measure(list(pairs), dump([]), dump([]), "statistics")
    comparison = Comparison("statistics", list(pairs), find_origins(Evidence(pairs)))
    judge(comparison, PROFILES["own"])
    return comparison


def call(name: str, before: float = 1.0, after: float = 1.0, dtype: str = "float32") -> Pair:
    """A call whose input and output are these times the golden's."""
    entry = f"{name}.forward.0" if name.startswith("Cell.") else f"{name}.forward"

    def both(place: str, factor: float) -> tuple[Item, Item]:
        return tensor(place, (ARRAY * factor).astype(dtype), entry), tensor(place, ARRAY.astype(dtype), entry)

    return side_by_side(both("input.0", before), both("output.0", after))


def found(*pairs: Pair) -> dict[str, Finding]:
    findings = {finding.detection: finding for finding in detect(judged(*pairs))}
    assert list(findings)[-1] == CONSISTENCY
    return findings


def test_all_well() -> None:
    (finding,) = found(call("Functional.relu.0"), call("Functional.relu.1")).values()
    assert (finding.row, finding.suspect) == (None, "NA")
    assert finding.advice.startswith("All 4 values compared agree within their tolerances. If the results still differ")


def test_values_without_a_counterpart_are_counted() -> None:
    alone = side_by_side((tensor("output.0", ARRAY, "Functional.relu.1.forward"), None))
    advice = found(call("Functional.relu.0"), alone)[CONSISTENCY].advice
    assert "agree within their tolerances. 1 value has no counterpart and was not compared." in advice
    assert found(alone)[CONSISTENCY].advice.startswith("Nothing was compared.")


@pytest.mark.parametrize(("dtype", "detection"), [("float16", FP16_OVERFLOW), ("float32", NON_FINITE)])
def test_overflow(dtype: str, detection: str) -> None:
    good = call("Functional.exp.0")
    bad = call("Functional.exp.1", after=np.inf, dtype=dtype)
    worse = call("Functional.exp.2", np.inf, np.nan, dtype=dtype)
    findings = found(good, bad, worse)
    assert list(findings) == [detection, PROBLEM_NODE, CONSISTENCY]
    finding = findings[detection]
    assert (finding.row, finding.suspect) == (5, "Functional.exp.1.forward.output.0")
    assert finding.advice.startswith("The first of 3 values. ")
    assert ("65504" in finding.advice) == (dtype == "float16")


def test_an_infinity_that_the_golden_holds_too_is_no_overflow() -> None:
    mask = tensor("input.0", np.array([0, -np.inf], np.float16))
    assert list(found(side_by_side((mask, mask)))) == [CONSISTENCY]


def test_input_of_the_network() -> None:
    findings = found(call("Cell.fc1.Dense", 1.5, 1.5), call("Cell.fc2.Dense", 1.5, 1.5))
    assert list(findings) == [INCONSISTENT_INPUT, CONSISTENCY]
    finding = findings[INCONSISTENT_INPUT]
    assert (finding.row, finding.suspect) == (2, "Cell.fc1.Dense.forward.0.input.0")
    assert "save one batch" in finding.advice


def test_input_after_calls_that_agree() -> None:
    findings = found(call("Cell.fc1.Dense"), call("Cell.fc2.Dense", 1.5, 1.5))
    finding = findings[INCONSISTENT_INPUT]
    assert (finding.row, finding.suspect) == (4, "Cell.fc2.Dense.forward.0.input.0")
    assert "code that was not recorded" in finding.advice


def test_parameters() -> None:
    entry = "Cell.fc1.Dense.forward.0"
    rows = [
        (tensor(place, ARRAY * factor, entry), tensor(place, ARRAY, entry))
        for place, factor in (("input.0", 1), ("output.0", 1.1), ("parameters.weight", np.float32(1.2)))
    ]
    finding = found(side_by_side(*rows))[INCONSISTENT_INPUT]
    assert finding.suspect == f"{entry}.parameters.weight" and "one checkpoint" in finding.advice


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Cell.norm1.LayerNorm", "epsilon"),
        ("Cell.bn.BatchNorm2d", "running statistics"),
        ("Cell.norm.RMSNorm", "epsilon"),
        ("Functional.gelu.0", "exact or by tanh"),
        ("Functional.softmax.3", "mask"),
        ("Cell.conv1.Conv2d", "pad_mode"),
        ("Cell.pool.MaxPool2d", "ceil_mode"),
        ("Cell.fc1.Dense", "transposed"),
        ("Cell.loss.CrossEntropyLoss", "reduction"),
        ("Cell.rnn.LSTM", "gates"),
        ("Tensor.mean.0", "the axis"),
        ("Tensor.to.0", "casts to"),
        ("Functional.topk.0", "run it alone"),
    ],
)
def test_problem_node_says_what_usually_differs_there(name: str, advice: str) -> None:
    finding = found(call(name, 1, 1.5))[PROBLEM_NODE]
    assert finding.row == 3 and finding.suspect.endswith(".output.0")
    assert "deviates by" in finding.advice and advice in finding.advice


def test_gradient() -> None:
    entry = "Cell.fc1.Dense.backward.0"
    rows = [
        (tensor(place, ARRAY * np.float32(factor), entry), tensor(place, ARRAY, entry))
        for place, factor in (("input.0", 1), ("output.0", 2))
    ]
    assert "look at backward" in found(call("Cell.fc1.Dense"), side_by_side(*rows))[PROBLEM_NODE].advice


def test_an_error_that_does_not_reach_the_end() -> None:
    findings = found(call("Functional.gelu.0", 1, 1.5), call("Functional.relu.0"))
    assert list(findings) == [PROBLEM_NODE, SINGLE_POINT, CONSISTENCY]
    finding = findings[SINGLE_POINT]
    assert (finding.row, finding.suspect) == (3, "Functional.gelu.0.forward.output.0")
    assert finding.advice.startswith(
        "1 value is beyond its tolerance, yet the last output recorded, Functional.relu.0.forward.output.0, agrees"
    )
    reaching = found(call("Functional.gelu.0", 1, 1.5), call("Functional.relu.0", 1.5, 1.5))
    assert list(reaching) == [PROBLEM_NODE, CONSISTENCY]
    assert reaching[CONSISTENCY].advice.startswith("3 values are beyond their tolerances, of 4 compared; the first is")


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("precision", "the same dtype"),
        ("collective", "another rank"),
        ("drift", "No single node"),
        ("missing gradient", "frozen"),
        ("not compared", "map the two"),
    ],
)
def test_the_kind_of_an_origin_says_more_than_its_place(kind: str, advice: str) -> None:
    comparison = judged(call("Functional.relu.0", 1, 1.5))
    comparison.origins = [replace(comparison.origins[0], kind=kind)]
    (finding, _) = detect(comparison)
    assert finding.detection == PROBLEM_NODE and advice in finding.advice


def test_random_operations_are_told() -> None:
    comparison = judged(call("Functional.dropout.0", 1, 1.5))
    comparison.random, comparison.origins = [replace(comparison.origins[0], kind="random")], []
    *_, finding = detect(comparison)
    assert "Random operations differ (Functional.dropout.0.forward.output.0)" in finding.advice


def test_a_loss_that_agrees_hides_nothing() -> None:
    """Its input differs, or a gradient does: then the error has reached the end."""
    wrong = call("Functional.gelu.0", 1, 1.5)
    loss = "Functional.cross_entropy.0.forward"
    scalar = (tensor("output.0", np.float32(2), loss), tensor("output.0", np.float32(2), loss))
    inputs = (tensor("input.0", ARRAY * np.float32(1.5), loss), tensor("input.0", ARRAY, loss))
    assert SINGLE_POINT not in found(wrong, side_by_side(inputs, scalar))
    back = "Functional.gelu.0.backward"
    gradient = side_by_side((tensor("input.0", ARRAY * 2, back), tensor("input.0", ARRAY, back)))
    assert SINGLE_POINT not in found(wrong, call("Functional.relu.0"), gradient)


def test_a_function_without_advice_has_that_of_its_module() -> None:
    pair = call("Tensor.__add__.0", 1, 1.5)
    assert pair.target is not None
    pair.target.parent = "Cell.gru.rnn._DynamicGRU.forward.0"
    assert "gates" in found(pair)[PROBLEM_NODE].advice


def test_later_suspects_may_be_consequences() -> None:
    comparison = judged(call("Functional.gelu.0", 1, 1.5))
    comparison.origins *= 2
    first, second, *_ = (finding.advice for finding in detect(comparison))
    assert second == f"Perhaps only a consequence of the origin above: fix that first. {first}"


def test_drift_without_an_origin() -> None:
    finding = found(call("Functional.relu.0", 1 + 4.5e-6, 1 + 8e-6))[CONSISTENCY]
    assert "slow drift" in finding.advice


def test_values_that_are_explained_are_said_to_be() -> None:
    finding = found(call("Functional.relu.0", 1 + 4.5e-6, 1 + 8e-6))[CONSISTENCY]
    assert (finding.row, finding.suspect) == (None, "NA")
    assert finding.advice.startswith(
        "1 value is beyond its tolerance because the call amplifies rounding. No origin of an error was found among "
    )
    comparison = judged(call("Functional.relu.0", 1 + 4.5e-6, 1 + 8e-6))
    comparison.verdict = Verdict.DIVERGENT
    *_, finding = detect(comparison)
    assert finding.advice.startswith("1 value is beyond its tolerance, of 2 compared; the first is Functional.relu.0.")


def test_the_file(tmp_path: Path) -> None:
    comparison, target, golden = scale_against_good(tmp_path)
    measure(comparison.pairs, target, golden, "statistics")
    comparison.origins = find_origins(Evidence(comparison.pairs))
    judge(comparison, PROFILES["own"])
    path = write_advice(comparison, tmp_path, "20260102030405", profile="own")
    assert path.name == "advisor_20260102030405.txt"
    text = path.read_text()
    assert text == own_advice(comparison)
    for block in text.split("\n\n"):
        titles = [line.partition(": ")[0] for line in block.splitlines()]
        assert titles == ["Detection Type", "Row in compare_result", "Suspect Nodes", "Expert Advice"]


def test_the_file_in_the_form_of_mindstudio(tmp_path: Path) -> None:
    comparison, target, golden = scale_against_good(tmp_path)
    measure(comparison.pairs, target, golden, "statistics")
    comparison.origins = find_origins(Evidence(comparison.pairs))
    judge(comparison, PROFILES["own"])
    path = write_advice(comparison, tmp_path, "20260102030405", profile="latest", form="mindstudio")
    text = path.read_text()
    assert text == mindstudio_advice(comparison)
    first = next(detect(comparison))
    assert first.row is not None
    assert next(block.splitlines()[1] for block in text.split("\n\n")) == f"Operator Index: {first.row - 2}"
    for block in text.split("\n\n"):
        titles = [line.partition(": ")[0] for line in block.splitlines()]
        assert titles == ["Detection Type", "Operator Index", "Expert Advice"]
