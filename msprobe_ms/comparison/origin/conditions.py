"""How much a call multiplies the error that it takes in: its condition, which follows from the statistics recorded.

* linear: y = Wx sums K terms, and rounds by a part of sqrt(K) · rms(W) · rms(x) (Higham, Accuracy and Stability of
  Numerical Algorithms, 2nd ed., §3.1 and §2.8), which is more than a part of y where the terms cancel
* normalisation: subtracts the mean, and so passes errors times rms(x) / deviation(x)
* activation: |f'| is 1.2 at most, so errors grow where f is smaller than x, and those of gradients where it stops most
* sum, mean: terms that cancel leave the rounding of the terms
* part: may hold the whole error of what it is a part of
* power, root, logarithm, quotient: error is multiplied by the steepest slope (see ``steep_functions``)
* sine, exponential, softmax: the absolute error of the argument is the relative one of the result: errors grow by the
  argument, of a softmax by the root mean square of all. A module that makes waves of a time between 0 and 1 counts it
  in thousandths first (``scale=1000`` of diffusers' ``Timesteps``)
"""

from __future__ import annotations

import math

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.origin.estimates import ESTIMATE
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.steep_functions import condition_of_steep_function
from msprobe_ms.comparison.statistics import (
    element_count,
    least_sum_of_squares,
    magnitude,
    root_mean_square,
    square,
)
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import BACKWARD, FORWARD

#: Arguments beyond which an exponential of float32 is infinite or nothing.
_EXPONENT = 104.0
#: Steps of a diffusion that a time between 0 and 1 is a part of, by which layers of waves multiply it.
STEPS = 1000.0
#: Values of a channel from which on its spread is well known; how seldom one of several channels may have a smaller
#: spread than is expected; the smallest epsilon that batch normalisations of common frameworks add to a variance.
_MANY_VALUES, _SELDOM, _LEAST_EPSILON = 8, 0.01, 1e-5
SINGLE_LAYERS = frozenset({Kind.LINEAR, Kind.NORM, Kind.ACTIVATION})
#: Calls of which it is known how large their result is beside what they take in, but not how they round.
_PASS_ON = frozenset({Kind.SUM, Kind.MEAN, Kind.PART, Kind.CHANNEL_NORM, Kind.BATCH_NORM, Kind.SOFTMAX, Kind.STEEP})


def condition(node: Node) -> float | None:
    """How much larger than its result what a single layer rounds or subtracts is, 1 at least; None: not known."""
    return node.known("condition", _condition)


def condition_of_shared_error(node: Node) -> float | None:
    """The same for error that all terms of a sum share, as that of updates: it adds up, where rounding cancels."""
    if node.kind is not Kind.SUM or condition(node) is None:
        return condition(node)
    return _condition_of_sum(_tensors(node, "input"), _tensors(node, "output")[0], shared=True)


def _condition(node: Node) -> float | None:
    kind = node.kind
    if node.parsed is None:
        return None
    if node.parsed.direction == BACKWARD and kind is Kind.ACTIVATION:
        return None if any(child.is_module for child in node.children) else _of_kept_gradient(node)
    if node.parsed.direction != FORWARD or node.children:
        return None
    if kind in (Kind.PERIODIC, Kind.EXPONENTIAL):
        return _largest_argument(node, _EXPONENT if kind is Kind.EXPONENTIAL else math.inf)
    if kind not in SINGLE_LAYERS and kind not in _PASS_ON:
        return None
    inputs, outputs = _tensors(node, "input"), _tensors(node, "output")
    if not inputs or not outputs:
        return None
    if kind is Kind.STEEP:
        return None if node.is_module else condition_of_steep_function(node.parsed, inputs, _numbers(node), outputs[0])
    sizes = [root_mean_square(item) for item in inputs]
    given = root_mean_square(outputs[0])
    if sizes[0] is None or not given:
        return None
    if kind is Kind.SOFTMAX:  # beside what a mask has filled, the others' size is not known
        return max(1.0, sizes[0]) if sizes[0] <= _EXPONENT else None
    if kind is Kind.PART:
        norms = [size * math.sqrt(element_count(item)) for item in outputs if (size := root_mean_square(item))]
        return max(1.0, sizes[0] * math.sqrt(element_count(inputs[0])) / min(norms, default=math.inf))
    if kind is Kind.MEAN:
        return max(1.0, sizes[0] / given)
    if kind is Kind.SUM:
        return _condition_of_sum(inputs, outputs[0], shared=False)
    if kind in (Kind.NORM, Kind.CHANNEL_NORM, Kind.BATCH_NORM):
        spread = square(sizes[0]) - square(magnitude(inputs[0].mean))
        if not spread > 0:
            return None
        return sizes[0] / math.sqrt(spread) * (_of_few_values(inputs[0], spread) if kind is Kind.BATCH_NORM else 1.0)
    if kind is Kind.ACTIVATION:
        return max(1.0, sizes[0] / given)
    factors = [*_tensors(node, "parameters"), *inputs[1:]]
    weight = next((item for item in factors if isinstance(item.shape, tuple) and len(item.shape) > 1), None)
    size = root_mean_square(weight) if weight is not None else None
    if weight is None or not size:
        return None
    assert isinstance(weight.shape, tuple)
    terms = element_count(weight) / (weight.shape[0] if weight.state == "parameters" else weight.shape[-1])
    # Each of K roundings is a part of a partial sum; blocks of kernels keep these short.
    roundings = 1 + math.sqrt(terms) / 64
    return max(1.0, sizes[0] * size * math.sqrt(terms) / given) * roundings


