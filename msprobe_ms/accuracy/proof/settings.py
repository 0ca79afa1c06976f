"""Find what a layer was made with: the settings with which its formula gives the results that were recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.layers import Layer, Named
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.trial import held_against, relative_error
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments, Value

#: A relative error from which on an element-wise judgement is of no use.
_FAR = 1e-2
#: Exponents of ten between which a setting is searched for.
_LOWEST, _HIGHEST = -13.0, 1.0
#: Elements of the input from which on only some samples are looked at.
_ENOUGH = 1 << 18
#: Settings up to which all are tried, and the roundings of a result that may hide one setting behind another.
_FEW, _ROUNDINGS = 8, 4.0
_GOLDEN = (math.sqrt(5) - 1) / 2


def with_settings(call: Call, settings: Mapping[str, Value]) -> Call:
    """Return the call of a layer made with these settings."""
    return replace(call, arguments=Arguments((), {**call.arguments.keywords, **settings}))


class Fit(NamedTuple):
    """Settings that reproduce what was recorded; ``error``: what they leave, as a share of the results' size."""

    settings: Named
    error: float


def fits(call: Call, layer: Layer) -> list[Fit]:
    """Return the settings that reproduce the recorded outputs, but for those that others reproduce far better.

    Defaults of the frameworks come first; then one setting, such as epsilon, is searched for among all numbers.
    """
    few = _first_rows(call)
    found = _found(few, layer) if few is not None else []
    return _nearest(found or _found(call, layer), call)


class Fitted(NamedTuple):
    """Both calls with what they were made with; None where no settings reproduce a call. ``like``: other settings that
    the results of both sides tell no better from these than rounding allows."""

    target: Call | None
    golden: Call | None
    like: Sequence[Named] = ()


def fitted(target: Call, golden: Call | None, layers: tuple[Layer, Layer]) -> Fitted:
    """Find what both calls were made with: the same where that may be."""
    ours = fits(target, layers[0])
    if golden is None:
        return Fitted(_made(target, ours), None, [fit.settings for fit in ours[1:]])
    theirs = fits(golden, layers[1])
    there = [fit.settings for fit in theirs]
    both = [fit for fit in ours if fit.settings in there]
    every = [fit.settings for fit in (*ours, *theirs) if not both or fit.settings != both[0].settings]
    like = [each for number, each in enumerate(every) if both and each not in every[:number]]
    return Fitted(_made(target, both or ours), _made(golden, both or theirs), like)


def _made(call: Call, found: Sequence[Fit]) -> Call | None:
    return with_settings(call, found[0].settings) if found else None


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


def _found(call: Call, layer: Layer) -> list[Fit]:
    """Settings that reproduce the outputs: all of a few, the first of many, as those of convolutions."""
    assert call.outputs is not None
    (*_, shape) = ((), *(out.values.shape for out in call.outputs[:1] if isinstance(out, TypedArray)))
    tried = layer.possible(call.arguments.keywords, shape)
    if not layer.searched and len(tried) > _FEW:
        made = (Fit(settings, error_of(with_settings(call, settings))) for settings in tried)
        return list(islice((fit for fit in made if _reproduces(call, fit)), 1))
    every = [Fit(settings, error_of(with_settings(call, settings))) for settings in tried]
    found = [fit for fit in _nearest(every, call) if _reproduces(call, fit)]
    if layer.searched and min((fit.error for fit in found), default=math.inf) > _unseen(call):
        kinds = sorted(_without(every, layer.searched), key=lambda fit: fit.error)[:3]
        more = (_searched(call, fit.settings, layer.searched) for fit in kinds)
        found += list(islice((fit for fit in more if fit is not None), 1))
    return found


def _reproduces(call: Call, fit: Fit) -> bool:
    return fit.error < _FAR and reproduces(with_settings(call, fit.settings))


def _nearest(found: Sequence[Fit], call: Call) -> list[Fit]:
    """Those that leave as little as the best of them, but for rounding."""
    least = min((fit.error for fit in found), default=0.0)
    return [fit for fit in found if fit.error <= max(2 * least, _unseen(call))]


def _unseen(call: Call) -> float:
    """What a correct computation leaves as well, as a share of the results' size."""
    dtypes = [parse_dtype(out.dtype).epsilon for out in call.outputs or () if isinstance(out, TypedArray)]
    return _ROUNDINGS * max(dtypes, default=0.0)


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


def _without(every: Sequence[Fit], searched: str) -> Iterator[Fit]:
    """The other settings, each kind once with its least error."""
    best: dict[str, Fit] = {}
    for fit in every:
        key = repr({name: value for name, value in fit.settings.items() if name != searched})
        if key not in best or fit.error < best[key].error:
            best[key] = fit
    yield from best.values()


def _searched(call: Call, settings: Named, name: str) -> Fit | None:
    def made(value: float) -> Call:
        return with_settings(call, {**settings, name: value})

    exponent = least(lambda power: error_of(made(10.0**power)), _LOWEST, _HIGHEST)
    for value in rounder(10.0**exponent):
        error = error_of(made(value))
        if error < _FAR and reproduces(made(value)) and error <= 2 * error_of(made(10.0**exponent)) + _unseen(call):
            return Fit({**settings, name: value}, error)
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
