"""Rows that go through JSON and come back the same, and the verdict over several outputs."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.accuracy.judging.model import ApiKey, ApiResult, Judged, Status, api_status, gravest

TEXT = st.text(max_size=20)
FIGURES = st.dictionaries(TEXT, st.none() | st.floats(), max_size=4)
STATUS = st.sampled_from(Status)
JUDGED = st.builds(
    Judged, TEXT, TEXT, TEXT, st.none() | st.lists(st.integers(0, 10**12), max_size=4).map(tuple), FIGURES, STATUS,
    TEXT, TEXT, TEXT, TEXT, st.none() | STATUS,
)  # fmt: skip
RESULT = st.builds(
    ApiResult, TEXT, st.none() | STATUS, st.none() | STATUS, TEXT, st.lists(JUDGED, max_size=3).map(tuple)
)


@given(result=RESULT)
def test_results_survive_json(result: ApiResult) -> None:
    text = json.dumps(result.to_json(), allow_nan=False)
    back = ApiResult.from_json(json.loads(text))
    assert repr(back) == repr(result)  # NaN is no number equal to itself
    assert all(isinstance(row.status, Status) and isinstance(row.figures, dict) for row in back.details)


def test_figures_that_are_not_finite_come_back_as_numbers() -> None:
    row = Judged("a", "", "", (2,), {"x": math.inf, "y": math.nan, "z": -math.inf}, Status.PASS)
    figures = Judged.from_json(json.loads(json.dumps(row.to_json()))).figures
    assert figures["x"] == math.inf and math.isnan(figures["y"] or 0) and figures["z"] == -math.inf


@pytest.mark.parametrize("change", [{"status": "good"}, {"figures": {"a": "b"}}, {"shape": ["x"]}, {"name": 3}])
def test_what_is_no_row_is_refused(change: dict[str, object]) -> None:
    content = Judged("a", "", "", None, {}, Status.PASS).to_json()
    with pytest.raises((KeyError, TypeError, ValueError)):
        Judged.from_json({**content, **change})
    with pytest.raises(KeyError):
        Judged.from_json({})


def row(status: Status) -> Judged:
    return Judged("", "", "", None, {}, status)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ("", "SKIP"),
        ("SKIP SKIP", "SKIP"),
        ("SKIP pass", "pass"),
        ("pass warning pass", "warning"),
        ("error warning SKIP", "error"),
        ("warning error pass", "error"),
    ],
)
def test_the_gravest_counts_and_skipped_is_no_pass(statuses: str, expected: str) -> None:
    assert api_status([row(Status(each)) for each in statuses.split()]) == expected


def test_of_no_verdict_there_is_none() -> None:
    assert gravest([]) is None and gravest([None, Status.SKIP]) is Status.SKIP


def test_statuses_are_their_words_wherever_they_are_written() -> None:
    assert f"{Status.SKIP} {Status.PASS!s}" == "SKIP pass"


def test_keys() -> None:
    key = ApiKey("mindtorch", "Torch", "nn.functional.conv2d", "backward")
    assert (key.last, key.is_backward, key.of_pytorch) == ("conv2d", True, False)
