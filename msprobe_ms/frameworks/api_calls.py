"""Run one API of a framework alone, on arrays: what checkers of single APIs ask of a framework.

Each framework implements it in its folder. It runs in processes of its own, never in a training.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from msprobe_ms.arrays.typed import TypedArray


class DtypeArgument(NamedTuple):
    """An argument that is a dtype, in numpy's spelling: ``float16``."""

    name: str


@dataclass(frozen=True, slots=True)
class NotJudged:
    """Stands in a reference for an output or a gradient that is not to be compared."""

    reason: str


#: An argument: a tensor, a dtype, a plain value (None, bool, int, float, complex, str, slice, Ellipsis), or a list,
#: tuple or dictionary of these. In results containers are as the framework returned them.
Value: TypeAlias = Any

#: No attributes.
NOTHING: Mapping[str, Value] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Arguments:
    """What an API is called with. A method's first positional argument is the tensor it is called on."""

    positional: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApiOutcome:
    """What a call gave.

    ``outputs``    tensors and plain values of the result, flattened depth first; None stands where the result has None.
                   Of an API that works in place and returns nothing else, the argument it changed.
    ``gradients``  one for each floating-point tensor among the arguments, positional ones first, flattened depth first;
                   None where no gradient reaches it. Empty where no gradients were asked for.
    """

    outputs: tuple[TypedArray | Value, ...]
    gradients: tuple[TypedArray | None, ...] = ()


class NoKernelError(Exception):
    """The API exists, but not for this device or these dtypes."""


class NoGradientError(NoKernelError):
    """The API can be called, but the framework has no derivative of it."""


class ApiRunner(ABC):
    """Calls single APIs of one framework."""

    #: The framework's name, version and device, for reports: ``mindspore 2.10.0 on CPU``.
    version: str

    def use_accelerator(self) -> None:  # noqa: B027 (most frameworks choose by themselves)
        """Run on the accelerator from here on, where there is one."""

    @abstractmethod
    def find(self, prefix: str, api: str, attributes: Mapping[str, Value] = NOTHING) -> Callable[..., Any] | None:
        """Return what entries ``{prefix}.{api}.{n}`` call (docs/format.md, "Entry names"); None if there is none.

        ``attributes``: what a primitive is made with, by the names of its constructor's arguments.
        """

    @abstractmethod
    def run(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        output_gradients: Sequence[TypedArray | None] | None = None,
    ) -> ApiOutcome:
        """Call ``function`` and wait for its results.

        ``output_gradients``: one for each output as ``ApiOutcome.outputs`` has them; None where the loss does not
        depend on it. With them, the gradients are computed as well.

        :raises NoKernelError: the device has no kernel for it
        :raises NoGradientError: the framework cannot differentiate it; the call itself may be fine
        :raises Exception: whatever the API raises
        """

    @abstractmethod
    def seed(self, seed: int) -> None:
        """Seed the framework's random generators."""
