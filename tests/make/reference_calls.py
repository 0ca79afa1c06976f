"""Call references of operators as checkers do, and hold their gradients against differences of their own results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msprobe_ms.accuracy.references import FusedReference, NotJudged, fused_reference
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments

#: Half of the distance over which a difference is taken, and how exact it then is for values about 1.
STEP, EXACT = 1e-5, 1e-7
#: Directions in which each argument is moved: a wrong gradient agrees in all of them by chance alone.
DIRECTIONS = 4


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers in float64 that are the same in every run."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def reference(api: str, prefix: str = "NPU", apis: str = "pytorch") -> FusedReference:
    """The reference of an operator, which there must be."""
    found = fused_reference(apis, prefix, api)
    assert found is not None, api
    return found


def tensors(value: Any) -> Any:
    """Arrays as tensors of their dtype, in containers too."""
    if isinstance(value, np.ndarray):
        return TypedArray(value.dtype.name, value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(tensors, value)) if type(value) in (list, tuple) else value
    return value


def arguments(*positional: Any, **keywords: Any) -> Arguments:
    """Arguments of a call; arrays are tensors."""
    return Arguments(tuple(map(tensors, positional)), {name: tensors(each) for name, each in keywords.items()})


def outputs(found: FusedReference, *positional: Any, **keywords: Any) -> list[Any]:
    """What a reference gives, tensors as arrays."""
    return plain(found.run(arguments(*positional, **keywords)).outputs)


def plain(values: Sequence[Any]) -> list[Any]:
    """Tensors as arrays."""
    return [each.values if isinstance(each, TypedArray) else each for each in values]


def gradients(
    found: FusedReference, given: Sequence[np.ndarray | None], *positional: Any, **keywords: Any
) -> list[Any]:
    """The gradients that follow from those of the outputs; outputs after the last given have none."""
    call = arguments(*positional, **keywords)
    wanted = [*map(tensors, given), *[None] * (len(found.run(call).outputs) - len(given))]
    return plain(found.run(call, wanted).gradients)


def assert_gradients(found: FusedReference, *positional: Any, judged: int = 1, **keywords: Any) -> None:
    """Each gradient is what differences of the first ``judged`` outputs say."""
    call = arguments(*positional, **keywords)
    weights = [normal(*np.shape(each), seed=9) for each in plain(found.run(call).outputs)[:judged]]
    leaves = [*_floats([*positional, *keywords.values()])]
    computed = gradients(found, weights, *positional, **keywords)
    assert len(computed) == len(leaves)

    def total() -> float:
        results: ApiOutcome = found.run(call)
        return sum(float(np.sum(w * y)) for w, y in zip(weights, plain(results.outputs)[:judged], strict=True))

    for place, (leaf, gradient) in enumerate(zip(leaves, computed, strict=True)):
        if isinstance(gradient, NotJudged):
            continue
        expected = np.zeros(leaf.shape) if gradient is None else gradient
        assert expected.shape == leaf.shape
        kept = leaf.copy()
        for direction in (normal(*leaf.shape, seed=10 + each) for each in range(DIRECTIONS)):
            leaf[...] = kept + STEP * direction
            above = total()
            leaf[...] = kept - STEP * direction
            difference = (above - total()) / (2 * STEP)
            leaf[...] = kept
            along = float(np.sum(expected * direction))
            assert abs(difference - along) < EXACT * max(1.0, abs(along), float(np.abs(expected).max())), place


def _floats(values: Any) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _floats(value)
    return found
