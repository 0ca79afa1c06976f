"""Which rank and call produced the first NaN of a step, and how it spread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_dumps import call, leaf, write_dump

from msprobe_ms.cli import main
from msprobe_ms.comparison.view.nonfinite_ranks import analysis_lines, analyze
from msprobe_ms.config.vocabulary import CHECKS

GOOD, BAD = np.ones(4, np.float32), np.array([1, np.nan, 1, 1], np.float32)
INFINITE = np.array([1, np.inf, 1, 1], np.float32)


def group(*ranks: int) -> dict[str, Any]:
    return {"type": "mindspore.ProcessGroup", "group_ranks": list(ranks), "group_id": str(ranks)}


def rank(first: Any, reduced: Any, second: Any, *ranks: int) -> dict[str, Any]:
    """A call, an exchange of what it gave, a call of what came out, and another exchange."""
    return {
        "Cell.fc.Dense.forward.0": call(GOOD, first),
        "MintDistributed.all_reduce.0.forward": call(first, reduced, group=group(*(ranks or (0, 1, 2)))),
        "Cell.head.Dense.forward.0": call(reduced, second),
        "MintDistributed.all_reduce.1.forward": call(second, second, group=group(0, 1, 2)),
    }


def step(folder: Path, *ranks: dict[str, Any]) -> Path:
    for number, data in enumerate(ranks):
        write_dump(folder / f"rank{number}", data)
    return folder


def lines(folder: Path) -> list[list[str]]:
    return [[*analysis_lines(each)] for each in analyze(folder)]


def test_the_rank_that_made_it_before_it_was_reduced(tmp_path: Path) -> None:
    folder = step(tmp_path / "step0", rank(GOOD, BAD, BAD), rank(BAD, BAD, BAD), rank(GOOD, BAD, BAD))
    assert lines(folder) == [
        [
            "NAN: first in step 0 on rank1, before communication, at Cell.fc.Dense.forward.0.output.0",
            "  rank0 and rank2 received it through MintDistributed.all_reduce.0.forward",
        ]
    ]


def test_the_rank_whose_call_behind_an_exchange_made_it(tmp_path: Path) -> None:
    folder = step(tmp_path / "step0", rank(GOOD, GOOD, GOOD), rank(GOOD, GOOD, BAD), rank(GOOD, GOOD, GOOD))
    assert lines(folder) == [
        [
            "NAN: first in step 0 on rank1, after communication, at Cell.head.Dense.forward.0.output.0",
            "  2 of 3 ranks hold finite values alone",
        ]
    ]


def test_the_infinity_that_a_nan_was_computed_from(tmp_path: Path) -> None:
    """A softmax of an infinity gives NaN; the fault is where the infinity comes from."""
    softmax = {"Functional.softmax.0.forward": call(INFINITE, BAD)}
    made = step(tmp_path / "step0", {"Cell.fc.Dense.forward.0": call(GOOD, INFINITE), **softmax})
    told = "NAN: first in step {} on rank0, at Functional.softmax.0.forward.output.0"
    infinity = "  its inputs already hold an infinity; the first one "
    assert lines(made) == [[told.format(0), f"{infinity}is in Cell.fc.Dense.forward.0.output.0"]]
    weight = {"Cell.fc.Dense.forward.0": {**call(GOOD, INFINITE), "parameters": {"weight": leaf(INFINITE)}}}
    given = step(tmp_path / "step1", {**weight, **softmax})
    came = "came from a weight and is in Cell.fc.Dense.forward.0.parameters.weight"
    assert lines(given) == [[told.format(1), f"{infinity}{came}"]]
    masked = step(
        tmp_path / "step2", {"Cell.fc.Dense.forward.0": call(GOOD, INFINITE), "Cell.d.Dense.forward.0": call(GOOD, BAD)}
    )
    assert lines(masked) == [["NAN: first in step 2 on rank0, at Cell.d.Dense.forward.0.output.0"]], "of finite inputs"


def test_an_exchange_that_made_it_of_finite_values(tmp_path: Path) -> None:
    folder = step(tmp_path / "step0", *[rank(GOOD, BAD, BAD)] * 3)
    (told,) = lines(folder)
    assert told == [
        "NAN: first in step 0 in the result of MintDistributed.all_reduce.0.forward on rank0, rank1 and rank2, "
        "although their inputs to it are finite: the exchange itself produced it, or a rank that was not recorded"
    ]


def test_ranks_of_another_group_are_later_though_their_number_is_lower(tmp_path: Path) -> None:
    """Rank 0 makes its own behind an exchange with all, rank 2 makes it before: clocks are not asked."""
    late = {
        "Cell.fc.Dense.forward.0": call(GOOD, GOOD),
        "MintDistributed.all_reduce.0.forward": call(GOOD, GOOD, group=group(0, 1, 2)),
        "Cell.head.Dense.forward.0": call(GOOD, BAD),
    }
    early = {
        "Cell.fc.Dense.forward.0": call(GOOD, BAD),
        "MintDistributed.all_reduce.0.forward": call(GOOD, GOOD, group=group(0, 1, 2)),
    }
    healthy = {name: late[name] for name in list(late)[:2]}
    told = lines(step(tmp_path / "step0", late, healthy, early))[0]
    assert told[0] == "NAN: first in step 0 on rank2, before communication, at Cell.fc.Dense.forward.0.output.0"
    assert told[1] == "  later, by their own computation, also rank0"


def test_infinities_count_only_where_there_is_no_nan(tmp_path: Path) -> None:
    masked = step(tmp_path / "step0", rank(INFINITE, GOOD, GOOD), rank(GOOD, GOOD, BAD), rank(INFINITE, GOOD, GOOD))
    assert lines(masked)[0][0].startswith("NAN: first in step 0 on rank1, after communication")
    alone = step(tmp_path / "step1", rank(INFINITE, GOOD, GOOD), *[rank(GOOD, GOOD, GOOD)] * 2)
    assert lines(alone)[0][0].startswith("INFINITY: first in step 1 on rank0, before communication")


def test_every_step_has_its_answer_and_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    healthy = [rank(GOOD, GOOD, GOOD)] * 3
    step(tmp_path / "dump" / "step2", *healthy)
    step(tmp_path / "dump" / "step10", rank(BAD, BAD, BAD), *[rank(GOOD, BAD, BAD)] * 2)
    asked = ["nan_analyze", "-i", str(tmp_path / "dump"), "-o", str(tmp_path / "out")]
    assert main([*asked, "--exit-code"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "FINITE: every value of 3 ranks in step 2"
    assert shown[1].startswith("NAN: first in step 10 on rank0, before communication")
    (file,) = (tmp_path / "out").glob("anomaly_analyze_nan_analyze_*.json")
    written = json.loads(file.read_text())
    assert written["step2"]["ranks"] == {}
    assert written["step10"]["first"] == ["rank0"]
    assert written["step10"]["ranks"]["rank1"]["handed_by"] == "MintDistributed.all_reduce.0.forward"
    assert written["step10"]["ranks"]["rank0"]["data_info"] == {"output.0": "NaN"}
    assert (
        main(["nan_analyze", "-i", str(tmp_path / "dump" / "step2"), "-o", str(tmp_path / "out"), "--exit-code"]) == 0
    )


def test_a_weight_that_an_earlier_step_may_have_spoiled(tmp_path: Path) -> None:
    step(tmp_path / "step3", rank(GOOD, GOOD, BAD))
    spoiled = {"Cell.fc.Dense.forward.0": {**call(GOOD, BAD), "parameters": {"weight": leaf(BAD)}}}
    step(tmp_path / "step4", spoiled)
    first, second = lines(tmp_path)
    assert first[0].startswith("NAN: first in step 3 on rank0")
    assert second[0].startswith("step 4: NaN first on rank0, at Cell.fc.Dense.forward.0")
    assert not any("already" in line for line in first)
    assert second[1:] == [
        "  no recorded call made it: it came from a weight",
        "  step 3 had NaN already, which an update may have carried into the weights",
    ]


def test_a_dump_of_one_rank_is_searched_too(tmp_path: Path) -> None:
    write_dump(tmp_path / "dump", rank(GOOD, GOOD, BAD))
    assert lines(tmp_path / "dump")[0][0].endswith("after communication, at Cell.head.Dense.forward.0.output.0")


def test_a_rank_whose_data_are_bad_is_named_by_them_and_not_by_a_gradient(tmp_path: Path) -> None:
    """Behind the exchange gradients are finite again, and become NaN by what the forward kept."""
    shared = {"group": group(0, 1)}
    bad, healthy = (
        {
            "Cell.fc.Dense.forward.0": call(x, x),
            "MintDistributed.all_reduce.0.forward": call(x, BAD, **shared),
            "Cell.head.Dense.forward.0": call(GOOD, GOOD),
            "Cell.head.Dense.backward.0": call(GOOD, GOOD),
            "Cell.fc.Dense.backward.0": call(GOOD, BAD if x is BAD else GOOD),
        }
        for x in (BAD, GOOD)
    )
    assert lines(step(tmp_path / "step0", healthy, bad)) == [
        [
            "NAN: first in step 0 on rank1, before communication, at Cell.fc.Dense.forward.0.input.0",
            "  no recorded call made it: it came from input data, a weight (level mix names it), an argument of the "
            "call, or code that was not recorded",
            "  rank0 received it through MintDistributed.all_reduce.0.forward",
        ]
    ]


def test_nothing_is_said_of_what_was_not_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = step(tmp_path / "step3", {})
    assert lines(folder) == [["NOTHING RECORDED in step 3: nothing is known of its values"]]
    assert main(["overflow_check", "-i", str(folder), "-o", str(tmp_path / "out")]) == 0
    assert "nothing was recorded, so nothing is known of its values" in capsys.readouterr().out


@pytest.mark.parametrize("task", CHECKS)
def test_a_dump_of_what_is_wrong_alone_is_finite_where_it_is_empty(task: str, tmp_path: Path) -> None:
    write_dump(tmp_path / "step3" / "rank0", {}, task)
    assert lines(tmp_path / "step3") == [["FINITE: every value of 1 rank in step 3"]]


def test_an_input_that_is_a_recorded_parameter_is_named_as_that_weight(tmp_path: Path) -> None:
    inside = {**call(GOOD, BAD), "input_args": [leaf(GOOD), leaf(BAD)]}
    cell = {**call(GOOD, BAD), "parameters": {"weight": leaf(BAD), "bias": leaf(GOOD)}}
    data = {"Mint.linear.0.forward": inside, "Cell.fc.Dense.forward.0": cell}
    write_dump(tmp_path / "step0" / "rank0", data)
    parents = {"Mint.linear.0.forward": "Cell.fc.Dense.forward.0", "Cell.fc.Dense.forward.0": None}
    (tmp_path / "step0" / "rank0" / "construct.json").write_text(json.dumps(parents))
    ((_, source, *_),) = lines(tmp_path)
    assert source == "  no recorded call made it: it came from the weight Cell.fc.Dense.forward.0.parameters.weight"


def test_where_an_input_and_a_weight_look_alike_none_is_named(tmp_path: Path) -> None:
    inside = {**call(GOOD, BAD), "input_args": [leaf(BAD), leaf(BAD)]}
    cell = {**call(GOOD, BAD), "parameters": {"weight": leaf(BAD)}}
    write_dump(tmp_path / "step0" / "rank0", {"Mint.linear.0.forward": inside, "Cell.fc.Dense.forward.0": cell})
    parents = {"Mint.linear.0.forward": "Cell.fc.Dense.forward.0", "Cell.fc.Dense.forward.0": None}
    (tmp_path / "step0" / "rank0" / "construct.json").write_text(json.dumps(parents))
    ((_, source, *_),) = lines(tmp_path)
    assert "input data, a weight (level mix names it), an argument of the call" in source
