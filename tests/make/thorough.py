"""What `make test` tries a sample of, and `make thorough` whole.

A table of nets, settings or ends of a training is tried whole where a case costs milliseconds. Where each compiles a
graph or trains in a process of its own, `make test` takes the cases that between them run every line of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], tried: Callable[[Any], bool]) -> list[Any]:
    """``cases`` for `pytest.mark.parametrize`, which `make test` runs where ``tried`` says so."""
    return [case if tried(case) else thorough(case) for case in cases]


def thorough(case: Any) -> Any:
    """A case that only `make thorough` runs; a tuple is one of several parameters."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.thorough)
