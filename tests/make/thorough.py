"""What `make test` tries a sample of, and `make thorough` whole.

A table of nets, settings or ends of a training is tried whole where a case costs milliseconds. Where each compiles a
graph or trains in a process of its own, `make test` takes the cases that between them run every line of the package:
those that a table names itself, but for those that were measured to run no line that others do not run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest


def sampled(cases: Iterable[Any], tried: Callable[[Any], bool]) -> list[Any]:
    """``cases`` for `pytest.mark.parametrize`, which `make test` runs where ``tried`` says so."""
    return [case if tried(case) else thorough(case) for case in cases]


def thorough(case: Any) -> Any:
    """A case that only `make thorough` runs; a tuple is one of several parameters."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.thorough)


def measured_cases() -> frozenset[str]:
    """Node ids of the cases that tools/sample_tests.py found to be costly, and to run no line that others do not."""
    if "SAMPLE_TESTS" in os.environ:  # they are being chosen anew
        return frozenset()
    text = Path(__file__).parents[1].joinpath("thorough.txt").read_text("utf-8")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))
