"""Gradients next to nothing, held against a size that is not theirs (`GradientFloors`): what their own size tells.

The deviation of one is an absolute error: a call that gives out larger gradients than it takes in multiplies it with
them, as a product with a matrix does. Relative errors it multiplies by its condition, as anywhere.
"""

from __future__ import annotations

from msprobe_ms.comparison.measuring.deviation import statistic_deviation
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.estimates import ESTIMATE
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.propagation import GAIN

#: The relative error of a gradient up to which it has digits that noise has left, by which more noise is told.
_LEGIBLE = 0.03


def explained_in_proportion(row: Row, node: Node) -> float:
    """Return the deviation of a gradient that relative errors of the gradients taken in explain; 0 where none does."""
    if not node.is_backward or row.deviation is None:
        return 0.0
    taken, given = node.known("relative errors taken in", _largest_taken), _relative(row)
    return row.deviation * GAIN * taken / given if 0 < taken <= _LEGIBLE and given > 0 else 0.0


def _largest_taken(node: Node) -> float:
    return max(map(_relative, node.rows("input")), default=0.0)


def is_legible_beside_noise(row: Row) -> bool:
    """Whether a gradient is held against a size well above its own, beside which it is far apart by noise alone."""
    return ESTIMATE * (row.deviation or 0.0) < _relative(row) <= _LEGIBLE


def _relative(row: Row) -> float:
    """The deviation of a tensor beside its own size, whatever it is held against."""
    if row.target is None or row.golden is None or row.misrecorded or not row.deviation:
        return 0.0
    return statistic_deviation(row.target, row.golden) or 0.0
