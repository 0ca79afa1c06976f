"""Run one call on both sides: make or load its arguments, run the API and, at the same time, its reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from multiprocessing import current_process
from threading import get_ident
from typing import Any, NamedTuple

from msprobe_ms.accuracy.calls import ApiCall, RecordedTensor, argument_leaves, map_arguments
from msprobe_ms.accuracy.data import CannotDraw, drawn
from msprobe_ms.accuracy.execution.companion import CannotStart, Companion
from msprobe_ms.accuracy.execution.messages import DEVICE, REFERENCE, Answer, Raised, Ran, Refused, Request, Role
from msprobe_ms.accuracy.execution.recorded import aligned_gradients, recorded_source, tensors_of
from msprobe_ms.accuracy.judging.reasons import DATA_FILE_MISSING, NO_REFERENCE
from msprobe_ms.accuracy.memory import missing_memory
from msprobe_ms.accuracy.options import Options
from msprobe_ms.accuracy.precision import raise_leaf, reference_dtype
from msprobe_ms.accuracy.reference_runs import Data, nearby
from msprobe_ms.accuracy.references import NotReproducible, fused_reference, with_valid_contents
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.dump.dialects import apis_of
from msprobe_ms.frameworks.api_calls import Arguments, Value
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError
from msprobe_ms.support.translation import tr


class Skip(Exception):
    """The call cannot be checked; the message is the reason."""


class Run(NamedTuple):
    """What one side gave. ``outputs`` and ``gradients`` of each set of arguments; None: it has none, for ``reason``."""

    how: str
    outputs: tuple[Sequence[Value] | None, ...]
    gradients: tuple[Sequence[Value] | None, ...] | None
    reason: str = ""


@cache
def _companion(thread: int, role: Role, **how: str | int | None) -> Companion:
    """The process of a role that this thread of this process asks; it ends with this one."""
    return Companion(role, **how)  # type: ignore[arg-type]


def _device_of(options: Options) -> int | None:
    """The device that this worker has: workers take turns."""
    if not options.devices:
        return None
    return options.devices[sum(current_process()._identity[-1:]) % len(options.devices)]


class Sides:
    """One call, and the two processes of this thread that run it: the device, and the reference."""

    def __init__(self, call: ApiCall, options: Options) -> None:
        self._call, self._options = call, options
        references = None if options.references is None else str(options.references)
        role = Role(REFERENCE, options.framework, references)
        self._reference = _companion(get_ident(), role, interpreter=options.reference_python)
        self._device = None
        if not options.recorded:
            self._device = _companion(get_ident(), Role(DEVICE, options.framework), device=_device_of(options))
            self._reference.begin()  # both import at the same time
            self._device.begin()

    @property
    def runs_device(self) -> bool:
        """Whether the API is run; else its recorded results are taken."""
        return self._device is not None

    # -- data ------------------------------------------------------------------------------------------------------

    def _fits_memory(self) -> None:
        call = self._call
        leaves = (*argument_leaves(self._arguments()), *(call.outputs or ()), *(call.output_gradients or ()))
        if need := missing_memory(leaves):
            raise Skip(tr("error: MemoryError: its tensors need {need:.1f} GiB here", need=need / 2**30))

    def _arguments(self) -> Arguments:
        if self._call.arguments is None:
            raise Skip(tr("no forward entry"))
        return self._call.arguments

    def data(self) -> Data:
        """Make or load arguments and incoming gradients.

        :raises Skip: they cannot be had
        """
        self._fits_memory()
        options, call = self._options, self._call
        source = (
            recorded_source(tensors_of(options.dump, options.tensor_folder))
            if options.real_data
            else drawn(call, options.seed)
        )

        def value(leaf: Any) -> Any:
            return source(leaf) if isinstance(leaf, RecordedTensor) else leaf

        try:
            gradients = None
            if (incoming := self._incoming()) is not None:
                source = source if call.output_gradients is not None else drawn(call, options.seed)
                gradients = tuple(source(leaf) if isinstance(leaf, RecordedTensor) else None for leaf in incoming)
            return Data(self._valid(map_arguments(self._arguments(), value)), gradients)
        except MissingTensorError as error:
            raise Skip(tr("{reason}: {error}", reason=DATA_FILE_MISSING, error=error)) from error
        except DumpFormatError as error:
            raise Skip(tr("data file cannot be read: {error}", error=error)) from error
        except CannotDraw as error:
            raise Skip(f"error: {error}") from error
        except NotReproducible as error:
            raise Skip(error.reason) from error

    def _valid(self, arguments: Arguments) -> Arguments:
        """Give drawn arguments the contents that a fused operator demands: masks of its mode, permutations."""
        call = self._call
        if self._options.real_data:
            return arguments
        reference = fused_reference(apis_of(self._options.framework), call.prefix, call.api)
        return arguments if reference is None else with_valid_contents(reference, arguments)

    def _incoming(self) -> Sequence[Value] | None:
        """What is known of the gradients with respect to the results; None: none are computed.

        Where none came although an argument is part of a gradient graph, or all are asked for, they are made up: an
        operator without a gradient, or with one of zeros, leaves no trace in a dump.
        """
        call = self._call
        if call.output_gradients is not None:
            known = any(isinstance(gradient, RecordedTensor) for gradient in call.output_gradients)
            return self._padded(call.output_gradients) if known else None
        floats = [leaf if isinstance(leaf, RecordedTensor) and parse_dtype(leaf.dtype).kind == "float" else None
                  for leaf in call.outputs or ()]  # fmt: skip
        arguments = argument_leaves(self._arguments())
        asked = self._options.all_gradients or any(
            isinstance(leaf, RecordedTensor) and leaf.requires_grad for leaf in arguments
        )
        if self._options.recorded or not asked or not any(floats):
            return None
        return [
            None if leaf is None else RecordedTensor(leaf.dtype, leaf.shape, 1.0, -1.0, place=f"backward.input.{place}")
            for place, leaf in enumerate(floats)
        ]

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

    def both(self, data: Data) -> tuple[Run, Run]:
        """Run the reference and, at the same time, the API.

        :raises Skip: either cannot be run
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
            raise Skip(f"error: {error}") from error
        if isinstance(reference, (Refused, Raised)):
            same = reference.reason.startswith(NO_REFERENCE)
            raise Skip(reference.reason if same else f"{NO_REFERENCE}: {reference.reason}")
        if isinstance(device, (Refused, Raised)):
            raise Skip(device.reason)
        if device.how == reference.how and not self._options.same_library:
            raise Skip(tr("the only reference is this {how} itself; check with --self", how=device.how))
        return reference, device

    def reference(self, data: Data) -> Run | None:
        """Run the reference alone; None where there is none. Raises Skip: its process does not start."""
        try:
            asked = self._reference_request(data)
            self._reference.ask(asked)
            answer = self._settled(self._reference, asked)
        except CannotStart as error:
            raise Skip(f"error: {error}") from error
        return answer if isinstance(answer, Run) else None

    def _request(self, arguments: Sequence[Arguments], gradients: Sequence[Any]) -> Request:
        call = self._call
        return Request(call.prefix, call.api, tuple(arguments), tuple(gradients), self._options.seed, call.attributes)

    def _reference_request(self, data: Data) -> Request:
        """The arguments in the reference's precision, then moved by what rounding them may have done."""
        dtype = reference_dtype(data.arguments, self._options.precision)
        arguments = [map_arguments(data.arguments, lambda leaf: raise_leaf(leaf, dtype))]
        gradients: list[Any] = [self._raised(data.gradients, dtype)]
        for near in nearby(data, self._options.seed, self._call.name):
            arguments.append(near.arguments)
            gradients.append(near.gradients)
        return self._request(arguments, gradients)

    @staticmethod
    def _raised(gradients: Sequence[Any] | None, dtype: str | None) -> tuple[Any, ...] | None:
        return None if gradients is None else tuple(raise_leaf(gradient, dtype) for gradient in gradients)

    def _settled(self, companion: Companion, request: Request) -> Run | Refused | Raised:
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

    def _recorded(self) -> Run | Refused:
        """What the dump holds of the results."""
        call = self._call
        if call.outputs is None:
            return Refused(tr("no results were recorded"))
        load = recorded_source(tensors_of(self._options.dump, self._options.tensor_folder))

        def value(leaf: Any) -> Any:
            return load(leaf) if isinstance(leaf, RecordedTensor) else leaf

        try:
            outputs = tuple(map(value, call.outputs))
            gradients, reason = None, ""
            if call.input_gradients is not None:
                aligned = aligned_gradients(self._arguments(), call.input_gradients)
                gradients = None if aligned is None else (tuple(map(value, aligned)),)
                reason = tr("the recorded gradients do not fit the arguments") if aligned is None else ""
        except DumpFormatError as error:
            return Refused(tr("{reason}: {error}", reason=DATA_FILE_MISSING, error=error))
        return Run("recorded", (outputs,), gradients, reason)

    def again(self, data: Data) -> Run | None:
        """Run the API once more on the same data; None where it fails now."""
        assert self._device is not None
        answer = _asked(self._device, self._request((data.arguments,), (data.gradients,)), self._options.timeout)
        return _run(answer) if isinstance(answer, Ran) else None


def _asked(companion: Companion, request: Request, seconds: float) -> Answer:
    companion.ask(request)
    return companion.answer(seconds)


def _run(answer: Ran) -> Run:
    outputs = tuple(None if outcome is None else outcome.outputs for outcome in answer.outcomes)
    gradients = tuple(None if outcome is None else outcome.gradients for outcome in answer.outcomes)
    return Run(answer.how, outputs, gradients if gradients[0] else None)
