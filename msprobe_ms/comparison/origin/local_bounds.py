"""How far apart a single call may set its result, by what it takes in: what holds however far trainings have drifted.

Nothing is asked here of the network around the call, nor of what the call did in another step. Errors are norms of the
difference of all elements, so that they add up whatever the sizes of the values are.

* A function whose slope is c at most sets no two numbers further apart than c times what they were. So does an
  activation, of all elements; a softmax, a mean, a part of a tensor that holds each element once with c = 1; a sum with
  the root of the number of its terms, where all share one error, and what is added at several places with the root of
  their number.
* A normalisation γ x̂ + β divides errors of x as it divides x, and multiplies them by γ; an error of γ is multiplied by
  x̂, whose elements have a root mean square of 1, and one of β is added to each row. So a parameter counts by its error
  beside the result, not beside its own size: a bias next to zero may be far apart and change nothing. Rows are not all
  conditioned as the whole is: that small ones stand beside large ones (registers and tokens of an image) shows in
  gradients, which backward multiplies by the transpose of the same derivative. Its norm is no less than they show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.layer_kinds import Kind, plain_name
from msprobe_ms.comparison.measuring.deviation import holds_fill, sketch_deviation
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.conditions import condition
from msprobe_ms.comparison.origin.estimates import ESTIMATE, ESTIMATE_OF_BOTH
from msprobe_ms.comparison.origin.nodes import is_measured, is_of_all_elements, is_of_floats
from msprobe_ms.comparison.origin.propagation import MARGIN
from msprobe_ms.comparison.statistics import element_count, magnitude, root_mean_square
from msprobe_ms.comparison.terms import GOLDEN
from msprobe_ms.dump.model import Item

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.nodes import Node

#: The largest slopes of activations: of GELU, SiLU (1.10) and Mish (1.09), which no other exceeds but hard swish.
_SLOPE, _SLOPE_OF_HARD_SWISH = 1.13, 1.5
_HARD_SWISH = ("hswish", "hardswish")
#: Times of their root mean square that the largest of normal numbers may be, however many there are. Where it is
#: larger, a few rows hide how small the others are that a normalisation divides by.
_TAIL = 8.0
_AT_MOST_AS_FAR = frozenset({Kind.MEAN, Kind.PART, Kind.SOFTMAX})


#: Shape of what normalisations take in → how many times more than the whole their rows multiply an error.
SmallRows = Mapping[tuple[int, ...], float]


def small_rows(nodes: Iterable[Node]) -> SmallRows:
    """Return what the golden's gradients show of rows smaller than others: all of a shape may be those of one stream.

    A gradient shows but the rows that it reaches, in the last layers few.
    """
    found: dict[tuple[int, ...], float] = {}
    for node in nodes:
        if node.kind is not Kind.NORM or node.gradients is None or (taken := _values(node, "input")) is None:
            continue
        above, below = (_values(node.gradients, state) for state in ("input", "output"))
        size, shape = root_mean_square(taken), taken.shape
        if above and below and size and isinstance(shape, tuple) and above.shape == below.shape == shape:
            arrived = magnitude(above.norm)
            times = size * magnitude(below.norm) / arrived if arrived else 0.0
            found[shape] = max(times, found.get(shape, 0.0))
    return found


def _values(node: Node, state: str) -> Item | None:
    """The first tensor of floats of the golden's."""
    return next((row.golden for row in node.rows(state) if is_of_floats(row)), None)


def set_apart_at_most(row: Row, node: Node, small: SmallRows | None = None) -> float | None:
    """Return the deviation of a result that what its call takes in explains, beside rounding; ``small``: `small_rows`.

    Sketches estimate errors. They are linear, so that a sum and its terms are estimated alike; others each for itself
    (see ``ESTIMATE_OF_BOTH``). None where nothing tells it, or where the result is within it but for a single element.
    """
    if node.is_backward or row.state != "output" or row.golden is None:
        return None
    given = magnitude(row.golden.norm)
    taken = [each for each in node.rows("input", "parameters") if is_of_floats(each)]
    if not given or not taken or not all(map(_is_known, (row, *taken))):
        return None
    is_normal = node.kind is Kind.NORM
    error = _error_of_normalisation(row, node, taken, small or {}) if is_normal else _error_by_slopes(row, node, taken)
    if error is None:
        return None
    estimate = ESTIMATE if node.kind in (Kind.SUM, Kind.NORM) else ESTIMATE_OF_BOTH
    up_to = (1.0 if is_measured(row) else estimate) * error / given
    return up_to if _of_all_elements(row) > up_to else None


def _error_by_slopes(row: Row, node: Node, taken: Sequence[Row]) -> float | None:
    name = plain_name(node.parsed)
    if node.kind is Kind.ACTIVATION and len(taken) == 1:
        return (_SLOPE_OF_HARD_SWISH if name in _HARD_SWISH else _SLOPE) * _error(taken[0])
    if node.kind is Kind.SUM and "cum" not in name:
        return sum(math.sqrt(_times(row, each)) * _error(each) for each in taken)
    if node.kind is Kind.PART and _picks_by_indices(node):
        return None  # which may pick one element many times
    return sum(map(_error, taken)) if node.kind in _AT_MOST_AS_FAR else None


def _picks_by_indices(node: Node) -> bool:
    return any(row.is_tensor(GOLDEN) and not is_of_floats(row) for row in node.rows("input"))


def _times(row: Row, taken: Row) -> float:
    """How many terms a sum adds up, or at how many places it adds one."""
    counts = [max(1, element_count(each.golden)) for each in (row, taken) if each.golden is not None]
    return max(counts) / min(counts)


def _error_of_normalisation(row: Row, node: Node, taken: Sequence[Row], small: SmallRows) -> float | None:
    known, count = condition(node), element_count(row.golden) if row.golden is not None else 0
    values = [each for each in taken if each.golden is not None and element_count(each.golden) == count]
    vectors = [each for each in taken if each not in values]
    if known is None or len(values) != 1 or values[0].golden is None:
        return None
    size, largest = root_mean_square(values[0].golden), max(map(_largest, vectors), default=1.0)
    if not size or _largest(values[0]) > _TAIL * size:
        return None
    own = sum(math.sqrt(_times(row, each)) * _error(each) for each in vectors)
    shape = values[0].golden.shape
    of_rows = small.get(shape, 0.0) if isinstance(shape, tuple) else 0.0
    return MARGIN * (max(max(1.0, largest) * known, of_rows) * _error(values[0]) / size + own)


def _error(row: Row) -> float:
    """The norm of the difference of both sides."""
    return (row.deviation or 0.0) * (magnitude(row.golden.norm) if row.golden is not None else 0.0)


def _largest(row: Row) -> float:
    golden = row.golden
    return max(magnitude(golden.maximum), magnitude(golden.minimum)) if golden is not None else 0.0


def _is_known(row: Row) -> bool:
    """Whether it is known how far apart all elements are, beside their norm: not of what a mask has filled."""
    if row.deviation is None or not math.isfinite(row.deviation) or row.misrecorded:
        return False
    if (ends := row.extremes(GOLDEN)) is not None and holds_fill(*ends):
        return False
    return not row.deviation or is_of_all_elements(row)


def _of_all_elements(row: Row) -> float:
    """The deviation of all elements, without what Max and Min say of a single one."""
    if is_measured(row) or row.target is None or row.golden is None:
        return row.deviation or 0.0
    return sketch_deviation(row.target, row.golden) or 0.0
