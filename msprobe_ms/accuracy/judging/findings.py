"""What our own judgement finds of an output, and the words it tells that with."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from msprobe_ms.accuracy.judging.model import Status
from msprobe_ms.support.translation import tr, tr_count

#: Error of the worst element, what it is allowed, and the first over the second.
ULP, ALLOWED, EXCESS = "ulp", "allowed_ulp", "error_over_allowed"


class Finding(NamedTuple):
    """Our verdict of one output, with the rule that decided and the figures ``ULP``, ``ALLOWED``, ``EXCESS``."""

    status: Status
    rule: str
    message: str = ""
    figures: Mapping[str, float | None] = MappingProxyType({})


def counted(count: int, total: int) -> str:
    """Say how many elements of a tensor something is said of."""
    elements = tr_count("{count} element", "{count} elements", total)
    return tr_count("{count} of {elements} is", "{count} of {elements} are", count, elements=elements)


def first(mask: np.ndarray) -> tuple[int, ...]:
    """Return the place of the first True of a mask."""
    return place_of(int(np.argmax(mask)), mask.shape)


def place_of(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the place of an element by its number."""
    return tuple(map(int, np.unravel_index(number, shape)))


def place(where: tuple[int, ...]) -> str:
    """Write a place."""
    return f"({', '.join(map(str, where))})"


def beside(b: np.ndarray, d: np.ndarray, where: tuple[int, ...]) -> str:
    """Tell the element of both sides at a place."""
    return tr("{value} instead of {right}", value=shown(d[where]), right=shown(b[where]))


def shown(value: np.generic) -> str:
    plain = value.item()
    return f"{plain:.9g}" if isinstance(plain, (float, complex)) else str(plain)
