"""Words for what was not compared."""

from __future__ import annotations

import doctest

import pytest

from msprobe_ms.accuracy.judging import reasons


def test_examples() -> None:
    assert doctest.testmod(reasons).failed == 0


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError(), "error: ValueError"),
        (RuntimeError("\n\n first\nsecond"), "error: RuntimeError: first"),
        (KeyError("x"), "error: KeyError: 'x'"),
    ],
)
def test_an_exception_is_told_in_one_line(error: Exception, told: str) -> None:
    assert reasons.failed(error) == told


def test_reasons_are_counted_by_their_kind() -> None:
    assert {reasons.kind(reasons.crashed(status)) for status in (-9, -11, 1)} == {"crashed"}
    assert reasons.kind(reasons.timed_out(2.5)) == "timed out"
    assert reasons.kind(reasons.NO_KERNEL) == reasons.NO_KERNEL
    assert reasons.kind("error: TypeError: f(): missing: x") == "error: TypeError"
