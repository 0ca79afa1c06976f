"""What the terminal says of several steps and ranks: one of them in full, the others in a line each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from msprobe_ms.comparison.many.first_rank import Exchanges
from msprobe_ms.comparison.many.plan import DumpPair, Plan
from msprobe_ms.comparison.many.run import Found
from msprobe_ms.comparison.many.summary import Gathering, Total
from msprobe_ms.comparison.many.terminal import found_lines, total_lines, total_report_lines
from msprobe_ms.comparison.many.trend import LossGap
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.reading.locate import Place

SUMMARY = {"damage": [], "ends": [], "matched": 1, "not_compared": 0, "unmatched_target": 0, "unmatched_golden": 0}
#: What the summary of all says of a pair besides.
ROW = {**SUMMARY, "origins": [], "mode": "statistics"}
NAME = "Cell.fc.Dense.forward.0.output.0"


def found(
    step: int, verdict: Verdict, kind: str = "computation", reason: str = "it differs", rank: str = "rank0"
) -> Found:
    origins = [Origin(NAME, NAME, "output", reason, {}, kind)] if verdict == Verdict.DIVERGENT else []
    lines = ["DIVERGENT: the error begins at", f"  {NAME}", "10 values compared"]
    files = [Path(f"out/compare_{what}_step{step}.{kind}") for what, kind in (("result", "xlsx"), ("summary", "json"))]
    exchanges = Exchanges(origin=NAME if origins else "")
    return Found(Place(step, rank), verdict, SUMMARY, origins, lines, files, exchanges=exchanges)


def gathered(steps: list[Found]) -> tuple[Total, Plan]:
    plan = Plan([DumpPair(each.place, "", Path("target"), Path("golden")) for each in steps], [], [])
    with Gathering(plan, None, "20260101000000") as gathering:
        for each in steps:
            gathering.add(replace(each, summary=ROW))
        return gathering.total(), plan


def test_the_first_step_that_diverges_is_told_in_full_and_later_ones_follow_it() -> None:
    steps = [found(0, Verdict.CONSISTENT), *(found(step, Verdict.DIVERGENT) for step in (1, 2, 3))]
    assert list(found_lines(steps, in_full=True)) == [
        "step0 rank0: CONSISTENT: 1 value compared",
        "step1 rank0: DIVERGENT: the error begins at",
        f"  {NAME}",
        "10 values compared",
        "report: out/compare_result_step1.xlsx (1 other file is listed in compare_summary_step1.json)",
        "step2 rank0: DIVERGENT, inherits the error of step 1",
        "step3 rank0: DIVERGENT, inherits the error of step 1",
    ]


def test_a_step_in_which_values_differ_and_no_error_begins_says_so() -> None:
    counted = {**SUMMARY, "matched": 523, "not_compared": 4, "unmatched_target": 9, "unmatched_golden": 1}
    calm = replace(found(1, Verdict.CONSISTENT), differing=512, summary=counted)
    *_, line = found_lines([found(0, Verdict.CONSISTENT), calm], in_full=True)
    assert line == (
        "step1 rank0: CONSISTENT: 519 values compared, 9 of the target and 1 of the golden have no counterpart; "
        "512 values differ by rounding errors that have added up"
    )
    *_, line = found_lines([found(0, Verdict.CONSISTENT), replace(calm, hides=0.0317)], in_full=True)
    assert line.endswith(
        "512 values differ after updates of the parameters, by at most 0.032 of their size: an error no larger may hide"
    )
    after = replace(found(1, Verdict.DIVERGENT), origins=[], exchanges=Exchanges(), inherits=0)
    *_, line = found_lines([found(0, Verdict.DIVERGENT), after], in_full=True)
    assert line == "step1 rank0: DIVERGENT, inherits the error of step 0"


def test_why_values_have_no_counterpart_is_told_once() -> None:
    lone = {**SUMMARY, "unmatched_golden": 3}
    why = "the target was dumped at level L0, the golden at mix"
    steps = [replace(found(step, Verdict.CONSISTENT), summary=lone, why_alone=why) for step in (0, 1)]
    assert list(found_lines(steps, in_full=True)) == [
        f"step0 rank0: CONSISTENT: 1 value compared, 3 have no counterpart ({why})",
        "step1 rank0: CONSISTENT: 1 value compared, 3 have no counterpart",
    ]


def test_what_could_not_be_paired_hands_no_error_to_later_steps() -> None:
    steps = [
        replace(found(step, Verdict.DIVERGENT), origins=[], exchanges=Exchanges(), unpaired=True) for step in (0, 1)
    ]
    assert list(found_lines(steps, in_full=True))[-1] == "step1 rank0: DIVERGENT"
    assert "inherit" not in "\n".join(total_lines(*gathered(steps)))
    assert "later steps inherit its error" in "\n".join(total_lines(*gathered([found(0, Verdict.DIVERGENT), steps[1]])))


@pytest.mark.parametrize("provable", [True, False])
def test_the_call_of_the_first_pair_that_diverges_can_be_proved(provable: bool) -> None:
    steps = [found(0, Verdict.CONSISTENT), *(found(step, Verdict.DIVERGENT) for step in (1, 2))]
    steps[1] = replace(steps[1], provable=provable)
    total, _ = gathered(steps)
    summary = Path("out/compare_summary_1.json")
    *_, last = total_report_lines(replace(total, files=[summary]), Path("out/compare_report_1.html"))
    proof = f"next, to see which side is wrong and why: msprobe prove {summary}"
    assert (last == proof) is provable


def test_a_later_step_whose_update_differs_says_so() -> None:
    update = found(
        1, Verdict.DIVERGENT, "update", "the target's updates are 2 times the golden's: look at the learning rate"
    )
    *_, line = found_lines([found(0, Verdict.DIVERGENT), update], in_full=True)
    assert line == (
        f"step1 rank0: DIVERGENT: the target's updates are 2 times the golden's: look at the learning rate ({NAME})"
    )


def test_another_rank_of_the_first_step_names_its_own_origin() -> None:
    ranks = [found(0, Verdict.DIVERGENT), found(0, Verdict.DIVERGENT, rank="rank1")]
    assert list(found_lines(ranks, in_full=True))[-1] == f"step0 rank1: DIVERGENT: the error begins at {NAME}"


@pytest.mark.parametrize("in_full", [True, False])
def test_what_could_not_be_compared_is_a_line(in_full: bool) -> None:
    failed = Found(Place(0, "rank0"), Verdict.FAILED, problem="no such file")
    assert list(found_lines([failed], in_full=in_full)) == ["step0 rank0: NOT COMPARED: no such file"]


def test_of_many_the_consistent_are_left_out() -> None:
    assert list(found_lines([found(0, Verdict.CONSISTENT), found(1, Verdict.DIVERGENT)], in_full=False)) == [
        f"step1 rank0: DIVERGENT: the error begins at {NAME}"
    ]


def test_the_first_step_in_which_losses_differ_is_said() -> None:
    steps = [found(0, Verdict.CONSISTENT), *(found(step, Verdict.DIVERGENT) for step in (1, 2, 3))]
    gaps = [None, None, LossGap(2, 2.30117, 2.31702), LossGap(3, 2.1, 2.4)]
    lines = total_lines(*gathered([replace(each, loss=gap) for each, gap in zip(steps, gaps, strict=True)]))
    assert "loss differs first in step 2: 2.30117 against 2.31702" in lines
