"""Find what a layer was made with: the settings with which its formula gives the results that were recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.layers import Layer, Named
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.trial import held_against, relative_error
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments, Value

#: A relative error from which on an element-wise judgement is of no use.
_FAR = 1e-2
#: Exponents of ten between which a setting is searched for.
_LOWEST, _HIGHEST = -13.0, 1.0
#: Elements of the input from which on only some samples are looked at.
_ENOUGH = 1 << 18
_GOLDEN = (math.sqrt(5) - 1) / 2


def with_settings(call: Call, settings: Mapping[str, Value]) -> Call:
    """Return the call of a layer made with these settings."""
    return replace(call, arguments=Arguments((), {**call.arguments.keywords, **settings}))


def fitted(call: Call, layer: Layer) -> Call | None:
    """Return the call with the first settings that reproduce the recorded outputs; None where none do.

    Defaults of the frameworks come first; then one setting, such as epsilon, is searched for among all numbers.
    """
    few = _first_rows(call)
    found = _found(few, layer) if few is not None else None
    if found is None:
        return _found(call, layer)
    names = found.arguments.keywords.keys() - call.arguments.keywords.keys()
    return with_settings(call, {name: found.arguments.keywords[name] for name in names})


def _first_rows(call: Call) -> Call | None:
    """The call with so many samples of its batch as are enough to tell settings; None where all of them are few.

    Where samples are not independent of each other, these do not reproduce what was recorded.
    """
    given, outputs = call.arguments.keywords["input"].values, call.outputs or ()
    rows = max(1, _ENOUGH * len(given) // given.size) if given.ndim and given.size > _ENOUGH else 0
    if not 0 < rows < len(given) or len(outputs) != 1 or outputs[0].values.shape[:1] != given.shape[:1]:
        return None
    few = {**call.arguments.keywords, "input": TypedArray(call.arguments.keywords["input"].dtype, given[:rows])}
    return replace(
        call,
        arguments=Arguments((), few),
        outputs=(TypedArray(outputs[0].dtype, outputs[0].values[:rows]),),
    )


def _found(call: Call, layer: Layer) -> Call | None:
    assert call.outputs is not None
    (*_, shape) = ((), *(out.values.shape for out in call.outputs[:1] if isinstance(out, TypedArray)))
    tried = layer.possible(call.arguments.keywords, shape)
    near: list[tuple[float, Named]] = []
    for settings in tried:
        candidate = with_settings(call, settings)
        error = error_of(candidate)
        if error < _FAR and reproduces(candidate):
            return candidate
        near.append((error, settings))
    if not layer.searched or not near:
        return None
    for _, settings in sorted(_without(near, layer.searched), key=lambda each: each[0])[:3]:
        found = _searched(call, settings, layer.searched)
        if found is not None:
            return found
    return None


def reproduces(call: Call) -> bool:
    """Return whether the reference gives the outputs that were recorded."""
    try:
        outcome = call.operation.in_double(call.arguments)
    except CannotRun:
        return False
    return bool(held_against("", call, outcome, call.outputs or ()).agrees)


def error_of(call: Call) -> float:
    """Return the relative error of the recorded outputs beside the reference; infinite where it cannot be run."""
    try:
        return relative_error(call.operation.in_double(call.arguments).outputs, call.outputs or ())
    except CannotRun:
        return math.inf


def _without(near: list[tuple[float, Named]], searched: str) -> Iterator[tuple[float, Named]]:
    """The other settings, each kind once with its least error."""
    best: dict[str, tuple[float, Named]] = {}
    for error, settings in near:
        key = repr({name: value for name, value in settings.items() if name != searched})
        if error < best.get(key, (math.inf, {}))[0]:
            best[key] = error, settings
    yield from best.values()


def _searched(call: Call, settings: Named, name: str) -> Call | None:
    def made(value: float) -> Call:
        return with_settings(call, {**settings, name: value})

    exponent = least(lambda power: error_of(made(10.0**power)), _LOWEST, _HIGHEST)
    for value in rounder(10.0**exponent):
        if error_of(made(value)) < _FAR and reproduces(made(value)):
            return made(value)
    return None


def least(function: Callable[[float], float], low: float, high: float, steps: int = 40) -> float:
    """Return where ``function`` is least between two numbers: on a grid first, then by the golden section."""
    grid = [low + (high - low) * step / steps for step in range(steps + 1)]
    best = min(range(len(grid)), key=lambda place: function(grid[place]))
    low, high = grid[max(0, best - 1)], grid[min(steps, best + 1)]
    for _ in range(steps):
        third = (high - low) * _GOLDEN
        if function(high - third) <= function(low + third):
            high = low + third
        else:
            low = high - third
    return (low + high) / 2


def rounder(value: float) -> Iterator[float]:
    """Yield a number rounded to one digit, two, …, as people write settings.

    >>> next(rounder(0.00998))
    0.01
    """
    for digits in range(1, 12):
        yield float(f"{value:.{digits - 1}e}")
