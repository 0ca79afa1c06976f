"""What a layer was made with, from how far the norms of both sides' results are apart, on data drawn to fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from msprobe_ms.accuracy.judging.judge import equal_values
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.layers import Layer, Named
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.settings import least, rounder, with_settings
from msprobe_ms.accuracy.proof.words import shown, with_values
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Value
from msprobe_ms.support.translation import tr, tr_join

#: How far what was recorded may be from all that drawn data show, as a share.
SHARE = 0.2
#: How far off an estimate may be, as a factor, where parameters are not constant: their place beside the data, which
#: statistics do not tell, then changes the norm as well (measured: a factor of 3 with eight channels).
_WIDE = 4.0
#: Exponents of ten between which a setting is searched for, and the steps of one.
_LOWEST, _HIGHEST, _STEPS = -13.0, 1.0, 28


@dataclass(frozen=True, slots=True)
class Explanation:
    """``told``      the settings, in words
    ``usual``     what stands in their place on the other side
    ``change``    log of the norm of the results with them over that without
    ``recorded``  the same of what was recorded
    ``is_usual``  whether a framework has the settings by default, so that they are likely
    """

    told: str
    usual: str
    change: float
    recorded: float
    is_usual: bool = True


def explained(calls: Sequence[Call], layer: Layer, recorded: float) -> Explanation | None:
    """Return the settings that change the norm of a layer's results as was recorded, the others being the usual ones.

    ``calls``: one call, with other numbers drawn each time. None: no settings do.
    """
    first = calls[0]
    shape = first.arguments.keywords["input"].values.shape
    candidates = layer.possible(first.arguments.keywords, shape)
    if not candidates:
        return None
    usual = candidates[0]
    if layer.searched:
        others = {each[layer.searched] for each in candidates} - {usual[layer.searched]}
        return _searched(calls, layer.searched, usual, others, recorded)
    found = {
        number: change
        for number, each in enumerate(candidates[1:], 1)
        if (change := _typical(calls, each, usual, recorded)) is not None
    }
    if not found:
        return None
    number = min(found, key=lambda each: abs(found[each] - recorded))
    best, change = candidates[number], found[number]
    names = [name for name in best if not equal_values(best[name], usual[name])]
    both = tr(" and ")
    told = with_values({name: best[name] for name in names}, both)
    return Explanation(told, tr_join(both, [shown(usual[name]) for name in names]), change, recorded)


def _typical(calls: Sequence[Call], settings: Named, usual: Named, recorded: float) -> float | None:
    """The change that settings make of the norm, over all drawn data; None where none is about what was recorded.

    How much they change depends on the numbers: what was recorded lies among what drawn ones show.
    """
    first = _change(calls[0], settings, usual)
    if not abs(recorded) / _WIDE <= math.copysign(first, first * recorded) <= abs(recorded) * _WIDE:
        return None
    changes = [first, *(_change(call, settings, usual) for call in calls[1:])]
    low, high = sorted((min(changes), max(changes)), key=abs)
    if low * recorded <= 0 or not abs(low) / (1 + SHARE) <= abs(recorded) <= abs(high) * (1 + SHARE):
        return None
    return float(np.median(changes))


def _searched(
    calls: Sequence[Call], name: str, usual: Named, others: Iterable[float], recorded: float
) -> Explanation | None:
    """One setting that may be any number: the range of what other drawn data need."""
    found = [value for call in calls if (value := _needed(call, name, usual, recorded)) is not None]
    if 2 * len(found) <= len(calls):
        return None
    margin = 1 + SHARE if _are_constant(calls[0]) else _WIDE
    low, high = min(found) / margin, max(found) * margin
    middle = float(np.median(found))
    near = min(others, key=lambda each: abs(math.log(each / middle)), default=0.0)
    is_usual = low <= near <= high
    value = near if is_usual else next(value for value in rounder(middle) if low <= value <= high)
    told = tr("{setting} (about: {low:.2g} to {high:.2g})", setting=with_values({name: value}), low=low, high=high)
    return Explanation(told, shown(usual[name]), _change(calls[0], {**usual, name: value}, usual), recorded, is_usual)


def _are_constant(call: Call) -> bool:
    """Whether the parameters are as new layers have them: ones and zeros."""
    tensors = (value for name, value in call.arguments.keywords.items() if name != "input")
    return all(np.ptp(each.values) == 0 for each in tensors if isinstance(each, TypedArray))


def _needed(call: Call, name: str, usual: Named, recorded: float) -> float | None:
    """The value with which these data change as was recorded; None where none does."""

    def error(power: float) -> float:
        return abs(_change(call, {**usual, name: 10.0**power}, usual) - recorded)

    power = least(error, _LOWEST, _HIGHEST, _STEPS)
    return 10.0**power if error(power) <= SHARE * abs(recorded) else None


def _change(call: Call, settings: Mapping[str, Value], usual: Mapping[str, Value]) -> float:
    try:
        found = norm_change(with_settings(call, settings), with_settings(call, usual))
    except CannotRun:
        found = None
    return math.inf if found is None else found


def norm_change(one: Call, other: Call) -> float | None:
    """Return log of the norm of one call's results over that of the other's; None where they have none.

    :raises CannotRun: one of them cannot be run
    """
    return log_ratio(_norm(one), _norm(other))


def _norm(call: Call) -> float | None:
    outputs = [out for out in call.operation.in_double(call.arguments).outputs if isinstance(out, TypedArray)]
    return float(np.linalg.norm(outputs[0].values.astype(np.float64).ravel())) if outputs else None


def log_ratio(one: float | None, other: float | None) -> float | None:
    """Return log(one / other); None where that is no number."""
    if one is None or other is None or not (0 < one < math.inf and 0 < other < math.inf):
        return None
    return math.log(one / other)


def percent(change: float) -> str:
    """Write a log of a ratio as a change.

    >>> percent(math.log(1.05))
    '+5 %'
    """
    return f"{100 * math.expm1(change):+.3g} %"