def _of_kept_gradient(node: Node) -> float | None:
    """What a ReLU stops of a gradient may be far larger than what it lets pass, and leave its rounding in that."""
    taken, given = ([root_mean_square(item) for item in _tensors(node, state)] for state in ("input", "output"))
    return max(1.0, taken[0] / given[0]) if taken and given and taken[0] and given[0] else None


def _of_few_values(taken: Item, spread: float) -> float:
    """How much more a batch normalisation multiplies error where it has few values of a channel to tell its spread by.

    Of n normal values the estimated variance has a chi-squared distribution of k = n - 1 degrees of freedom, so that
    1 / variance is n / (k - 2) in the mean. The smallest of C channels adds its own part, which an epsilon bounds.
    Error in a few elements is what sketches estimate worst.
    """
    shape = taken.shape if isinstance(taken.shape, tuple) else ()
    if len(shape) < 2 or not shape[1]:
        return 1.0
    channels, values = shape[1], element_count(taken) / shape[1]
    freedom = values - 1
    if not 1 <= freedom <= _MANY_VALUES:
        return 1.0
    smallest = least_sum_of_squares(freedom, _SELDOM / channels) / values
    in_the_mean = values / (freedom - 2) if freedom > 3 else values
    grown = math.sqrt(in_the_mean + min(1 / smallest, spread / _LEAST_EPSILON) / channels)
    return 1 + ESTIMATE * max(0.0, grown - 1)


def _condition_of_sum(inputs: list[Item], given: Item, *, shared: bool) -> float:
    """Errors of n terms, each for itself, leave sqrt(n) times one of them; what they share n times."""
    terms = max(1.0, element_count(inputs[0]) / max(1, element_count(given)))
    squares = sum(square(size) for item in inputs if (size := root_mean_square(item)) is not None)
    grown = terms if shared else math.sqrt(terms)
    return max(1.0, grown * math.sqrt(squares) / (root_mean_square(given) or math.inf))


def condition_along(weight: Item, taken: Item, given: Item) -> float | None:
    """How much larger than its result the products of a linear layer are where all add up; None: not known.

    So are those of what it takes in with an update of its weight, which is made of what it took in. For a part p of the
    weight, the result changes by p · ‖W‖ · ‖x‖ at most (Cauchy and Schwarz), for each of its rows.
    """
    sizes = [root_mean_square(item) for item in (weight, taken, given)]
    if not isinstance(weight.shape, tuple) or not isinstance(taken.shape, tuple) or not all(sizes):
        return None
    of_weight, of_taken, of_given = (size or 0.0 for size in sizes)
    is_product = len(weight.shape) == 2 and taken.shape[-1] in weight.shape
    terms = taken.shape[-1] if is_product else element_count(weight) / weight.shape[0]
    return max(1.0, terms * of_weight * of_taken / of_given)


def _largest_argument(node: Node, at_most: float) -> float | None:
    """The largest magnitude of what a function of one argument takes in, whole numbers included; None: not known."""
    items = [row.golden for row in node.rows("input") if row.golden is not None]
    ends = [magnitude(end) for item in items for end in (item.maximum, item.minimum)]
    largest = max((end for end in ends if end <= at_most), default=0.0)
    if node.is_module and items and all(map(_is_of_fractions, items)):
        largest *= STEPS
    return max(1.0, largest) if largest else None


def _numbers(node: Node) -> list[float]:
    """The plain numbers that a function is given after its first argument, or tensors of one number."""
    items = [row.golden for row in node.rows("input") if row.golden is not None and row.golden.path != ("0",)]
    return [
        float(item.maximum)
        for item in items
        if isinstance(item.maximum, (int, float)) and (item.kind == "value" or element_count(item) == 1)
    ]


def _is_of_fractions(item: Item) -> bool:
    """Whether it has a number for each row that is no whole one."""
    is_number = item.kind == "tensor" and isinstance(item.shape, tuple) and len(item.shape) <= 1
    return is_number and bool(parse_dtype(item.dtype).epsilon) and not magnitude(item.maximum).is_integer()


def _tensors(node: Node, state: str) -> list[Item]:
    """The golden's tensors of floats, in the order of its arguments: rows of a group stand in the target's."""
    items = [row.golden for row in node.rows(state)]
    items.sort(key=lambda item: () if item is None else tuple(part.zfill(4) for part in item.path))
    return [item for item in items if item is not None and item.kind == "tensor" and parse_dtype(item.dtype).epsilon]
