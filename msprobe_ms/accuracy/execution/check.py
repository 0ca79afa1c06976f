"""Check one call: make its arguments, run it and its reference, judge each result and each gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import current_process
from pathlib import Path
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from msprobe_ms.accuracy.calls import ApiCall, RecordedTensor, argument_leaves, map_arguments
from msprobe_ms.accuracy.data import CannotDraw, drawn, generator
from msprobe_ms.accuracy.error_data import ErrorData
from msprobe_ms.accuracy.execution.companion import CannotStart, Companion
from msprobe_ms.accuracy.execution.messages import Answer, Raised, Ran, Refused, Request
from msprobe_ms.accuracy.execution.recorded import aligned_gradients, recorded_source
from msprobe_ms.accuracy.judging.judge import judge_outputs
from msprobe_ms.accuracy.judging.judge import skipped as not_compared
from msprobe_ms.accuracy.judging.model import ApiKey, ApiResult, Judged, Status, api_status
from msprobe_ms.accuracy.judging.reasons import NO_GRADIENT, NO_REFERENCE
from msprobe_ms.accuracy.options import Options
from msprobe_ms.accuracy.precision import moved, perturbed, raise_leaf, reference_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.names import BACKWARD, FORWARD
from msprobe_ms.frameworks.api_calls import Arguments, NotJudged, Value
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError
from msprobe_ms.support.log import logger
from msprobe_ms.support.workers import free_memory

#: Said of a result that is wrong, and another one the second time.
NOT_DETERMINISTIC = "not deterministic: a second run gave other figures"
#: Runs of the reference on arguments that are moved within their last place: what rounding alone may do.
_PERTURBATIONS = 2
#: What a check holds at most of its arguments and results, as float64: sets of arguments, two sides, copies.
_COPIES = 16


@dataclass(frozen=True, slots=True)
class Task:
    """One call to check. ``error_folder``: where tensors go of a call that does not pass; None: nowhere."""

    call: ApiCall
    options: Options
    error_folder: Path | None = None


class _Skip(Exception):
    """The call is not checked; the message is the reason."""


class _Data(NamedTuple):
    """Values of the arguments and of the gradients with respect to the results; None: no backward."""

    arguments: Arguments
    gradients: tuple[TypedArray | None, ...] | None


class _Run(NamedTuple):
    """What one side gave. ``outputs`` and ``gradients`` of each set of arguments; None: it has none, for ``reason``."""

    how: str
    outputs: tuple[Sequence[Value] | None, ...]
    gradients: tuple[Sequence[Value] | None, ...] | None
    reason: str = ""


def check(task: Task) -> ApiResult:
    """Check a call, forward and, where it was recorded, backward. Never raises for what the call does."""
    call = task.call
    try:
        return _Check(call, task.options).result(task.error_folder)
    except _Skip as skip:
        return skipped(call, str(skip))
    except MemoryError:
        return skipped(call, "error: MemoryError: not enough memory for its tensors")


def skipped(call: ApiCall, reason: str) -> ApiResult:
    """Return the result of a call that is not checked."""
    backward = None if call.output_gradients is None else Status.SKIP
    return ApiResult(call.name, None if call.arguments is None else Status.SKIP, backward, reason)


@cache
def _companion_of(thread: int, role: str, framework: str, references: str | None, device: int | None) -> Companion:
    return Companion(role, framework, references, device)


def _companion(role: str, framework: str, references: str | None = None, device: int | None = None) -> Companion:
    """The process of a role that this thread of this process asks; it ends with this one."""
    return _companion_of(get_ident(), role, framework, references, device)


def _device_of(options: Options) -> int | None:
    """The device that this worker has: workers take turns."""
    if not options.devices:
        return None
    return options.devices[sum(current_process()._identity[-1:]) % len(options.devices)]


class _Check:
    def __init__(self, call: ApiCall, options: Options) -> None:
        self._call, self._options = call, options
        references = None if options.references is None else str(options.references)
        self._reference = _companion("reference", options.framework, references)
        self._device = None if options.recorded else _companion("device", options.framework, device=_device_of(options))

    def result(self, error_folder: Path | None) -> ApiResult:
        """Check the call. Raises _Skip."""
        self._fits_memory()
        data = self._data()
        reference, device = self._both(data)
        judged = self._judged(data, reference, device)
        if self._device is not None and any(row.status is Status.ERROR for row in judged):
            judged = self._confirmed(data, reference, device, judged)
        if error_folder is not None and any(row.status is Status.ERROR for row in judged):
            self._save(error_folder, data, reference, device)
        forward = tuple(row for row in judged if f".{FORWARD}." in row.name)
        backward = tuple(row for row in judged if f".{BACKWARD}." in row.name)
        status, message = None, ""
        if data.gradients is not None:
            status = api_status(backward)
            if not backward:
                message = device.reason or reference.reason or NO_GRADIENT
        return ApiResult(self._call.name, api_status(forward), status, message, judged)

    # -- data ------------------------------------------------------------------------------------------------------

    def _fits_memory(self) -> None:
        call = self._call
        leaves = (*argument_leaves(self._arguments()), *(call.outputs or ()), *(call.output_gradients or ()))
        elements = sum(math.prod(leaf.shape) for leaf in leaves if isinstance(leaf, RecordedTensor))
        need = elements * 8 * _COPIES
        if need > free_memory():
            raise _Skip(f"error: MemoryError: its tensors need {need / 2**30:.1f} GiB here")

    def _arguments(self) -> Arguments:
        if self._call.arguments is None:
            raise _Skip("no forward entry")
        return self._call.arguments

    def _data(self) -> _Data:
        """Make or load arguments and incoming gradients.

        :raises _Skip: they cannot be had
        """
        options, call = self._options, self._call
        source = recorded_source(options.dump, None) if options.real_data else drawn(call, options.seed)

        def value(leaf: Any) -> Any:
            return source(leaf) if isinstance(leaf, RecordedTensor) else leaf

        try:
            gradients = None
            if call.output_gradients is not None and any(isinstance(g, RecordedTensor) for g in call.output_gradients):
                gradients = tuple(value(leaf) for leaf in self._padded(call.output_gradients))
            return _Data(map_arguments(self._arguments(), value), gradients)
        except MissingTensorError as error:
            raise _Skip(f"data file missing: {error}") from error
        except DumpFormatError as error:
            raise _Skip(f"data file cannot be read: {error}") from error
        except CannotDraw as error:
            raise _Skip(f"error: {error}") from error

    def _padded(self, gradients: Sequence[Value]) -> list[Value]:
        """One for each result: some tools leave out those of results without a gradient."""
        outputs = self._call.outputs or ()
        found = list(gradients)
        if 0 < len(found) < len(outputs):
            remaining = iter(found)
            wanted = next(remaining, None)
            padded: list[Value] = []
            for output in outputs:
                both = isinstance(output, RecordedTensor) and isinstance(wanted, RecordedTensor)
                if both and output.shape == wanted.shape:  # type: ignore[union-attr]
                    padded.append(wanted)
                    wanted = next(remaining, None)
                else:
                    padded.append(None)
            return padded
        return found

    # -- both sides ------------------------------------------------------------------------------------------------

    def _both(self, data: _Data) -> tuple[_Run, _Run]:
        """Run the reference and, at the same time, the API.

        :raises _Skip: either cannot be run
        """
        try:
            asked = self._reference_request(data)
            self._reference.ask(asked)
            tried = self._request((data.arguments,), (data.gradients,))
            if self._device is not None:
                self._device.ask(tried)
            reference = self._settled(self._reference, asked)
            device = self._recorded() if self._device is None else self._settled(self._device, tried)
        except CannotStart as error:
            raise _Skip(f"error: {error}") from error
        if isinstance(reference, (Refused, Raised)):
            same = reference.reason.startswith(NO_REFERENCE)
            raise _Skip(reference.reason if same else f"{NO_REFERENCE}: {reference.reason}")
        if isinstance(device, (Refused, Raised)):
            raise _Skip(device.reason)
        if device.how == reference.how and not self._options.same_library:
            raise _Skip(f"{NO_REFERENCE} but {device.how} itself (--self)")
        return reference, device

    def _request(self, arguments: Sequence[Arguments], gradients: Sequence[Any]) -> Request:
        call = self._call
        return Request(call.prefix, call.api, tuple(arguments), tuple(gradients), self._options.seed, call.attributes)

    def _reference_request(self, data: _Data) -> Request:
        """The arguments in the reference's precision, then moved by what rounding them may have done."""
        dtype = reference_dtype(data.arguments, self._options.precision)
        arguments = [map_arguments(data.arguments, lambda leaf: raise_leaf(leaf, dtype))]
        gradients: list[Any] = [self._raised(data.gradients, dtype)]
        for repetition in range(_PERTURBATIONS):
            near = perturbed(data.arguments, self._options.seed, self._call.name, repetition)
            arguments.append(map_arguments(near, lambda leaf: raise_leaf(leaf, "float64")))
            gradients.append(self._moved(data.gradients, repetition))
        return self._request(arguments, gradients)

    @staticmethod
    def _raised(gradients: Sequence[Any] | None, dtype: str | None) -> tuple[Any, ...] | None:
        return None if gradients is None else tuple(raise_leaf(gradient, dtype) for gradient in gradients)

    def _moved(self, gradients: Sequence[Any] | None, repetition: int) -> tuple[Any, ...] | None:
        if gradients is None:
            return None
        words = (self._call.name, "perturbed gradient", str(repetition))
        return tuple(
            TypedArray("float64", moved(gradient, generator(self._options.seed, *words, str(number))))
            if isinstance(gradient, TypedArray)
            else None
            for number, gradient in enumerate(gradients)
        )

    def _settled(self, companion: Companion, request: Request) -> _Run | Refused | Raised:
        """Take an answer. What failed is tried once more in a fresh process, and then without its backward."""
        seconds = self._options.timeout
        answer = companion.answer(seconds)
        if isinstance(answer, Raised) and not answer.reason.startswith("timed out"):
            companion.renew()
            answer = _asked(companion, request, seconds)
        if isinstance(answer, Ran):
            return _run(answer)
        if request.output_gradients[0] is None:
            return answer
        if isinstance(answer, Raised):
            companion.renew()
        forward = replace(request, output_gradients=(None,) * len(request.arguments))
        without = _asked(companion, forward, seconds)
        return _run(without)._replace(reason=answer.reason) if isinstance(without, Ran) else without

    def _recorded(self) -> _Run | Refused:
        """What the dump holds of the results."""
        call = self._call
        if call.outputs is None:
            return Refused("no results were recorded")
        load = recorded_source(self._options.dump, None)

        def value(leaf: Any) -> Any:
            return load(leaf) if isinstance(leaf, RecordedTensor) else leaf

        try:
            outputs = tuple(map(value, call.outputs))
            gradients, reason = None, ""
            if call.input_gradients is not None:
                aligned = aligned_gradients(self._arguments(), call.input_gradients)
                gradients = None if aligned is None else (tuple(map(value, aligned)),)
                reason = "the recorded gradients do not fit the arguments" if aligned is None else ""
        except DumpFormatError as error:
            return Refused(f"data file missing: {error}")
        return _Run("recorded", (outputs,), gradients, reason)

    def _save(self, folder: Path, data: _Data, reference: _Run, device: _Run) -> None:
        sides = (reference, device)
        try:
            ErrorData(folder, self._call, self._options.framework).save(
                data.arguments,
                data.gradients or (),
                [side.outputs[0] for side in sides],
                [side.gradients[0] if side.gradients else None for side in sides],
            )
        except OSError as error:
            logger.warning("%s: tensors of %s cannot be written: %s", folder, self._call.name, error)

    # -- verdict ---------------------------------------------------------------------------------------------------

    def _judged(self, data: _Data, reference: _Run, device: _Run) -> tuple[Judged, ...]:
        rows = self._direction(FORWARD, data, reference.outputs, device.outputs[0], reference.how)
        if data.gradients is not None and reference.gradients is not None and device.gradients is not None:
            rows += self._direction(BACKWARD, data, reference.gradients, device.gradients[0], reference.how)
        return rows

    def _direction(
        self,
        direction: str,
        data: _Data,
        reference: Sequence[Sequence[Value] | None],
        device: Sequence[Value] | None,
        how: str,
    ) -> tuple[Judged, ...]:
        options, call = self._options, self._call
        first = reference[0]
        if first is None or device is None:
            return ()
        tensors = [leaf for leaf in (*argument_leaves(data.arguments), *(data.gradients or ()))
                   if isinstance(leaf, TypedArray)]  # fmt: skip
        rows = judge_outputs(
            ApiKey(options.framework, call.prefix, call.api, direction),
            f"{call.name}.{direction}",
            first,
            device,
            options.thresholds,
            profile=options.profile,
            elements=max((tensor.values.size for tensor in tensors), default=None),
            magnitude=max(map(_magnitude, tensors), default=0.0),
            expected=[_expected(bench, [_at(other, n) for other in reference[1:]]) for n, bench in enumerate(first)],
            reference=how,
        )
        return tuple(
            not_compared(row.name, first[number].reason, reference=how)
            if number < len(first) and isinstance(first[number], NotJudged)
            else row
            for number, row in enumerate(rows)
        )

    def _confirmed(self, data: _Data, reference: _Run, device: _Run, judged: tuple[Judged, ...]) -> tuple[Judged, ...]:
        """Run the API once more: an operator that gives something else each time is another fault."""
        assert self._device is not None
        again = _asked(self._device, self._request((data.arguments,), (data.gradients,)), self._options.timeout)
        if not isinstance(again, Ran):
            return judged
        second = {row.name: row.figures for row in self._judged(data, reference, _run(again))}
        return tuple(
            replace(row, message=f"{NOT_DETERMINISTIC}; {row.message}")
            if row.status is Status.ERROR and second.get(row.name, row.figures) != row.figures
            else row
            for row in judged
        )


