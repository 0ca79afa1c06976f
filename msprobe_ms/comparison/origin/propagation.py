"""What error a healthy call gives out, given the error it takes in: the noise floor of a node.

Error goes through a computation times its condition, and each computation adds rounding of its own. Whatever a call
computes, what comes out is held to agree up to an error ratio of ``1 + gain · ratio in`` (1 is a net's worth of
rounding).
Single layers of known kind add far less than a net, and their condition follows from the statistics recorded, so that a
wrong epsilon shows: 1e-6 for 1e-5 changes a normalised tensor by 38 epsilons of float32 over its variance, the layer
itself rounds by less than 8 (measured, MindSpore against PyTorch on CPU: normalisations 0.5, linear layers 4,
activations 7; tanh alone 200). Of a systematic change every statistic tells, so Norm and Mean are held against a bound
of their own: independent roundings of n elements cancel in them to 1/sqrt(n).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

from msprobe_ms.arrays.dtypes import coarser
from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.conditions import SINGLE_LAYERS, STEPS, condition
from msprobe_ms.comparison.origin.estimates import ESTIMATE
from msprobe_ms.comparison.origin.nodes import Node, error_ratio, is_measured, is_of_all_elements
from msprobe_ms.comparison.statistics import (
    element_count,
    magnitude,
    root_mean_square,
)

#: Times that a call multiplies the error ratio it takes in when nothing is known of it: ten, as attention over sharp
#: logits was seen to; thirty, where something differed before, of which statistics may show little.
GAIN, GAIN_IN_DOUBT = 10.0, 30.0
#: Inputs beyond their tolerance by no more than this may still be drift; a node that multiplies it is to blame all the
#: same.
DRIFT = 3.0
#: Where nothing jumps, error that grew by degrees is told from this error ratio on; below it the net is only deep.
DRIFTED = 10.0
#: The least deviation of what stands beside another value than its counterpart: a layer computed in bfloat16 is 0.01
#: apart at most.
BESIDE_ANOTHER = 0.05
#: The error ratio that says nothing where many layers were equal to the bit: a kernel that adds in another order each
#: run, or another kernel, which rounds each element of a narrow float another way: by one rounding at most. Of narrow
#: floats that a function of single elements sets apart systematically much less.
_BITWISE_FLOOR, _SYSTEMATIC_FLOOR = 1 / 8, 1 / 64
#: Times that Norm and Mean may be further apart than independent roundings set them: 2.4 seen with other kernels, 9 of
#: another approximation of GELU in float16, with 65536 elements.
_SYSTEMATIC = 5.0
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
#: Times of what was seen anywhere before that an output must show for its layer to stand out.
_STANDING_OUT = 1.5
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
    floor = _BITWISE_FLOOR
    for row in node.pair.rows:
        roundings = _roundings_held_to(row) if row.deviation else None
        if roundings is not None and roundings < _FINE:
            if same_framework and node.kind is Kind.ACTIVATION and _is_systematic(row):
                return _SYSTEMATIC_FLOOR
            floor = max(floor, 1 / roundings)
    return floor


def _is_systematic(row: Row) -> bool:
    """Whether Norm and Mean are further apart than roundings of elements, each for itself, set them.

    Errors of a part d of each element x change the Norm by a part d · ‖x²‖ / ‖x‖² ≤ d · max |x| / ‖x‖, and the Mean by
    less.
    """
    golden, deviation = row.golden, row.deviation or 0.0
    if golden is None or not magnitude(golden.norm) or not math.isfinite(deviation):
        return False
    largest = max(magnitude(golden.maximum), magnitude(golden.minimum))
    return whole_difference(row) > _SYSTEMATIC * deviation * largest / magnitude(golden.norm)


def may_exceed(node: Node) -> bool:
    """Return whether this is a single layer whose results differ by as much as such a layer rounds off at all."""
    return node.ratio_out >= _OWN_WHOLE and node.kind in SINGLE_LAYERS


def single_layer_excess(node: Node, seen: float, *, updated: bool = False) -> tuple[Row, float] | None:
    """Find an output further off than this single layer explains, and the deviation it does explain; None if none is.

    ``node``: one that ``may_exceed``. ``seen``: the largest error ratio of anything computed before. ``updated``:
    whether parameters were.
    """
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


def set_apart_by_waves(row: Row, places: float) -> float:
    """Return how far apart sines of unknown arguments may be by rounding: of ``places``, or of a time in steps."""
    return max(places, STEPS) * _OWN * (row.held_to or 0.0)


def set_apart_by_inputs(row: Row, node: Node, taken: float) -> float:
    """Return how far apart what a call takes in, ``taken`` apart, may set a result: its tolerance at least."""
    return max(row.held_to or 0.0, taken * (condition(node) or 1.0))


def _is_fine(row: Row) -> bool:
    """Whether these are tensors of floats whose tolerance is many roundings, and they are so far apart at all."""
    roundings = _roundings_held_to(row)
    return roundings is not None and roundings >= _FINE and math.isfinite(row.deviation or 0.0)


def _roundings_held_to(row: Row) -> float | None:
    """The roundings, of the coarser one, that the tolerance of two tensors of floats holds; None of all else."""
    target, golden, tolerance = row.target, row.golden, row.held_to
    if golden is None or golden.kind != "tensor" or target is None or tolerance is None:
        return None
    epsilon = coarser(target.dtype, golden.dtype).epsilon
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
