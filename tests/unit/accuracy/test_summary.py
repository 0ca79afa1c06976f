"""What a pre-check says in the terminal, and why its exit status is not 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.accuracy.calls import read_calls
from msprobe_ms.accuracy.checked import Checked
from msprobe_ms.accuracy.judging.model import ApiResult, Status
from msprobe_ms.accuracy.summary import status_reason, summary_lines

PASSED = ApiResult("Mint.sub.0", Status.PASS, Status.PASS)
MODULE = ApiResult("Cell.fc.Dense.forward.0", Status.SKIP, None, "modules: the APIs in them are checked one by one")
LOSS = ApiResult("loss.0.debug", Status.SKIP, None, "saved value (such as the loss)")
LEFT_OUT = [
    ApiResult(f"Mint.abs.{number}", Status.SKIP, None, reason)
    for number, reason in enumerate(("in black list", "not in white list", "same arguments as Mint.abs.0"))
]
UNCHECKED = ApiResult("Mint.rand.0", Status.SKIP, None, "random output")
WRONG = ApiResult("Mint.exp.0", Status.ERROR, Status.PASS)


def test_calls_and_directions_are_counted() -> None:
    said = list(summary_lines("d", Checked([PASSED, WRONG, ApiResult("Mint.cos.0", Status.PASS, None), MODULE, LOSS])))
    assert said == [
        "ERROR: d: 3 API calls judged (3 forward, 2 backward): 4 pass, 0 warning, 1 error; 2 entries not checked",
        "  not checked: 1 modules, 1 saved value (such as the loss)",
    ]


@pytest.mark.parametrize(
    ("results", "strict", "reason"),
    [
        ([PASSED, MODULE, LOSS, *LEFT_OUT], True, ""),
        ([PASSED, UNCHECKED], False, ""),
        ([PASSED, UNCHECKED, MODULE], True, "exit status 1: --strict is given, and 1 API call could not be checked"),
        ([MODULE, LOSS], True, "exit status 1: --strict is given, and nothing was checked"),
        ([], True, "exit status 1: --strict is given, and nothing was checked"),
        ([MODULE], False, ""),
        ([WRONG, UNCHECKED], False, "exit status 1: an API is wrong"),
    ],
)
def test_modules_and_what_was_left_out_do_not_make_a_strict_check_fail(
    results: list[ApiResult], strict: bool, reason: str
) -> None:
    assert status_reason(Checked(results), strict=strict) == reason


def test_a_dump_of_modules_alone_is_told_what_to_record(tmp_path: Path) -> None:
    told = "  the dump holds no API calls: record them at level L1 or mix, then check again"
    assert list(summary_lines("d", Checked([MODULE, LOSS])))[-1] == told
    assert told not in summary_lines("d", Checked([MODULE, UNCHECKED]))
    file = tmp_path / "dump.json"
    file.write_text('{"data": {"Cell.fc.Dense.forward.0": {}, "loss.0.debug": {}}}')
    assert read_calls(file).others == {each.name: each.message for each in (MODULE, LOSS)}


def test_the_folder_of_wrong_calls_is_told_where_there_is_one(tmp_path: Path) -> None:
    checked = Checked([WRONG], errors=tmp_path / "error_data")
    assert not any("error_data" in line for line in summary_lines("d", checked))
    (tmp_path / "error_data").mkdir()
    (tmp_path / "error_data" / "Mint.exp.0.reproduce.py").touch()
    assert list(summary_lines("d", checked))[-1] == f"tensors and scripts of wrong calls: {tmp_path / 'error_data'}"


def test_wrong_calls_without_a_script_are_counted_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "Mint.exp.0.reproduce.py").touch()
    primitive = ApiResult("Primitive.silu.SiLU.0", Status.ERROR, None)
    assert not any("no script" in line for line in summary_lines("d", Checked([WRONG], errors=tmp_path)))
    assert list(summary_lines("d", Checked([PASSED, WRONG, primitive], errors=tmp_path)))[-1] == (
        "  1 wrong call has no script, only tensors: a script calls public functions by their names, and calls "
        "recorded as Primitive are none"
    )
