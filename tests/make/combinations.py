"""Combinations of what tests are parametrised by, where not every triple shows something new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def pairwise(first: Sequence[Any], second: Sequence[Any], third: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    """Every pair of any two of the three, in as few triples as ``first`` and ``second`` have pairs.

    ``third`` may not be longer than either of the others.
    """
    assert len(third) <= min(len(first), len(second))
    return [
        (one, other, third[(row + column) % len(third)])
        for row, one in enumerate(first)
        for column, other in enumerate(second)
    ]
