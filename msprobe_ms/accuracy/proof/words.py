"""The words of proofs: values, differences of tensors, names of frameworks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.slots import Slot, bound, distance
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.support.translation import tr, tr_count, tr_join

#: Slots of the target, each with the golden's.
Pairs: TypeAlias = Sequence[tuple[Slot, Slot]]
_TITLES = {"mindspore": "MindSpore", "pytorch": "PyTorch", "mindtorch": "MSAdapter"}
_LONGEST = 60
#: What a tensor is held against.
GOLDEN_VALUE, RIGHT_VALUE = tr("the golden's"), tr("the right one")
#: PyTorch's names of settings that this project's sentences spell out.
_SPELLED = {"eps": "epsilon"}


def title_of(call: Call) -> str:
    """Name a call's operation as a sentence does: ``MindSpore's layer_norm``."""
    return tr("{framework}'s {operation}", framework=framework_title(call.framework), operation=call.title)


def golden_title(golden: Call, target: Call) -> str:
    """Name the golden's operation so that it is not taken for the target's."""
    if golden.framework != target.framework:
        return title_of(golden)
    return tr("the golden's {operation}", operation=golden.title)


def framework_title(framework: str) -> str:
    return _TITLES.get(framework, framework)


def name_of(slot: Slot) -> str:
    return spelled(slot.name)


def spelled(name: str) -> str:
    """Return the name of a setting as sentences spell it."""
    return _SPELLED.get(name, name)


def quoted_names(slots: Iterable[Slot]) -> str:
    """Enumerate slots: ```weight` and `bias```."""
    return tr_join(tr(" and "), [tr("`{name}`", name=name_of(slot)) for slot in slots])


def shown(value: Any) -> str:
    """Return a plain value as a person writes it."""
    if isinstance(value, TypedArray):
        return tr("a tensor of {dtype} {shape}", dtype=value.dtype, shape=list(value.values.shape))
    text = f"{value:.12g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def tensor_difference(one: Any, other: Any, whose: str = GOLDEN_VALUE) -> str:
    """Say how one tensor differs from another, ``whose``: transposed, scaled, of another shape, or by how much."""
    if not (isinstance(one, TypedArray) and isinstance(other, TypedArray)):
        return tr("it is {one}, {whose} is {other}", one=shown(one), other=shown(other), whose=whose)
    a, b = one.values, other.values
    if a.ndim == 2 and a.shape == b.shape[::-1] and distance(TypedArray(one.dtype, a.T), other) <= bound(one, other):
        return tr("it is the transpose of {whose}", whose=whose)
    if a.shape != b.shape:
        return tr("its shape is {one}, {whose} has {other}", one=list(a.shape), other=list(b.shape), whose=whose)
    if a.dtype.kind not in "fc":
        number = int(np.count_nonzero(a != b))
        return tr_count("{count} of {size} elements differs", "{count} of {size} elements differ", number, size=a.size)
    if not a.any() and b.any():
        return tr("it is zero throughout")
    size = float(np.vdot(b, b).real)
    factor = float(np.vdot(b, a).real) / size if size else 0.0
    if factor and distance(one, TypedArray(other.dtype, b * factor)) <= bound(one, other):
        return tr("it is {factor:.6g} times {whose}", factor=factor, whose=whose)
    apart = distance(one, other)
    if math.isinf(apart):
        return _immeasurable(a, b, whose)
    return tr("it differs by {share:.3g} of its size", share=apart)


def _immeasurable(a: np.ndarray, b: np.ndarray, whose: str) -> str:
    """Say how tensors differ of which one is not finite, or the other is zero."""
    if not np.isfinite(a).all():
        return tr("it holds NaN or infinity")
    if not np.isfinite(b).all():
        return tr("{whose} holds NaN or infinity", whose=whose)
    return tr("it is not zero, {whose} is zero throughout", whose=whose)


def input_sentence(title: str, name: str, difference: str, made_by: str) -> str:
    """Say that a call is right and fed something wrong, and which call made that; "" where none is known."""
    unknown = tr("no recorded call made it: look at the code that calls {title}", title=title)
    return tr(
        "{title} is right, but its input `{name}` already differs from the golden's ({difference}); {look}",
        title=title,
        name=name,
        difference=difference,
        look=_look(made_by) if made_by else unknown,
    )


def fed_sentence(title: str, difference: str, made_by: str) -> str:
    """Say that a call is fed a gradient that is wrong, and which call made that."""
    return tr(
        "{title} is right, but the gradient that arrives at it already differs from the golden's ({difference}); "
        "{look}",
        title=title,
        difference=difference,
        look=_look(made_by) if made_by else tr("look at the calls that use its results"),
    )


def _look(made_by: str) -> str:
    return tr("look at {made_by}, which made it", made_by=made_by)


def parameter_sentence(title: str, learnt: Pairs) -> str:
    """Say which parameters of a call differ, and that they alone make its results differ."""
    differences = [
        tr(
            "the parameter `{name}` differs: {difference}",
            name=name_of(own),
            difference=tensor_difference(own.value, other.value),
        )
        for own, other in learnt
    ]
    return tr(
        "{differences}; with the golden's {names}, {title} gives the golden's results",
        differences=tr_join(tr("; "), differences),
        names=quoted_names(own for own, _ in learnt),
        title=title,
    )


def exchanged_sentence(call: Call, one: Slot, other: Slot) -> str:
    """Say that two arguments of a call stand in each other's place."""
    return tr(
        "{title} is called with exchanged arguments: {names}; each has the value that the other has in the golden",
        title=title_of(call),
        names=quoted_names((one, other)),
    )


