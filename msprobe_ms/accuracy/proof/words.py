"""The words of proofs: values, differences of tensors, names of frameworks."""

from __future__ import annotations

from typing import Any

import numpy as np

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.slots import Slot, bound, distance
from msprobe_ms.arrays.typed import TypedArray

_TITLES = {"mindspore": "MindSpore", "pytorch": "PyTorch", "mindtorch": "MSAdapter"}
_LONGEST = 60
#: PyTorch's names of settings that this project's sentences spell out.
_SPELLED = {"eps": "epsilon"}


def title_of(call: Call) -> str:
    """Name a call's operation as a sentence does: ``MindSpore's layer_norm``."""
    return f"{framework_title(call.framework)}'s {call.title}"


def golden_title(golden: Call, target: Call) -> str:
    """Name the golden's operation so that it is not taken for the target's."""
    return title_of(golden) if golden.framework != target.framework else f"the golden's {golden.title}"


def framework_title(framework: str) -> str:
    return _TITLES.get(framework, framework)


def name_of(slot: Slot) -> str:
    return _SPELLED.get(slot.name, slot.name)


def shown(value: Any) -> str:
    """Return a plain value as a person writes it."""
    if isinstance(value, TypedArray):
        return f"a tensor of {value.dtype} {list(value.values.shape)}"
    text = f"{value:.12g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def tensor_difference(one: Any, other: Any, whose: str = "the golden's") -> str:
    """Say how one tensor differs from another, ``whose``: transposed, scaled, of another shape, or by how much."""
    owner = whose.removesuffix("'s")
    if not (isinstance(one, TypedArray) and isinstance(other, TypedArray)):
        return f"{shown(one)} beside {shown(other)} of {owner}"
    a, b = one.values, other.values
    if a.ndim == 2 and a.shape == b.shape[::-1] and distance(TypedArray(one.dtype, a.T), other) <= bound(one, other):
        return f"it is the transpose of {whose}"
    if a.shape != b.shape:
        return f"its shape is {list(a.shape)} beside {list(b.shape)} of {owner}"
    if a.dtype.kind not in "fc":
        return f"{int(np.count_nonzero(a != b))} of {a.size} elements differ"
    if not a.any() and b.any():
        return "it is zero throughout"
    size = float(np.vdot(b, b).real)
    factor = float(np.vdot(b, a).real) / size if size else 0.0
    if factor and distance(one, TypedArray(other.dtype, b * factor)) <= bound(one, other):
        return f"it is {factor:.6g} times {whose}"
    return f"it differs by {distance(one, other):.3g} of its size"


def input_sentence(title: str, name: str, difference: str, made_by: str) -> str:
    """Say that a call is right and fed something wrong, and which call made that; "" where none is known."""
    look = f"look at {made_by}, which made it" if made_by else "nothing recorded made it: look at what calls this"
    return f"this call is right: the input `{name}` of {title} differs already ({difference}); {look}"


def fed_sentence(title: str, difference: str, made_by: str) -> str:
    """Say that a call is fed a gradient that is wrong, and which call made that."""
    look = f"look at {made_by}, which made it" if made_by else "look at the calls after it"
    return f"this call is right: the gradient that arrives at {title} differs already ({difference}); {look}"


def exchanged_sentence(call: Call, one: Slot, other: Slot) -> str:
    """Say that two arguments of a call stand in each other's place."""
    names = f"`{name_of(one)}` and `{name_of(other)}`"
    return f"{title_of(call)} is right, and called wrongly: its arguments {names} are exchanged"
