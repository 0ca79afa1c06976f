"""Settings that the two sides state differently, and what each does to the results.

What a setting does is no rounding: the same call in float64, with either value, shows it exactly. So a setting whose
effect is smaller than what rounding is allowed is told all the same, and only values that mean the same are passed
over: ``axis=-1`` and ``axis=2`` of three axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

from msprobe_ms.accuracy.calls import flat_leaves
from msprobe_ms.accuracy.judging.model import ApiKey
from msprobe_ms.accuracy.judging.peer_rules import is_dropout
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.slots import Slot, agree, paired, slots_of, with_value
from msprobe_ms.accuracy.proof.trial import held_against, relative_error
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.names import FORWARD
from msprobe_ms.frameworks.api_calls import Value

#: Up to which share of their size two results in float64 are the same: references sum in another order.
_SAME = 1e-11
#: The same of references of two operations, whose constants may be float32 numbers; and the share of an epsilon of the
#: results' dtype, below which nothing of it can be seen.
_SAME_OPERATION, _UNSEEN = 1e-8, 1 / 64
_NUMBER = (int, float)


class Effect(Enum):
    """What it does to the results that a setting has the golden's value.

    ``NONE``       nothing: both values mean the same
    ``HIDDEN``     nothing on these inputs, as dropout's rate does in inference
    ``MOVES``      results are others, and those of the golden's value are the golden's
    ``OTHERWISE``  results are others than the golden's: the frameworks mean different things by the value
    ``UNKNOWN``    the target's operation does not take the golden's value
    """

    NONE = "none"
    HIDDEN = "hidden"
    MOVES = "moves"
    OTHERWISE = "otherwise"
    UNKNOWN = "unknown"


class Setting(NamedTuple):
    """One setting of both sides; ``share``: how far it moves the results, as a share of their size."""

    own: Slot
    other: Slot
    effect: Effect
    share: float = 0.0


def stated_differently(target: Call, golden: Call) -> list[Setting]:
    """Return the settings whose values differ, with their effect on the golden's tensors.

    Where the golden's results are not known, as those of drawn data are not, its value is taken to mean there what it
    means here.
    """
    pairs = list(paired(slots_of(target), slots_of(golden)))
    differing = [pair for pair in pairs if not pair[0].is_tensor and not agree(pair[0].value, pair[1].value)]
    if not differing:
        return []
    base = _on_tensors_of_golden(target, pairs)
    try:
        outputs = base.operation.in_double(base.arguments).outputs
    except CannotRun:
        return [Setting(*pair, Effect.UNKNOWN) for pair in differing]
    return [_setting(own, other, base, outputs, golden.outputs) for own, other in differing]


def with_effect(settings: Sequence[Setting], effect: Effect) -> list[Setting]:
    """Return those of ``settings`` that have this effect."""
    return [setting for setting in settings if setting.effect is effect]


def _on_tensors_of_golden(target: Call, pairs: Sequence[tuple[Slot, Slot]]) -> Call:
    for own, other in pairs:
        if own.is_tensor:
            target = with_value(target, own, other.value)
    return target


def _setting(
    own: Slot, other: Slot, base: Call, outputs: Sequence[Value], golden_outputs: Sequence[Value] | None
) -> Setting:
    changed = with_value(base, own, other.value)
    try:
        outcome = changed.operation.in_double(changed.arguments)
    except CannotRun:
        return Setting(own, other, Effect.UNKNOWN)
    share = relative_error(outputs, outcome.outputs)
    if share <= _SAME:
        return Setting(own, other, Effect.HIDDEN if _differ_in_kind(own.value, other.value) else Effect.NONE)
    if golden_outputs is not None and not held_against("", changed, outcome, golden_outputs).agrees:
        return Setting(own, other, Effect.OTHERWISE, share)
    return Setting(own, other, Effect.MOVES, share)


def _differ_in_kind(one: Value, other: Value) -> bool:
    """Whether two values can not mean the same: numbers of which one is a float, texts, and bools.

    Whole numbers may: an axis is counted from either end, and one size stands for several.
    """
    leaves, others = list(flat_leaves(one)), list(flat_leaves(other))
    if len(leaves) != len(others):
        return False
    return any(not agree(a, b) and _are_comparable(a, b) for a, b in zip(leaves, others, strict=True))


def _are_comparable(one: Any, other: Any) -> bool:
    if isinstance(one, (bool, str)) or isinstance(other, (bool, str)):
        return type(one) is type(other)
    return isinstance(one, _NUMBER) and isinstance(other, _NUMBER) and float in (type(one), type(other))


def computes_otherwise(target: Call, golden: Call) -> float | None:
    """Return how far the results of both operations are apart in float64, each with its own settings and all with the
    golden's tensors, as a share of their size; None where that is rounding, or cannot be told."""
    ours, theirs = slots_of(target), slots_of(golden)
    pairs = list(paired(ours, theirs))
    tensors = sum(own.is_tensor for own, _ in pairs)
    if any(tensors != sum(slot.is_tensor for slot in side) for side in (ours, theirs)) or _is_random(target):
        return None
    base = _on_tensors_of_golden(target, pairs)
    try:
        runs = [call.operation.in_double(call.arguments).outputs for call in (base, golden)]
    except CannotRun:
        return None
    if not all(_shapes(run) == _shapes(runs[0]) for run in runs):
        return None
    share = relative_error(*runs)
    return share if share > max(_SAME_OPERATION, _UNSEEN * max(_epsilons(golden.outputs), default=0.0)) else None


def _is_random(call: Call) -> bool:
    operation = call.operation
    return is_dropout(ApiKey(operation.framework, operation.prefix, operation.api, FORWARD))


def _shapes(values: Sequence[Value]) -> list[tuple[int, ...] | None]:
    return [value.values.shape if isinstance(value, TypedArray) else None for value in values]


def _epsilons(values: Sequence[Value] | None) -> Iterator[float]:
    return (parse_dtype(value.dtype).epsilon for value in values or () if isinstance(value, TypedArray))
