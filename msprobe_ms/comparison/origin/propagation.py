"""What error a healthy call gives out, given the error it takes in: the noise floor of a node.

Error goes through a computation times its condition, and each computation adds rounding of its own. Whatever a call
computes, what comes out is held to agree up to an error ratio of ``1 + gain · ratio in`` (1 is a net's worth of
rounding).
Single layers of known kind add far less than a net, and their condition follows from the statistics recorded, so that a
wrong epsilon shows: 1e-6 for 1e-5 changes a normalised tensor by 38 epsilons of float32 over its variance, the layer
itself rounds by less than 8 (measured, MindSpore against PyTorch on CPU: normalisations 0.5, linear layers 4,
activations 7; tanh alone 200). Of a systematic change every statistic tells, so Norm and Mean are held against a bound
of their own: independent roundings of n elements cancel in them to 1/sqrt(n).

* linear: y = Wx sums K terms, and rounds by a part of sqrt(K) · rms(W) · rms(x) (Higham, Accuracy and Stability of
  Numerical Algorithms, 2nd ed., §3.1 and §2.8), which is more than a part of y where the terms cancel
* normalisation: subtracts the mean, and so passes errors times rms(x) / deviation(x)
* activation: |f'| is 1.2 at most, so errors grow where f is smaller than x
* sum, mean: terms that cancel leave the rounding of the terms
* part: may hold the whole error of what it is a part of
* sine, exponential, softmax: the absolute error of the argument is the relative one of the result: errors grow by the
  argument, of a softmax by the root mean square of all. A module that makes waves of a time between 0 and 1 counts it
  in thousandths first (``scale=1000`` of diffusers' ``Timesteps``)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.nodes import Node, error_ratio, is_measured, is_of_all_elements
from msprobe_ms.comparison.statistics import (
    element_count,
    least_sum_of_squares,
    magnitude,
    root_mean_square,
    square,
)
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import FORWARD

#: Times that a call multiplies the error ratio it takes in when nothing is known of it: ten, as attention over sharp
#: logits was seen to; thirty, where something differed before, of which statistics may show little.
GAIN, GAIN_IN_DOUBT = 10.0, 30.0
#: Inputs beyond their tolerance by no more than this may still be drift; a node that multiplies it is to blame all the
#: same.
DRIFT = 3.0
#: Where nothing jumps, error that grew by degrees is told from this error ratio on; below it the net is only deep.
DRIFTED = 10.0
#: The error ratio that says nothing where many layers were equal to the bit: a kernel that adds in another order each
#: run, which moves few of the elements of a narrow float at all. Other kernels move any of them: what two frameworks
#: compute is equal as long as narrow floats hide that.
_BITWISE_FLOOR, _NARROW_BITWISE_FLOOR = 1 / 8, 1 / 64
#: Error ratios of a gradient up to which it may be noise, and the part of single elements' noise that is let through.
_NOISY, _ELEMENTS = 20.0, 0.3
#: Of a layer with coarse kernels, the error ratio that its own approximation may add (2.4e-5 seen in float32, 2
#: tolerances).
_COARSE = 4.0
#: What a single layer adds: a twelfth of the tolerance, 8 roundings of float32; half of it to Norm and Mean.
_OWN, _OWN_WHOLE = 1 / 12, 1 / 24
#: Growth of error in a single layer beyond its condition: rows and channels are not all conditioned as the whole is,
#: and the few statistics of what comes in may by chance show less than is there.
MARGIN, _MARGIN_WHOLE = 3.0, 5.0
#: Times that a sketch may estimate a deviation larger, or smaller, than it is.
ESTIMATE = 2.0
#: Times that of two deviations in one proportion one may be estimated larger than by the other: both are of sixteen
#: numbers, so that the ratio of their squares has an F distribution. Beyond 2 is one in a hundred, which any network
#: has; beyond 4 one in a million.
ESTIMATE_OF_BOTH = 4.0
#: Times of what was seen anywhere before that an output must show for its layer to stand out.
_STANDING_OUT = 1.5
#: Arguments beyond which an exponential of float32 is infinite or nothing.
_EXPONENT = 104.0
#: Steps of a diffusion that a time between 0 and 1 is a part of, by which layers of waves multiply it.
_STEPS = 1000.0
#: Values of a channel from which on its spread is well known; how seldom one of several channels may have a smaller
#: spread than is expected; the smallest epsilon that batch normalisations of common frameworks add to a variance.
_MANY_VALUES, _SELDOM, _LEAST_EPSILON = 8, 0.01, 1e-5
_SINGLE_LAYERS = frozenset({Kind.LINEAR, Kind.NORM, Kind.ACTIVATION})
#: Calls of which it is known how large their result is beside what they take in, but not how they round.
_PASS_ON = frozenset({Kind.SUM, Kind.MEAN, Kind.PART, Kind.CHANNEL_NORM, Kind.BATCH_NORM, Kind.SOFTMAX})
#: Roundings that a tolerance must hold for a part of it to be more than a rounding: narrow floats have 4.
_FINE = 24.0


def explained_ratio(node: Node, negligible: float, *, doubtful: bool) -> float:
    """The error ratio up to which what ``node`` gives out is explained by what it takes in.

    ``negligible``: the error ratio that says nothing in these dumps; ``doubtful``: see GAIN.
    """
    own = _COARSE if node.kind is Kind.COARSE else negligible
    gain = GAIN_IN_DOUBT if doubtful else GAIN
    if negligible == 1 and node.ratio_out > own and (known := condition(node)) is not None:
        own, gain = max(own, known * _OWN), max(gain, known)
    taken = node.ratio_taken
    if node.is_parameter_gradient and node.ratio_out <= _NOISY:
        # The sums that gradients are show the noise of single elements, which the few statistics of many hardly do.
        taken = max(taken, _ELEMENTS * node.known("elements before", _elements_before))
    return own + gain * taken


def first_explained_ratio(node: Node, taken: float) -> float:
    """The error ratio up to which inputs of the error ratio ``taken`` explain what a node gives out, before updates."""
    known = condition(node) or 1.0
    return max(1.0, known * _OWN) + max(GAIN, known) * taken


def _elements_before(node: Node) -> float:
    """The error ratio of single elements of what a parameter gradient is computed from."""
    rows = (row for each in (node, *node.context) for row in each.pair.rows if row.state != "parameters_grad")
    return max(map(elements, rows), default=0.0)


def drift_after(nodes: Iterable[Node]) -> float:
    """The largest error ratio that values may drift to after forward calls whose condition makes error grow.

    One call of large condition (a sine of large arguments, a difference of what is nearly equal) is no drift.
    """
    grown = (node.ratio_out for node in nodes if _grows_by_condition(node))
    return DRIFTED * max((1.0, *grown))


def _grows_by_condition(node: Node) -> bool:
    """Whether it gives out far more error than it takes in, and its condition explains that."""
    taken = max(_OWN, node.ratio_taken)
    if not max(1.0, DRIFT * taken) < node.ratio_out < math.inf:
        return False
    known = condition(node)
    return known is not None and node.ratio_out <= known * taken


def bitwise_floor(node: Node, *, same_framework: bool) -> float:
    """The error ratio that says nothing of a value of this node, while all was equal to the bit before."""
    narrow = same_framework and any(_is_narrow(row) for row in node.pair.rows if row.deviation)
    return _NARROW_BITWISE_FLOOR if narrow else _BITWISE_FLOOR


def single_layer_excess(node: Node, seen: float, *, updated: bool = False) -> tuple[Row, float] | None:
    """Find an output further off than this single layer explains, and the deviation it does explain; None if none is.

    ``seen``: the largest error ratio of anything computed before. ``updated``: whether parameters were.
    """
    if node.ratio_out < _OWN_WHOLE or node.kind not in _SINGLE_LAYERS:
        return None
    if node.ratio_out < _STANDING_OUT * seen and not any(map(is_of_all_elements, node.pair.rows)):
        return None
    if (known := condition(node)) is None:
        return None
    taken = [row for row in node.pair.rows if row.deviation is not None and row.state in ("input", "parameters")]
    fine = [row for row in taken if _is_fine(row)]
    whole_in = max((whole_difference(row) / row.held_to for row in fine if row.held_to), default=0.0)
    elements_in = max(map(elements, fine), default=0.0)
    for row in node.rows("output"):
        if not _is_fine(row) or row.golden is None or row.held_to is None or row.misrecorded:
            continue
        if is_of_all_elements(row):
            share = 1.0 if is_measured(row) else ESTIMATE
            explained = share * max(known * (_OWN + MARGIN * node.ratio_taken), _STANDING_OUT * seen)
            if error_ratio(row) > explained:
                return row, explained * row.held_to
        # What updates leave in the elements of a parameter cancels in its statistics, and less so in those of a result,
        # where some inputs weigh them.
        if updated and any(each.deviation for each in _weights(node)):
            continue
        hidden = elements_in / math.sqrt(max(1, element_count(row.golden)))
        explained = known * (_OWN_WHOLE + _MARGIN_WHOLE * whole_in + MARGIN * hidden)
        if not is_of_all_elements(row):
            explained = max(explained, _STANDING_OUT * seen)
        if whole_difference(row) > explained * row.held_to:
            return row, explained * row.held_to
    return None


def _weights(node: Node) -> Iterator[Row]:
    """The parameters of a module; of a function what it takes in beside the first, which may be parameters."""
    return node.rows("parameters") if node.is_module else islice(node.rows("input"), 1, None)


def condition(node: Node) -> float | None:
    """How much larger than its result what a single layer rounds or subtracts is, 1 at least; None: not known."""
    return node.known("condition", _condition)


def condition_of_shared_error(node: Node) -> float | None:
    """The same for error that all terms of a sum share, as that of updates: it adds up, where rounding cancels."""
    if node.kind is not Kind.SUM or condition(node) is None:
        return condition(node)
    return _condition_of_sum(_tensors(node, "input"), _tensors(node, "output")[0], shared=True)


def set_apart_by_waves(row: Row, places: float) -> float:
    """Return how far apart sines of unknown arguments may be by rounding: of ``places``, or of a time in steps."""
    return max(places, _STEPS) * _OWN * (row.held_to or 0.0)


def set_apart_by_inputs(row: Row, node: Node, taken: float) -> float:
    """Return how far apart what a call takes in, ``taken`` apart, may set a result: its tolerance at least."""
    return max(row.held_to or 0.0, taken * (condition(node) or 1.0))


def _condition(node: Node) -> float | None:
    kind = node.kind
    if node.parsed is None or node.parsed.direction != FORWARD or node.children:
        return None
    if kind in (Kind.PERIODIC, Kind.EXPONENTIAL):
        return _largest_argument(node, _EXPONENT if kind is Kind.EXPONENTIAL else math.inf)
    if kind not in _SINGLE_LAYERS and kind not in _PASS_ON:
        return None
    inputs, outputs = _tensors(node, "input"), _tensors(node, "output")
    if not inputs or not outputs:
        return None
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
        largest *= _STEPS
    return max(1.0, largest) if largest else None


def _is_of_fractions(item: Item) -> bool:
    """Whether it has a number for each row that is no whole one."""
    is_number = item.kind == "tensor" and isinstance(item.shape, tuple) and len(item.shape) <= 1
    return is_number and bool(parse_dtype(item.dtype).epsilon) and not magnitude(item.maximum).is_integer()


def _tensors(node: Node, state: str) -> list[Item]:
    """The golden's tensors of floats, in the order of its arguments: rows of a group stand in the target's."""
    items = [row.golden for row in node.rows(state)]
    items.sort(key=lambda item: () if item is None else tuple(part.zfill(4) for part in item.path))
    return [item for item in items if item is not None and item.kind == "tensor" and parse_dtype(item.dtype).epsilon]


def _is_fine(row: Row) -> bool:
    """Whether these are tensors of floats whose tolerance is many roundings, and they are so far apart at all."""
    roundings = _roundings_held_to(row)
    return roundings is not None and roundings >= _FINE and math.isfinite(row.deviation or 0.0)


def _is_narrow(row: Row) -> bool:
    """Whether these are tensors of floats whose tolerance is few roundings."""
    roundings = _roundings_held_to(row)
    return roundings is not None and roundings < _FINE


def _roundings_held_to(row: Row) -> float | None:
    """The roundings that the tolerance of two tensors of floats holds; None of all else."""
    golden, tolerance = row.golden, row.held_to
    if golden is None or golden.kind != "tensor" or row.target is None or tolerance is None:
        return None
    epsilon = parse_dtype(golden.dtype).epsilon
    return tolerance / epsilon if epsilon > 0 else None


def whole_difference(row: Row) -> float:
    """Return the larger of the relative differences of Norm, and of Mean in root mean squares."""
    target, golden = row.target, row.golden
    assert target is not None and golden is not None
    norm = magnitude(golden.norm)
    size = root_mean_square(golden)
    if not norm or not size or not isinstance(target.norm, float) or not isinstance(target.mean, float):
        return 0.0
    return max(abs(target.norm - norm) / norm, abs(target.mean - float(golden.mean or 0.0)) / size)


def elements(row: Row) -> float:
    """The error ratio of single elements: of all where they were compared, else of the two that Max and Min show."""
    target, golden = row.target, row.golden
    if is_of_all_elements(row) or target is None or golden is None:
        return error_ratio(row)
    size = root_mean_square(golden)
    if not size or not row.held_to:
        return error_ratio(row)
    ends = ((target.maximum, golden.maximum), (target.minimum, golden.minimum))
    gaps = [abs(mine - other) for mine, other in ends if isinstance(mine, float) and isinstance(other, float)]
    return max(error_ratio(row), max(gaps, default=0.0) / size / row.held_to)
