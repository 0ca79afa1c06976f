"""What a call was given, by name: arguments, attributes and defaults; and which of the other side's is which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from msprobe_ms.accuracy.calls import flat_leaves
from msprobe_ms.accuracy.judging.judge import equal_values
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.comparison.pairing.arguments import CANONICAL, names_in_order
from msprobe_ms.dump.names import parse_entry
from msprobe_ms.frameworks.api_calls import Arguments, Value
from msprobe_ms.support.translation import tr

#: The share that dropout keeps, where others name the share that it drops.
_KEPT = "keep_prob"
#: Names of arguments that a net learns; others are what flows through it.
_LEARNT = frozenset({"weight", "bias", "running_mean", "running_var", "moving_mean", "moving_variance"})
#: The kind of place of a gradient that arrives, which is no argument.
GRADIENT = "gradient"
#: Where an argument stands: its place among the positional ones, or its name.
Place = tuple[str, int | str]
_UNNAMED = re.compile(r"argument \d+")


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing that a call was given.

    ``name``   in its own framework; ``argument 1`` where nothing tells it
    ``place``  ``("positional", 0)``, ``("keyword", "axis")``, ``("attribute", "epsilon")``; ``("default", …)`` where
               the call left it out
    """

    name: str
    place: Place
    value: Value

    @property
    def canonical(self) -> str:
        return CANONICAL.get(self.name.lower(), self.name.lower())

    @property
    def is_tensor(self) -> bool:
        return any(isinstance(leaf, TypedArray) for leaf in flat_leaves(self.value))

    @property
    def is_learnt(self) -> bool:
        return self.canonical in _LEARNT


def slots_of(call: Call) -> list[Slot]:
    """Return what a call was given, positional arguments first, defaults last."""
    parameters = call.operation.parameters
    names = [each.name for each in parameters]
    if len(names) < len(call.arguments.positional) and (parsed := parse_entry(call.entry)) is not None:
        names += names_in_order(parsed, call.framework)[len(names) :]
    names += [tr("argument {number}", number=place + 1) for place in range(len(names), len(call.arguments.positional))]
    found = [
        Slot(names[number], ("positional", number), value) for number, value in enumerate(call.arguments.positional)
    ]
    found += [Slot(name, ("keyword", name), value) for name, value in call.arguments.keywords.items()]
    found += [Slot(name, ("attribute", name), value) for name, value in call.operation.attributes.items()]
    given = {slot.name for slot in found}
    found += [
        Slot(each.name, ("default", each.name), each.default)
        for each in parameters
        if each.has_default and each.name not in given
    ]
    return found


def paired(target: Sequence[Slot], golden: Sequence[Slot]) -> Iterator[tuple[Slot, Slot]]:
    """Yield which slot of the target is which of the golden: by name, else tensors and plain values in order.

    The golden's values are those that the target's slot would have to hold: of ``p=0.1`` beside ``keep_prob`` 0.9.
    """
    theirs = {slot.canonical: slot for slot in golden if not _UNNAMED.fullmatch(slot.name)}
    left: list[Slot] = []
    taken: set[Place] = set()
    for slot in target:
        other = theirs.get(slot.canonical)
        if other is not None and other.place not in taken and slot.is_tensor == other.is_tensor:
            taken.add(other.place)
            yield slot, _as_stated_by(slot, other)
        else:
            left.append(slot)
    rest = [slot for slot in golden if slot.place not in taken]
    for kind in (True, False):
        ours, others = ([each for each in side if each.is_tensor is kind] for side in (left, rest))
        if not kind:
            ours, others = ([each for each in side if each.place[0] == "positional" or _given(each)]
                            for side in (ours, others))  # fmt: skip
            if len(ours) != len(others):
                continue
        for slot, other in zip(ours, others, strict=False):
            # Plain values without a name may mean anything: they are one only where they are of one kind.
            if kind or (type(slot.value) is type(other.value) and _may_be_one(slot, other)):
                yield slot, other


def _as_stated_by(slot: Slot, other: Slot) -> Slot:
    """The other side's slot with its value in the terms of this side's."""
    is_kept = (slot.name == _KEPT) is not (other.name == _KEPT)
    return replace(other, value=1 - other.value) if is_kept and isinstance(other.value, (int, float)) else other


def _given(slot: Slot) -> bool:
    return slot.place[0] != "default"


def _may_be_one(slot: Slot, other: Slot) -> bool:
    return any(_UNNAMED.fullmatch(each.name) for each in (slot, other))


def with_value(call: Call, slot: Slot, value: Value) -> Call:
    """Return the call with another value in a slot."""
    kind, key = slot.place
    if kind == "attribute":
        return replace(call, operation=call.operation.with_attributes({str(key): value}))
    if kind == GRADIENT:
        gradients = list(call.output_gradients or ())
        gradients[int(key)] = value
        return replace(call, output_gradients=tuple(gradients))
    positional, keywords = list(call.arguments.positional), dict(call.arguments.keywords)
    if kind == "positional":
        positional[int(key)] = value
    else:
        keywords[str(key)] = value
    return replace(call, arguments=Arguments(tuple(positional), keywords))


def agree(one: Value, other: Value) -> bool:
    """Return whether two values are the same, tensors up to what rounding explains."""
    leaves, others = list(flat_leaves(one)), list(flat_leaves(other))
    return len(leaves) == len(others) and all(map(_agree, leaves, others))


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, TypedArray) and isinstance(other, TypedArray):
        return distance(one, other) <= bound(one, other)
    if isinstance(one, TypedArray) or isinstance(other, TypedArray):
        return False
    return equal_values(one, other) or _is_one_float32(one, other)


def _is_one_float32(one: Any, other: Any) -> bool:
    """Whether two floats are one but for that a framework has kept one of them as float32."""
    return isinstance(one, float) and isinstance(other, float) and abs(one - other) <= 2.0**-23 * abs(other)


def bound(one: TypedArray, other: TypedArray) -> float:
    """Return up to which distance two tensors are the same but for rounding."""
    return Tolerances().bound(one.dtype, other.dtype, exact=True, same_framework=False, gradient=False)


def distance(one: TypedArray, other: TypedArray) -> float:
    """Return ‖one − other‖ / ‖other‖; infinite where the shapes differ or one alone is not finite."""
    a, b = (np.asarray(each.values) for each in (one, other))
    if a.shape != b.shape:
        return float("inf")
    if not a.size or np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc"):
        return 0.0
    if a.dtype.kind not in "fc":
        return float("inf")
    with np.errstate(all="ignore"):
        apart = float(np.linalg.norm((a.astype(np.float64) - b.astype(np.float64)).ravel()))
        size = float(np.linalg.norm(b.astype(np.float64).ravel()))
    share = apart / size if size else float("inf")
    return float("inf") if np.isnan(share) else share
