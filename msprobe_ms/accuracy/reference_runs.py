"""Runs of a reference, on a call's arguments and on these moved within their last place; results judged beside them.

How far a correct result moves with its arguments is the error that no implementation which rounds can be blamed for
(the backward error of N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.5). They are
moved at random three times, as of one move a result may happen to hardly notice, and once the other way: a kink, such
as that of a clamp, is met from one side or the other. Of a few random moves the largest is below the largest there is
by about a half, so it counts twice.

Measured on 450 gradients of PyTorch's normalizations that all but vanish, as those of ‖norm(x)‖² do, all of them right:
two opposite moves, which of what is linear are one, make 134 of them errors and 272 warnings; three moves doubled none
and 7. On all APIs of MindSpore (``python -m torture.api_sweep.as_dump``, 3,378 results and gradients) the same 27 are
errors either way, with 47 warnings and 31.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from msprobe_ms.accuracy.calls import argument_leaves, map_arguments
from msprobe_ms.accuracy.data import generator
from msprobe_ms.accuracy.judging.judge import judge_outputs
from msprobe_ms.accuracy.judging.model import ApiKey, Judged
from msprobe_ms.accuracy.judging.thresholds import Thresholds
from msprobe_ms.accuracy.precision import moved, perturbed, raise_leaf
from msprobe_ms.arrays.typed import TypedArray, magnitude
from msprobe_ms.frameworks.api_calls import Arguments, Value

#: Each move: its number, which the random numbers are of, and its sign.
_MOVES = ((0, 1), (0, -1), (1, 1), (2, 1))


class Data(NamedTuple):
    """Values of the arguments and of the gradients with respect to the results; None: no backward."""

    arguments: Arguments
    gradients: Sequence[Value] | None


def nearby(data: Data, seed: int, call: str) -> Iterator[Data]:
    """Yield the data of a call moved within their last place, in float64."""
    for number, sign in _MOVES:
        words = f"{call} {number}" if number else call
        moved_all = perturbed(data.arguments, seed, words, sign)
        arguments = map_arguments(moved_all, lambda leaf: raise_leaf(leaf, "float64"))
        yield Data(arguments, _moved_gradients(data.gradients, seed, words, sign))


def _moved_gradients(gradients: Sequence[Value] | None, seed: int, call: str, sign: int) -> tuple[Value, ...] | None:
    if gradients is None:
        return None
    return tuple(
        TypedArray("float64", moved(gradient, generator(seed, call, "perturbed gradient", str(number)), sign))
        if isinstance(gradient, TypedArray)
        else None
        for number, gradient in enumerate(gradients)
    )


def movement(one: Value, others: Sequence[Value]) -> np.ndarray | None:
    """Return how far each element of a result may move: twice as far as in the other runs, and infinitely where one is
    not finite and the other another. None for what is no tensor of floats."""
    if not isinstance(one, TypedArray) or one.values.dtype.kind not in "fc":
        return None
    largest = np.zeros(one.values.shape)
    for other in others:
        if isinstance(other, TypedArray) and other.values.shape == one.values.shape:
            with np.errstate(all="ignore"):
                difference = np.abs(other.values - one.values)
            same = (other.values == one.values) | (np.isnan(other.values) & np.isnan(one.values))
            largest = np.maximum(largest, np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference)))
    return 2 * largest


def judge_beside(
    runs: Sequence[Sequence[Value] | None],
    device: Sequence[Value],
    data: Data,
    thresholds: Thresholds,
    *,
    api: ApiKey,
    entry: str,
    **further: Any,
) -> tuple[Judged, ...]:
    """Judge results, or gradients, beside those of a reference.

    ``runs``     of the reference: on the data, and on some nearby; of these None is one that could not be run
    ``further``  as ``judge_outputs`` takes it
    """
    first, *near = runs
    assert first is not None
    tensors = [leaf for leaf in argument_leaves(data.arguments) if isinstance(leaf, TypedArray)]
    incoming = [leaf for leaf in data.gradients or () if isinstance(leaf, TypedArray)]
    largest = max(map(magnitude, tensors), default=0.0)
    if api.is_backward:  # gradients are linear in what comes in
        largest = max(1.0, largest) * max(map(magnitude, incoming), default=0.0)
    return judge_outputs(
        api,
        entry,
        first,
        device,
        thresholds,
        elements=max((tensor.values.size for tensor in (*tensors, *incoming)), default=None),
        magnitude=largest,
        expected=[movement(bench, [_at(other, number) for other in near]) for number, bench in enumerate(first)],
        **further,
    )


def _at(values: Sequence[Value] | None, number: int) -> Value:
    return None if values is None or number >= len(values) else values[number]
