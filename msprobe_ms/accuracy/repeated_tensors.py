"""One tensor given to a call in several places: ``x * x``, ``attention(x, x, x)``.

A dump has the whole of its gradient at each of these places, a reference the part that comes by way of each. Dumps do
not say which arguments are one tensor: they are taken for it where their values and recorded gradients are equal, and
the sum of the parts is nearer to what was recorded than the parts are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from msprobe_ms.accuracy.calls import argument_leaves
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments, Value

#: Gradients of one run, one for each floating-point tensor among the arguments; None: of a run that was not possible.
Gradients: TypeAlias = Sequence[Value] | None


def beside_whole_gradients(
    arguments: Arguments, runs: Sequence[Gradients], recorded: Sequence[Value]
) -> tuple[list[Gradients], list[Value]]:
    """Return the gradients of a reference's runs and the recorded ones such that they can be held against each other.

    Of one tensor in several places, the parts of the first run but the largest one of each element are taken from the
    whole, recorded or a sum: two parts may cancel, and rounding is of the size of the parts.
    """
    found, there = [None if run is None else list(run) for run in runs], list(recorded)
    first = found[0]
    if first is None:
        return list(runs), there
    for places in _repeated(arguments, recorded):
        parts = _values(first, places)
        whole = recorded[places[0]]
        if parts is None or not _is_sum(whole.values, parts):
            continue
        largest = np.take_along_axis(parts, np.argmax(np.abs(parts), axis=0)[None], axis=0)[0]
        with np.errstate(all="ignore"):
            others = parts.sum(axis=0) - largest
        others = np.where(np.isfinite(others), others, 0.0)
        for run in found:
            if run is not None and (parts := _values(run, places)) is not None:
                _put(run, places, TypedArray(first[places[0]].dtype, parts.sum(axis=0) - others))
        with np.errstate(all="ignore"):
            left = (whole.values - others).astype(whole.values.dtype)
        _put(there, places, TypedArray(whole.dtype, left))
    return list(found), there


def whole_gradients(arguments: Arguments, gradients: Sequence[Value], recorded: Sequence[Value]) -> list[Value]:
    """Return the gradients of a run as a dump has them: the whole at each place of one tensor."""
    found = list(gradients)
    for places in _repeated(arguments, recorded):
        parts = _values(gradients, places)
        if parts is not None and _is_sum(recorded[places[0]].values, parts):
            _put(found, places, TypedArray(gradients[places[0]].dtype, parts.sum(axis=0)))
    return found


def _repeated(arguments: Arguments, recorded: Sequence[Value]) -> Iterator[list[int]]:
    """Yield the places of what may be one tensor, by their numbers among the floating-point tensors."""
    tensors = [leaf for leaf in argument_leaves(arguments) if isinstance(leaf, TypedArray)]
    floats = [tensor for tensor in tensors if parse_dtype(tensor.dtype).kind == "float"]
    places: dict[object, list[int]] = defaultdict(list)
    for number, (tensor, gradient) in enumerate(zip(floats, recorded, strict=False)):
        if isinstance(gradient, TypedArray) and gradient.values.shape == tensor.values.shape:
            places[_content(tensor), _content(gradient)].append(number)
    yield from (each for each in places.values() if len(each) > 1)


def _content(tensor: TypedArray) -> object:
    return tensor.dtype, tensor.values.shape, tensor.values.tobytes()


def _values(run: Sequence[Value], places: Sequence[int]) -> np.ndarray | None:
    """The parts of a run, along a first axis; None where it has not all of them."""
    parts = [run[place] if place < len(run) else None for place in places]
    arrays = [part.values.astype(np.float64) for part in parts if isinstance(part, TypedArray)]
    shapes = {array.shape for array in arrays}
    return np.stack(arrays) if len(arrays) == len(parts) and len(shapes) == 1 else None


def _is_sum(whole: np.ndarray, parts: np.ndarray) -> bool:
    """Whether the sum of the parts is nearer to the whole than each part is."""
    if whole.shape != parts.shape[1:]:
        return False
    with np.errstate(all="ignore"):
        wide = whole.astype(np.float64)
        return bool(_distance(wide, parts.sum(axis=0)) < min(_distance(wide, part) for part in parts))


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    apart = np.abs(one - other)
    return float(np.sum(apart, where=np.isfinite(apart)))


def _put(run: list[Value], places: Sequence[int], value: TypedArray) -> None:
    for place in places:
        run[place] = value
