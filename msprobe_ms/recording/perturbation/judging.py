"""Judge what a perturbation made of a result."""

from __future__ import annotations

import math
from typing import NamedTuple

from msprobe_ms.arrays.changes import Change

#: A result is inconsistent, too, where this share of its elements changed by more than their own share of the limit.
_SHARE = 0.25
#: The largest change of what is a function of an angle.
_ANGLE_LIMIT = 0.1

#: Kinds of inconsistency.
NAN, INFINITY, ZERO, SIGN, CHANGE, SHAPE = "nan", "infinity", "zero", "sign", "change", "shape"


class Finding(NamedTuple):
    """One result that is inconsistent.

    ``kind``       what became of it
    ``size``       the largest change beside the largest element, infinite where there is no number for it
    ``condition``  by how much it is larger than the change of the arguments; None where these did not change
    """

    kind: str
    size: float
    condition: float | None
    changed: int
    elements: int


class Bounds(NamedTuple):
    """What a result may change by.

    ``limit``    relative to the largest magnitude; 0: not at all
    ``scale``    a magnitude that it is held against at least
    ``noise``    the relative change of the arguments; None where there is no such
    ``by_share``  whether many elements that changed count as well as one that changed much
    """

    limit: float
    scale: float = 0.0
    noise: float | None = None
    by_share: bool = False


def angle_limit(limit: float) -> float:
    """Return the limit of a function of an angle."""
    return max(limit, _ANGLE_LIMIT) if limit else limit


def judge(change: Change, bounds: Bounds) -> Finding | None:
    """Return what is inconsistent about a result; None where nothing is."""
    if change.nans:
        return _finding(NAN, math.inf, change, bounds)
    if change.infinities:
        return _finding(INFINITY, math.inf, change, bounds)
    size = change._replace(scale=max(change.scale, bounds.scale)).relative
    many = bounds.by_share and change.changed > _SHARE * change.elements
    if size <= bounds.limit and not many:
        return None
    return _finding(_kind(change), size, change, bounds)


def _kind(change: Change) -> str:
    if change.before == 0 or change.after == 0:
        return ZERO
    return SIGN if (change.before < 0) != (change.after < 0) else CHANGE


def _finding(kind: str, size: float, change: Change, bounds: Bounds) -> Finding:
    condition = None if bounds.noise is None else size / bounds.noise
    changed = max(change.changed, change.nans, change.infinities)
    return Finding(kind, size, condition, changed, change.elements)
