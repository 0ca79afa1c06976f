"""What each role of a process runs: the framework's own APIs, or the references that stand for them.

References in their order: the user's, formulae of fused operators, the same operation in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from msprobe_ms.accuracy.execution.messages import DEVICE, Role
from msprobe_ms.accuracy.execution.runnable import Find, Runnable
from msprobe_ms.accuracy.judging.reasons import NO_REFERENCE
from msprobe_ms.accuracy.references.user import find_reference, user_references
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.dialects import PRIMITIVE, PYTORCH, apis_of
from msprobe_ms.frameworks import runner
from msprobe_ms.frameworks.api_calls import ApiOutcome, ApiRunner, Arguments, Value
from msprobe_ms.support.translation import tr


def finder(role: Role) -> tuple[Find, Callable[[int], None]]:
    """Return what finds an API's runnable in this process, and what seeds its random generators."""
    if role.name == DEVICE:
        own = runner(role.framework)
        own.use_accelerator()
        return _OfDevice(own), own.seed
    torch = runner(role.imports)
    return _OfReference(torch, apis_of(role.framework), role.references), torch.seed


@dataclass(frozen=True, slots=True)
class _Function:
    """A function that a framework's runner calls."""

    how: str
    runner: ApiRunner
    function: Callable[..., Any]

    def run(self, arguments: Arguments, output_gradients: Sequence[TypedArray | None] | None) -> ApiOutcome:
        return self.runner.run(self.function, arguments, output_gradients)


@dataclass(frozen=True, slots=True)
class _Formula:
    """A reference in NumPy."""

    how: str
    reference: Any
    attributes: Mapping[str, Value]

    def run(self, arguments: Arguments, output_gradients: Sequence[TypedArray | None] | None) -> ApiOutcome:
        if self.attributes:
            arguments = Arguments(arguments.positional, {**arguments.keywords, **self.attributes})
        outcome: ApiOutcome = self.reference.run(arguments, output_gradients)
        return outcome


class _OfDevice:
    def __init__(self, own: ApiRunner) -> None:
        self._runner = own

    def __call__(self, prefix: str, api: str, attributes: Mapping[str, Value]) -> Runnable | str:
        function = self._runner.find(prefix, api, attributes)
        if function is not None:
            return _Function(self._runner.version, self._runner, function)
        if prefix == PRIMITIVE and not attributes:
            return tr("the dump does not hold what the primitive was made with")
        return tr("no API of that name in {version}", version=self._runner.version)


class _OfReference:
    def __init__(self, torch: Any, apis: str, references: str | None) -> None:
        self._torch = torch
        self._apis = apis
        self._users = user_references(None if references is None else Path(references))

    def __call__(self, prefix: str, api: str, attributes: Mapping[str, Value]) -> Runnable | str:
        if formula := find_reference(self._apis, prefix, api, self._users):
            return _Formula(f"formula: {formula.name}", formula, attributes)
        if self._apis == PYTORCH.apis:
            function = self._torch.find(prefix, api)
        else:
            function = self._torch.twin(prefix, api)
        if function is None:
            return NO_REFERENCE
        return _Function(self._torch.version, self._torch, partial(function, **attributes) if attributes else function)
