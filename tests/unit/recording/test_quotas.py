"""Bounds on what a debugger records: how many entries overflow, and which calls make up a sample."""

from __future__ import annotations

from pathlib import Path

from msprobe_ms.config import load_config
from msprobe_ms.recording.calls import Call, Subject
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.selection.filters import CallFilter


class EverySecond:
    """Takes every second call of an API that was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def takes(self, base: str) -> bool:
        self.asked.append(base)
        return self.asked.count(base) % 2 == 1

    def fits(self, size: int) -> bool:
        return True


def test_only_overflow_check_comes_to_an_end(tmp_path: Path) -> None:
    quotas = Quotas.of(load_config(dump_path=tmp_path))
    assert quotas.calls is None
    assert not quotas.spent("overflow_check")
    quotas.overflow.take()
    assert quotas.spent("overflow_check") and not quotas.spent("tensor")


def test_calls_that_a_sample_leaves_out_are_recorded_neither_forward_nor_backward(tmp_path: Path) -> None:
    quota = EverySecond()
    config = load_config(dump_path=tmp_path, task="tensor").model_copy(update={"list": ("relu",)})
    chosen = CallFilter(config, quota)
    calls = [Call(Subject(base, is_module=False), number, None, 1)
             for base in ("Functional.relu", "Functional.tanh") for number in range(3)]  # fmt: skip
    for call in calls:
        chosen.call_begins(call)
    assert [(call.keep_forward, call.keep_backward) for call in calls[:3]] == [
        (True, True),
        (False, False),
        (True, True),
    ]
    assert not any(call.keep_forward or call.keep_backward for call in calls[3:])
    assert quota.asked == ["Functional.relu"] * 3  # what the configuration leaves out is no sample of anything
