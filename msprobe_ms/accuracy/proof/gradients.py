"""Gradients of a call as things it was given and as results: what arrives, and what it hands on for each argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msprobe_ms.accuracy.calls import flat_leaves
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.slots import GRADIENT, Slot, paired, slots_of
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Value
from msprobe_ms.support.translation import tr


def arriving(call: Call) -> list[Slot]:
    """Return the gradients with respect to the results, which a backward is fed."""
    given = [(number, value) for number, value in enumerate(call.output_gradients or ()) if value is not None]
    return [
        Slot(
            tr("incoming gradient") if len(given) == 1 else tr("incoming gradient {number}", number=number),
            (GRADIENT, number),
            value,
        )
        for number, value in given
    ]


def handed_on(call: Call) -> list[Slot]:
    """Return the argument of each gradient that a backward hands on: one for each floating-point tensor."""
    given = [slot for slot in slots_of(call) if slot.place[0] in ("positional", "keyword")]
    return [slot for slot in given for leaf in flat_leaves(slot.value) if _is_float(leaf)]


def _is_float(leaf: Value) -> bool:
    return isinstance(leaf, TypedArray) and parse_dtype(leaf.dtype).kind == "float"


def fed_pairs(target: Call, golden: Call) -> list[tuple[Slot, Slot]]:
    """Return which gradient that arrives at the target is which of the golden's: those in order of one shape."""
    both = zip(arriving(target), arriving(golden), strict=False)
    return [pair for pair in both if pair[0].value.values.shape == pair[1].value.values.shape]


def golden_gradients(target: Call, golden: Call) -> list[Value] | None:
    """Return the golden's gradients in the order of the target's arguments, None for each that it has not; None where
    there is nothing of one side to hold against the other."""
    if target.output_gradients is None or golden.input_gradients is None:
        return None
    counterpart = {own.place: other.place for own, other in paired(slots_of(target), slots_of(golden))}
    there = list(zip(handed_on(golden), golden.input_gradients, strict=False))
    found: list[Value] = []
    for slot in handed_on(target):
        wanted = counterpart.get(slot.place)
        place = next((place for place, (other, _) in enumerate(there) if other.place == wanted), None)
        value = there.pop(place)[1] if place is not None else None
        # Of another shape it is the gradient of something that is laid out otherwise.
        found.append(value if value is None or _shape(slot.value) in (None, _shape(value)) else None)
    return found if any(value is not None for value in found) else None


def _shape(value: Value) -> tuple[int, ...] | None:
    return value.values.shape if isinstance(value, TypedArray) else None


def without_parameters(call: Call) -> Call:
    """Return the call as if no gradient of its parameters were known."""
    if call.input_gradients is None:
        return call
    slots = handed_on(call)
    known: Sequence[Value] = [
        None if slot.is_learnt else value for slot, value in zip(slots, call.input_gradients, strict=False)
    ]
    return replace(call, input_gradients=known)
