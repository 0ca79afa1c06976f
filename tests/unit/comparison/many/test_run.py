"""Pairs of a plan as they are judged one after another: what a later step inherits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from compare_parts import compared_steps
from rank_dumps import call, leaf, write_dump

import msprobe_ms
from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.cli import main
from msprobe_ms.comparison.terms import Verdict

INPUT = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)


def graph(drift: float = 0.0) -> dict[str, object]:
    """Twenty layers, of which the first gives out little more error than it takes in."""
    calls = {f"Cell.fc{number}.Dense.forward.0": call(INPUT, INPUT + np.float32(0.5)) for number in range(20)}
    given, result = INPUT * np.float32(1 + drift / 4), (INPUT + np.float32(0.5)) * np.float32(1 + drift)
    return {**calls, "Cell.fc0.Dense.forward.0": call(given, result)}


def test_a_step_inherits_nothing_from_a_call_outside_a_graph_without_a_counterpart(tmp_path: Path) -> None:
    for step, drift in ((0, 0.0), (1, 1e-5)):
        for side, name in (("target", "ones"), ("golden", "zeros")):
            layers = graph(drift if side == "target" else 0.0)
            write_dump(tmp_path / f"{side}/graph/step{step}/rank0", layers)
            write_dump(tmp_path / f"{side}/pynative/step{step}/rank0", {f"Mint.{name}.0.forward": call(INPUT, INPUT)})
    found = compared_steps(tmp_path / "target", tmp_path / "golden").found
    assert [each.inherits for each in found] == [None] * 2 and any(each.differing for each in found)
    assert {each.verdict for each in found} == {Verdict.CONSISTENT}


def test_a_compiled_function_alone_outside_a_graph_is_no_divergence(
    tmp_path: Path,
) -> None:
    write_dump(tmp_path / "target/graph/step0/rank0", graph())
    write_dump(tmp_path / "target/pynative/step0/rank0", {"Jit.after_grad.0.forward": call(INPUT, INPUT)})
    write_dump(tmp_path / "golden/step0/rank0", graph())
    sides = ["-tp", str(tmp_path / "target"), "-gp", str(tmp_path / "golden")]
    assert main(["compare", *sides, "-o", str(tmp_path / "report")]) == 0
    summaries = [json.loads(path.read_text()) for path in (tmp_path / "report").glob("compare_summary*.json")]
    assert [each["verdict"] for each in summaries] == ["consistent"]


@pytest.mark.parametrize(("updated", "verdict"), [(True, Verdict.CONSISTENT), (False, Verdict.DIVERGENT)])
def test_updates_that_a_graph_shows_set_apart_what_it_hands_to_the_code_outside(
    tmp_path: Path, updated: bool, verdict: Verdict
) -> None:
    """``loss(jitted_network(x).reshape(…))``: parameters are recorded in the graph alone, not its last layer."""
    for step in (0, 1):
        for side in ("target", "golden"):
            apart = step == 1 and side == "target"
            result = (INPUT + np.float32(0.25)) * np.float32(1 + (6e-5 if apart else 0.0))
            weight = leaf(INPUT * np.float32(1 + (1e-5 if apart and updated else 0.0)))
            layers = {name: {**each, "parameters": {"weight": weight}} for name, each in graph().items()}
            shown = {**leaf(result), "Sketch": encode(sketch(result), result.dtype)}
            outside = {"Tensor.reshape.0.forward": {"input_args": [shown], "input_kwargs": {}, "output": [shown]}}
            if side == "golden":
                write_dump(tmp_path / f"{side}/step{step}/rank0", layers | outside)
                continue
            write_dump(tmp_path / f"{side}/graph/step{step}/rank0", layers)
            jitted = {"Jit.Net.0.forward": call(INPUT, result)}
            write_dump(tmp_path / f"{side}/pynative/step{step}/rank0", jitted | outside)
    found = compared_steps(tmp_path / "target", tmp_path / "golden").found
    assert [each.verdict for each in found] == [Verdict.CONSISTENT, verdict]


def test_what_ran_outside_of_a_graph_has_its_counterparts_beside_those_of_the_graph(tmp_path: Path) -> None:
    gradients = {f"Cell.fc{number}.Dense.parameters_grad.0": {"weight": [leaf(INPUT)]} for number in range(20)}
    for step in (0, 1):
        write_dump(tmp_path / f"target/graph/step{step}/rank0", graph())
        write_dump(tmp_path / f"target/pynative/step{step}/rank0", gradients)
        write_dump(tmp_path / f"golden/step{step}/rank0", graph() | gradients)
    found = compared_steps(tmp_path / "target", tmp_path / "golden").found
    assert [each.verdict for each in found] == [Verdict.CONSISTENT] * 2
    assert [each.summary["matched"] for each in found] == [60] * 2
    assert not any(each.summary["unmatched_golden"] + each.summary["unmatched_target"] for each in found)


def test_a_half_that_cannot_be_read_leaves_a_comparison_incomplete(tmp_path: Path) -> None:
    write_dump(tmp_path / "target/graph/step0/rank0", graph())
    (outside := tmp_path / "target/pynative/step0/rank0").mkdir(parents=True)
    (outside / "dump.json").write_text("{")
    write_dump(tmp_path / "golden/step0/rank0", graph())
    compared = msprobe_ms.compare(tmp_path / "target", tmp_path / "golden")
    assert compared.verdict == Verdict.INCOMPLETE
    assert "pynative/step0/rank0/dump.json" in str(compared) and "the other half of the step is read" in str(compared)


def test_a_step_inherits_nothing_from_one_whose_modules_no_name_pairs(tmp_path: Path) -> None:
    for step, drift in ((0, 0.0), (1, 1e-5)):
        write_dump(tmp_path / f"target/step{step}/rank0", graph(drift))
        other = {name.replace("fc", "dense"): each for name, each in graph().items()}
        write_dump(tmp_path / f"golden/step{step}/rank0", graph() if step else other)
    first, second = compared_steps(tmp_path / "target", tmp_path / "golden").found
    assert first.verdict == Verdict.INCOMPLETE
    assert (second.verdict, second.inherits) == (Verdict.CONSISTENT, None) and second.differing


def test_why_values_of_one_level_have_no_counterpart_is_known(tmp_path: Path) -> None:
    for step in (0, 1):
        write_dump(tmp_path / f"target/step{step}/rank0", graph(), level="L0")
        more = {"Mint.exp.0.forward": call(INPUT, INPUT)} if step else {}
        write_dump(tmp_path / f"golden/step{step}/rank0", graph() | more)
    found = compared_steps(tmp_path / "target", tmp_path / "golden").found
    why = "of Mint.exp; the target was dumped at level L0, the golden at mix"
    assert [each.why_alone for each in found] == ["", why]
