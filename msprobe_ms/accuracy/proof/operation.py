"""An operation that can be run alone: in float64 by its reference, and as the framework of the dump computes it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msprobe_ms.accuracy.calls import map_arguments
from msprobe_ms.accuracy.execution.companion import CannotStart, Companion
from msprobe_ms.accuracy.execution.messages import Describe, Described, Raised, Ran, Request, Role
from msprobe_ms.accuracy.options import SEED, TIMEOUT
from msprobe_ms.accuracy.precision import raise_leaf
from msprobe_ms.accuracy.references import fused_reference
from msprobe_ms.dump.dialects import apis_of
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments, Value
from msprobe_ms.support.translation import tr

Gradients = Sequence[Any] | None


class CannotRun(Exception):
    """An operation has no reference, no kernel here, or does not take its arguments; the message is the reason."""


class Parameter(NamedTuple):
    """An argument that an operation takes; ``has_default`` says whether ``default`` is one."""

    name: str
    has_default: bool
    default: Value = None


class Workshop:
    """The processes that run operations, one for each framework and role, begun when they are first needed.

    ``reference_python``: the Python that has PyTorch for references, where this one has not
    """

    def __init__(self, seed: int = SEED, timeout: float = TIMEOUT, reference_python: str | None = None) -> None:
        self.seed, self._timeout, self._reference_python = seed, timeout, reference_python
        self._companions: dict[tuple[str, str], Companion] = {}
        #: Of those that do not start, the reason: trying takes seconds, as a framework is imported.
        self._absent: dict[tuple[str, str], str] = {}

    def begin(self, frameworks: Iterable[str]) -> None:
        """Begin the processes of these frameworks at the same time: importing one takes seconds."""
        for framework in dict.fromkeys(frameworks):
            for role in ("reference", "device"):
                self._companion(role, framework).begin()

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        for companion in self._companions.values():
            companion.close()
        self._companions.clear()

    def ask(self, role: str, framework: str, request: Request | Describe) -> Any:
        """Return what the process of this role answers. A request that fails is tried once more in a fresh process.

        :raises CannotRun: it does not start
        """
        if (role, framework) in self._absent:
            raise CannotRun(self._absent[role, framework])
        companion = self._companion(role, framework)
        try:
            companion.ask(request)
            answer = companion.answer(self._timeout)
            if isinstance(answer, Raised) and not answer.reason.startswith("timed out"):
                companion.renew()
                companion.ask(request)
                answer = companion.answer(self._timeout)
        except CannotStart as error:
            self._absent[role, framework] = reason = tr("{reason}", reason=error)
            raise CannotRun(reason) from error
        return answer

    def _companion(self, role: str, framework: str) -> Companion:
        if (role, framework) not in self._companions:
            interpreter = self._reference_python if role == "reference" else None
            self._companions[role, framework] = Companion(Role(role, framework), interpreter=interpreter)
        return self._companions[role, framework]


class Operation:
    """One API or primitive of a framework, with what it is made with.

    ``framework``, ``prefix``, ``api``  as the dump names them
    """

    def __init__(
        self, workshop: Workshop, framework: str, prefix: str, api: str, attributes: Mapping[str, Value] | None = None
    ) -> None:
        self.framework, self.prefix, self.api = framework, prefix, api
        self.attributes = dict(attributes or {})
        self._workshop = workshop
        self._formula = fused_reference(apis_of(framework), prefix, api)
        self._parameters: tuple[Parameter, ...] | None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes, in order; empty where nothing tells."""
        if self._parameters is None:
            self._parameters = self._read_parameters()
        return self._parameters

    def _read_parameters(self) -> tuple[Parameter, ...]:
        if self._formula is not None:
            return described(self._formula.signature)
        question = Describe(self.prefix, self.api, self.attributes)
        for role in ("reference", "device"):
            with suppress(CannotRun):
                answer = self._workshop.ask(role, self.framework, question)
                if isinstance(answer, Described) and answer.parameters:
                    return tuple(Parameter(*each) for each in answer.parameters)
        return ()

    def in_double(self, arguments: Arguments, gradients: Gradients = None) -> ApiOutcome:
        """Run the reference in float64.

        :raises CannotRun: there is none, or it does not take these arguments
        """
        raised = map_arguments(arguments, lambda leaf: raise_leaf(leaf, "float64"))
        seeds = None if gradients is None else tuple(raise_leaf(leaf, "float64") for leaf in gradients)
        if self._formula is not None:
            keywords = {**raised.keywords, **self.attributes}
            try:
                return self._formula.run(Arguments(raised.positional, keywords), seeds)
            except Exception as error:
                raise CannotRun(getattr(error, "reason", None) or tr("{reason}", reason=error)) from error
        return self._asked("reference", raised, seeds)

    def as_computed(self, arguments: Arguments, gradients: Gradients = None) -> ApiOutcome:
        """Run the framework's own operation in the dtypes of the arguments.

        :raises CannotRun: the framework is not installed, has no such operation, or it raises
        """
        return self._asked("device", arguments, None if gradients is None else tuple(gradients))

    def _asked(self, role: str, arguments: Arguments, gradients: Gradients) -> ApiOutcome:
        request = Request(self.prefix, self.api, (arguments,), (gradients,), self._workshop.seed, self.attributes)
        answer = self._workshop.ask(role, self.framework, request)
        if not isinstance(answer, Ran) or answer.outcomes[0] is None:
            raise CannotRun(getattr(answer, "reason", tr("no answer")))
        return answer.outcomes[0]

    def with_attributes(self, changes: Mapping[str, Value]) -> Operation:
        """Return the operation made with other attributes."""
        return Operation(self._workshop, self.framework, self.prefix, self.api, {**self.attributes, **changes})


def described(signature: inspect.Signature) -> tuple[Parameter, ...]:
    """Return the parameters of a signature, those that take any number of values left out."""
    plain = (
        each
        for each in signature.parameters.values()
        if each.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    )
    return tuple(
        Parameter(each.name, True, each.default)
        if each.default is not inspect.Parameter.empty
        else Parameter(each.name, False)
        for each in plain
    )