def _asked(companion: Companion, request: Request, seconds: float) -> Answer:
    companion.ask(request)
    return companion.answer(seconds)


def _run(answer: Ran) -> _Run:
    outputs = tuple(None if outcome is None else outcome.outputs for outcome in answer.outcomes)
    gradients = tuple(None if outcome is None else outcome.gradients for outcome in answer.outcomes)
    return _Run(answer.how, outputs, gradients if gradients[0] else None)


def _magnitude(tensor: TypedArray) -> float:
    """The largest absolute value that is finite."""
    values = np.abs(tensor.values) if tensor.values.dtype.kind in "fiuc" else np.zeros(0)
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


def _at(values: Sequence[Value] | None, number: int) -> Value:
    return None if values is None or number >= len(values) else values[number]


def _expected(bench: Value, near: Sequence[Value]) -> np.ndarray | None:
    """How far each element of a result moves when the arguments are moved within their last place."""
    if not isinstance(bench, TypedArray) or bench.values.dtype.kind not in "fc":
        return None
    largest = np.zeros(bench.values.shape)
    for other in near:
        if isinstance(other, TypedArray) and other.values.shape == bench.values.shape:
            with np.errstate(all="ignore"):
                difference = np.abs(other.values - bench.values)
            same = (other.values == bench.values) | (np.isnan(other.values) & np.isnan(bench.values))
            largest = np.maximum(largest, np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference)))
    return largest
