"""The perturbations: what is done to a tensor before a call is made again, and how far its results may move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msprobe_ms.arrays.dtypes import EPSILON
from msprobe_ms.frameworks.repeating import NARROW, Repeater
from msprobe_ms.recording.perturbation.api_kinds import ApiKind
from msprobe_ms.support.translation import tr

#: Units in the last place by which noise moves an element: one of the narrow dtypes, where each is a percent or so.
_ULPS = {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 2}

#: What noise may make of a result, beside its largest element. That of float32 is the threshold of msprobe, 1.0002,
#: less one; it is 840 times the noise. The narrow dtypes have fewer digits to lose, and the wide one has more.
_NOISE_LIMITS = {"float16": 0.05, "bfloat16": 0.25, "float32": 2e-4, "float64": 2e-8}

#: What another way to compute the same may make of it: eight units in the last place of the narrow dtypes; of the wide
#: ones what msprobe allows between an NPU and a CPU, and the same share of digits.
_OTHER_WAY_LIMITS = {"float16": 2.0**-7, "bfloat16": 2.0**-4, "float32": 2.0**-14, "float64": 2.0**-32}

#: Makes another tensor of one; None where nothing comes of it.
Change = Callable[[Repeater, Any, int], Any]


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One value of ``pert_mode``.

    ``change``        what is done to a floating-point tensor; ``seed`` is another for every call
    ``fix``           the same in the gradient graph, where the results may stand for the call's own
    ``limits``        by dtype: the largest change of a result beside its largest element that is none; none: 0
    ``everywhere``    whether it is done to all tensors, and not to the first alone
    ``is_noise``      whether results follow that of the arguments, so that those that jump cannot be judged
    ``size``          by dtype: the relative change of an argument; none where there is no such
    ``is_precision``  whether it is a wider dtype, so that nothing may be cast to a narrow one meanwhile
    ``by_order``      whether it changes the order of elements alone
    ``all_tensors``   whether tensors that hold no floating-point numbers are changed as well
    """

    change: Change
    fix: Callable[[Repeater, Any], Any] | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    everywhere: bool = False
    is_noise: bool = False
    size: Mapping[str, float] = field(default_factory=dict)
    is_precision: bool = False
    by_order: bool = False
    all_tensors: bool = False


def _add_noise(repeater: Repeater, tensor: Any, seed: int) -> Any:
    return repeater.moved(tensor, seed, _ULPS[repeater.float_name(tensor) or ""])


def _flip_last_bit(repeater: Repeater, tensor: Any, seed: int) -> Any:
    return repeater.flipped(tensor)


def _exchange(repeater: Repeater, tensor: Any, seed: int) -> Any:
    return repeater.exchanged(tensor)


def _leave(repeater: Repeater, tensor: Any, seed: int) -> Any:
    return repeater.alias(tensor)


def _widened(repeater: Repeater, tensor: Any) -> Any:
    return repeater.widened(tensor) if repeater.float_name(tensor) in NARROW else None


def _widen(repeater: Repeater, tensor: Any, seed: int) -> Any:
    return _widened(repeater, tensor)


def _on_cpu(repeater: Repeater, tensor: Any) -> Any:
    return repeater.on_cpu(tensor)


def _move_to_cpu(repeater: Repeater, tensor: Any, seed: int) -> Any:
    moved = repeater.on_cpu(tensor)
    return repeater.alias(tensor) if moved is tensor else moved


_NOISE = {name: ulps * EPSILON[name] for name, ulps in _ULPS.items()}
_EXCHANGE = Perturbation(_exchange, limits=_NOISE_LIMITS, by_order=True)

#: By ``pert_mode``.
PERTURBATIONS: Mapping[str, Perturbation] = {
    "improve_precision": Perturbation(_widen, _widened, _OTHER_WAY_LIMITS, everywhere=True, is_precision=True),
    "add_noise": Perturbation(_add_noise, limits=_NOISE_LIMITS, is_noise=True, size=_NOISE),
    "bit_noise": Perturbation(
        _flip_last_bit, limits=_NOISE_LIMITS, is_noise=True, size={name: EPSILON[name] for name in _ULPS}
    ),
    "no_change": Perturbation(_leave, everywhere=True),
    "to_cpu": Perturbation(_move_to_cpu, _on_cpu, _OTHER_WAY_LIMITS, everywhere=True, all_tensors=True),
    "change_value": _EXCHANGE,
    "exchange_value": _EXCHANGE,
}


def unjudged(kind: ApiKind, perturbation: Perturbation, stage: str) -> str:
    """Return why no result of such an API can be judged under a perturbation; "" where some can."""
    if kind.with_functions:
        return tr("it does more than compute")
    if kind.undefined:
        return tr("what it returns holds nothing yet")
    if perturbation.is_noise and kind.jumps:
        return tr("its results jump")
    if perturbation.is_noise and kind.gradient_jumps and stage == "backward":
        return tr("its gradients jump")
    if perturbation.by_order and not kind.symmetric:
        return tr("its results depend on the order of elements")
    return ""