def setting_sentence(target: Call, golden: Call, settings: Pairs, excess: float | None) -> str:
    """Say which settings differ, and what the target's call gives with either value.

    ``excess``: its error with its own values, over what is allowed
    """
    off = "" if excess is None else tr(" (the error is then {excess:.3g} times what is allowed)", excess=excess)
    return tr(
        "{stated}. {title} was run with the golden's inputs: with {other} it gives the golden's results, with {own} "
        "it does not{off}",
        stated=stated(target, golden, settings),
        title=title_of(target),
        other=_values(other for _, other in settings),
        own=_values(own for own, _ in settings),
        off=off,
    )


def near_sentence(target: Call, golden: Call, settings: Pairs, share: float) -> str:
    """Say which settings differ where the results are no further apart than rounding may set them.

    ``share``: how far the golden's values move the results, as a share of their size
    """
    return tr(
        "{stated}; this changes the results by {share:.3g} of their size. Rounding may change them as much, so "
        "comparing the results does not show it: make the settings the same",
        stated=stated(target, golden, settings),
        share=share,
    )


def hidden_sentence(target: Call, golden: Call, settings: Pairs) -> str:
    """Say that settings differ on which these results do not depend."""
    return tr(
        "{stated}; the recorded results agree, but they would be the same with either value",
        stated=stated(target, golden, settings),
    )


def stated(target: Call, golden: Call, settings: Pairs) -> str:
    """Say which settings differ, and what each side has."""
    return tr_count(
        "the setting {names} differs: {own} in {title}, {other} in {golden}",
        "the settings {names} differ: {own} in {title}, {other} in {golden}",
        len(settings),
        names=quoted_names(own for own, _ in settings),
        own=_values(own for own, _ in settings),
        title=title_of(target),
        other=_values(other for _, other in settings),
        golden=golden_title(golden, target),
    )


def _values(slots: Iterable[Slot]) -> str:
    return tr_join(tr(" and "), [shown(slot.value) for slot in slots])


def with_values(settings: Mapping[str, Any], between: str = ", ") -> str:
    """Enumerate settings with their values: ``num_groups 4, epsilon 1e-05``."""
    return tr_join(
        between, [tr("{name} {value}", name=spelled(name), value=shown(settings[name])) for name in settings]
    )


def like_settings(call: Call, like: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which settings, none or some, would have given a call's results but for rounding."""
    given = call.arguments.keywords
    others = [
        {name: value for name, value in settings.items() if repr(value) != repr(given.get(name))} for settings in like
    ]
    told = [with_values(settings, tr(" and ")) for settings in others]
    if not told:
        return []
    fit = tr("the recorded results fit {settings} as well", settings=tr_join(tr(" or "), told))
    return [tr("{fit}: dump at level mix, which records the settings", fit=fit)]
