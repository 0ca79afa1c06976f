"""Which calls are checked, and for which reason the others are not."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.accuracy.selection import Selection, select
from tests.unit.accuracy.test_calls import dump, forward, tensor

DATA: dict[str, Any] = {
    "Mint.sub.0.forward": forward(tensor([2]), tensor([2])),
    "Mint.sub.1.forward": forward(tensor([2]), tensor([2])),
    "Mint.sub.2.forward": forward(tensor([2]), {"type": "int", "value": 1}),
    "Functional.dropout.0.forward": forward(tensor([2]), {"type": "float", "value": 0.5}),
    "Functional.dropout.1.forward": forward(tensor([2]), training={"type": "bool", "value": False}),
    "Distributed.all_reduce.0.forward": forward(tensor([2])),
    "Functional.vmap.0.forward": forward({"type": "function", "value": None}),
    "Tensor.add.0.backward": {"input": [tensor([2])], "output": [tensor([2])]},
}


def reasons(folder: Path, **selection: Any) -> dict[str, str]:
    return select(dump(folder, DATA), Selection(**selection)).skipped


def test_every_call_is_checked_or_has_a_reason(tmp_path: Path) -> None:
    calls = dump(tmp_path, DATA)
    selected = select(calls, Selection())
    assert [call.name for call in selected.calls] == [
        "Mint.sub.0", "Mint.sub.1", "Mint.sub.2", "Functional.dropout.1",
    ]  # fmt: skip
    assert selected.skipped == {
        "Functional.dropout.0": "random output",
        "Distributed.all_reduce.0": "distributed",
        "Functional.vmap.0": "an argument was not recorded: function",
        "Tensor.add.0": "no forward entry",
    }


def test_lists_name_apis_or_calls_and_the_black_one_wins(tmp_path: Path) -> None:
    chosen = reasons(tmp_path, white_list=frozenset({"sub"}), black_list=frozenset({"Mint.sub.1"}))
    assert chosen["Mint.sub.1"] == "in black list"
    assert chosen["Functional.dropout.1"] == "not in white list"
    assert "Mint.sub.0" not in chosen


def test_calls_of_like_arguments_once(tmp_path: Path) -> None:
    chosen = reasons(tmp_path, once=True)
    assert chosen["Mint.sub.1"] == "same arguments as Mint.sub.0"
    assert "Mint.sub.2" not in chosen


def test_a_name_that_no_call_has_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "msprobe_ms"):
        reasons(tmp_path, white_list=frozenset({"Mint.subb"}))
    assert 'no call of Mint.subb, which the white list names (did you mean "Mint.sub"?)' in caplog.text
