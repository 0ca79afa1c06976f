"""Judge the outputs of one call, or its gradients: figures, standard, verdict of the profile, and the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging import peer_rules as peer
from msprobe_ms.accuracy.judging.exact import unequal_elements
from msprobe_ms.accuracy.judging.findings import Finding
from msprobe_ms.accuracy.judging.model import ApiKey, Judged, Profile, Status
from msprobe_ms.accuracy.judging.own_rules import Size, judge_own
from msprobe_ms.accuracy.judging.standards import Standard, standard_of
from msprobe_ms.accuracy.judging.thresholds import Thresholds
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.support.translation import tr

NO_REFERENCE_GRADIENT = tr("no gradient of the reference")

#: What a plain float counts as: a framework's numbers are of float32, whatever Python makes of them.
_PLAIN_FLOAT = "float32"


class Absent(NamedTuple):
    """Stands for an output that one side has and the other has not."""


ABSENT = Absent()


def judge_output(
    api: ApiKey,
    name: str,
    bench: TypedArray | Any,
    device: TypedArray | Any,
    thresholds: Thresholds,
    *,
    profile: Profile = "own",
    elements: int | None = None,
    magnitude: float = 0.0,
    expected: np.ndarray | float | None = None,
    reference: str = "",
    float8_arguments: bool = False,
) -> Judged:
    """Judge one output ``device`` beside the reference's, ``bench``: tensors, or plain values.

    ``name``       of the row: ``Mint.sub.0.forward.output.0``
    ``elements``   of the largest tensor among the arguments and incoming gradients
    ``magnitude``  the largest absolute value of an argument, or, of gradients, the largest incoming one times that, if
                   it is above 1; results of functions whose inner steps cancel are held against it
    ``expected``   error that rounding of the inputs alone explains, for each element or for all
    ``reference``  what computed the reference
    """
    request = _Request(api, bench, device, thresholds, profile, Size(elements, magnitude), expected, float8_arguments)
    judged = request.tensors() if request.are_tensors else request.values()
    finding, verdict, own = judged.chosen, judged.peer, profile == "own"
    return Judged(
        name=name,
        bench_dtype=_dtype(bench),
        device_dtype=_dtype(device),
        shape=tuple(device.values.shape) if isinstance(device, TypedArray) else None,
        figures=judged.figures,
        status=finding.status if own else verdict.status,
        standard=str(judged.standard),
        rule=finding.rule if own else f"msprobe {'1.1.0' if profile == 'v110' else '26.x'}",
        message=finding.message if own else verdict.message,
        reference=reference,
        peer_status=verdict.status,
    )


def judge_outputs(
    api: ApiKey,
    entry: str,
    bench: Sequence[TypedArray | Any],
    device: Sequence[TypedArray | Any],
    thresholds: Thresholds,
    *,
    expected: Sequence[np.ndarray | float | None] | None = None,
    **further: Any,
) -> tuple[Judged, ...]:
    """Judge all outputs of the entry ``Mint.sub.0.forward``, or ``….backward``; one too many or too few is an error.

    Gradients are not compared where the reference gives none at all: it cannot be differentiated.

    ``expected`` is one for each output; all else is as ``judge_output`` takes it.
    """
    explained = list(expected or ())
    if api.is_backward and all(each is None for each in bench) and any(each is not None for each in device):
        return tuple(skipped(f"{entry}.output.{place}", NO_REFERENCE_GRADIENT) for place in range(len(device)))
    return tuple(
        judge_output(
            api,
            f"{entry}.output.{place}",
            bench[place] if place < len(bench) else ABSENT,
            device[place] if place < len(device) else ABSENT,
            thresholds,
            expected=explained[place] if place < len(explained) else None,
            **further,
        )
        for place in range(max(len(bench), len(device)))
    )


def skipped(name: str, reason: str, *, reference: str = "") -> Judged:
    """Return the row of an output that was not compared."""
    return Judged(name, "", "", None, {}, Status.SKIP, message=reason, reference=reference, peer_status=Status.SKIP)


class _Result(NamedTuple):
    chosen: Finding
    peer: peer.Verdict
    standard: Standard
    figures: dict[str, float | None]


class _Request(NamedTuple):
    """What ``judge_output`` was asked."""

    api: ApiKey
    bench: Any
    device: Any
    thresholds: Thresholds
    profile: Profile
    size: Size
    expected: np.ndarray | float | None
    float8_arguments: bool

    @property
    def are_tensors(self) -> bool:
        return isinstance(self.bench, TypedArray) and isinstance(self.device, TypedArray)

    def tensors(self) -> _Result:
        standard = standard_of(self.api.last, self.device.dtype, self.profile, float8_arguments=self.float8_arguments)
        shapes = self.bench.values.shape, self.device.values.shape
        if shapes[0] != shapes[1]:
            told = f"The shapes differ: {list(shapes[1])} reference {list(shapes[0])}."
            message = told if self.api.of_pytorch else peer.INVALID_FOR_MINDSPORE
            verdict = peer.Verdict(Status.ERROR, message)
            return _Result(Finding(Status.ERROR, "shape", told), verdict, standard, {})
        verdict, figures = self._by_peer(standard)
        own = self._own()
        return _Result(own, verdict, standard, {**figures, **own.figures})

    def _by_peer(self, standard: Standard) -> tuple[peer.Verdict, dict[str, float | None]]:
        """msprobe's verdict, and all figures that its tables, and ours, have for this framework."""
        pair = peer.compared(self.bench, self.device)
        is_float = parse_dtype(self.device.dtype).kind in ("float", "complex")
        figures: dict[str, float | None] = {fig.UNEQUAL: fig.share(self._unequal())}
        if is_float:
            generation = peer.generation_of(self.profile)
            figures = peer.all_figures(pair, standard, self.thresholds, generation)
        if not self.api.of_pytorch:
            figures |= peer.mindspore_figures(pair)
            return peer.judge_as_mindspore(figures, self.thresholds), figures
        if not is_float:
            equal = figures[fig.UNEQUAL] == 0
            return peer.Verdict(
                Status.PASS if equal else Status.ERROR, "" if equal else tr("Elements differ.")
            ), figures
        return peer.judge_as_pytorch(self.api, pair, figures, self.thresholds), figures

    def _unequal(self) -> np.ndarray:
        return unequal_elements(self.bench.values, self.device.values)

    def _own(self) -> Finding:
        if peer.is_dropout(self.api):
            status, message = peer.judge_dropout(self.bench.values, self.device.values, self.thresholds)
            return Finding(status, tr("zeros of dropout"), message)
        return judge_own(self.api, self.bench, self.device, self.thresholds, size=self.size, expected=self.expected)

    def values(self) -> _Result:
        """The verdict where one side at least is no tensor."""
        figures: dict[str, float | None] = {}
        if self.bench is None and self.device is None:
            skip = Finding(Status.SKIP, tr("nothing to compare"), tr("neither side gives a value"))
            return _Result(skip, peer.Verdict(Status.SKIP), Standard.BINARY, figures)
        own = self._of_values()
        verdict = peer.Verdict(Status.PASS)
        if isinstance(self.bench, Absent) or isinstance(self.device, Absent):
            verdict = peer.Verdict(Status.ERROR, peer.STRUCTURES_DIFFER)
        elif not self.api.of_pytorch:
            verdict = peer.Verdict(Status.ERROR, peer.INVALID_FOR_MINDSPORE)
        elif self._types_differ():
            verdict = peer.Verdict(Status.ERROR, peer.TYPES_DIFFER)
        elif not equal_values(self.bench, self.device):
            verdict = peer.Verdict(Status.ERROR, tr("Values differ."))
        if not self._types_differ():
            figures[fig.UNEQUAL] = 0.0 if equal_values(self.bench, self.device) else 1.0
        return _Result(own, verdict, Standard.BINARY, figures)

    def _of_values(self) -> Finding:
        if isinstance(self.bench, Absent) or isinstance(self.device, Absent):
            more = isinstance(self.bench, Absent)
            what = tr("more outputs than the reference gives") if more else tr("fewer outputs than the reference gives")
            return Finding(Status.ERROR, tr("number of outputs"), what)
        if self.api.is_backward and self._is_no_gradient():
            return Finding(Status.PASS, tr("no gradient"), tr("one side has no gradient, the other has zeros"))
        if self._types_differ():
            kinds = tr("{value}, reference {right}", value=_kind(self.device), right=_kind(self.bench))
            return Finding(Status.ERROR, "type", kinds)
        if all(_is_number(each) for each in (self.bench, self.device)) and isinstance(self.device, (float, complex)):
            one, other = (_as_array(each) for each in (self.bench, self.device))
            return judge_own(self.api, one, other, self.thresholds, size=self.size, expected=self.expected)
        if equal_values(self.bench, self.device):
            return Finding(Status.PASS, "exact")
        return Finding(
            Status.ERROR,
            "exact",
            tr("{value}, reference {right}", value=_told(self.device), right=_told(self.bench)),
        )

    def _is_no_gradient(self) -> bool:
        sides = self.bench, self.device
        given = [each for each in sides if isinstance(each, TypedArray)]
        return None in [each for each in sides if not isinstance(each, TypedArray)] and not any(
            np.any(each.values) for each in given
        )

    def _types_differ(self) -> bool:
        if any(isinstance(each, (TypedArray, Absent)) for each in (self.bench, self.device)):
            return True
        return _kind(self.bench) != _kind(self.device)


def equal_values(one: Any, other: Any) -> bool:
    """Return whether two plain values are equal; NaN equals NaN."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    try:
        return bool(one == other)
    except (TypeError, ValueError):
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _as_array(value: complex) -> TypedArray:
    array = np.asarray(value)
    return TypedArray(_PLAIN_FLOAT if array.dtype.kind in "if" else "complex64", array)


def _kind(value: Any) -> str:
    """What a value is, in words; numbers are of one kind."""
    if isinstance(value, TypedArray):
        return tr("a tensor of {name}", name=parse_dtype(value.dtype).name)
    if value is None:
        return tr("nothing")
    return tr("a number") if _is_number(value) else tr("a value of type {name}", name=type(value).__name__)


def _told(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _dtype(value: Any) -> str:
    if isinstance(value, TypedArray):
        return value.dtype
    return "" if isinstance(value, Absent) else type(value).__name__
