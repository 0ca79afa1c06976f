"""Running single APIs, as far as it is the same in all frameworks: find them, read results, tell why a call failed."""

from __future__ import annotations

import ctypes
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import (
    NOTHING,
    ApiOutcome,
    ApiRunner,
    Arguments,
    DtypeArgument,
    NoGradientError,
    NoKernelError,
    Value,
)
from msprobe_ms.frameworks.api_lists import listed
from msprobe_ms.frameworks.api_values import Call, flattened
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.interface.apis import Namespace


class FrameworkRunner(ApiRunner):
    """An ``ApiRunner`` that knows tensors and namespaces from the framework's seam for recording."""

    #: What the framework says where a device, or a device for these dtypes, has no kernel.
    no_kernel: re.Pattern[str]
    #: What it says where it knows no derivative.
    no_gradient: re.Pattern[str]

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._namespaces: Sequence[Namespace] = framework.namespaces()
        self._listed = listed(framework.api_lists)

    def find(self, prefix: str, api: str, attributes: Mapping[str, Value] = NOTHING) -> Callable[..., Any] | None:
        """As in ``ApiRunner``; what exchanges tensors with other processes is not found.

        Names come from dumps, which a stranger may have made, and modules hold more than what computes: ``os``,
        ``load``, what compiles. Only what ``is_operator`` says of is looked for.
        """
        for namespace in self._namespaces:
            if namespace.prefix == prefix and not namespace.communicates and self.is_operator(namespace, api):
                found = getattr(namespace.holder, api, None)
                if callable(found):
                    return found
        return None

    def is_operator(self, namespace: Namespace, api: str) -> bool:
        """Return whether ``api`` names what computes with tensors and does nothing else: those that are recorded do."""
        return api in self._listed.get(namespace.path, ())

    def run(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        output_gradients: Sequence[TypedArray | None] | None = None,
    ) -> ApiOutcome:
        call = Call(arguments, self._tensor, self._dtype)
        try:
            if output_gradients is None:
                return ApiOutcome(self._undifferentiated(function, call))
            if not call.floats or all(gradient is None for gradient in output_gradients):
                return ApiOutcome(self._undifferentiated(function, call), (None,) * len(call.floats))
            return self._differentiated(function, call, output_gradients)
        except Exception as error:
            text = str(error)
            if self.no_gradient.search(text):
                raise NoGradientError(_first_line(text)) from error
            if self.no_kernel.search(text):
                raise NoKernelError(_first_line(text)) from error
            raise
        finally:
            restore_arithmetic()

    def _undifferentiated(self, function: Callable[..., Any], call: Call) -> tuple[TypedArray | Any, ...]:
        return self._read(flattened(call.make(function, call.floats)))

    @abstractmethod
    def _differentiated(
        self, function: Callable[..., Any], call: Call, output_gradients: Sequence[TypedArray | None]
    ) -> ApiOutcome:
        """Make the call once; return its outputs and the gradients of ``call.floats``."""

    # -- values ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def _tensor(self, array: TypedArray) -> Any:
        """Return a new tensor of these values and this dtype."""

    @abstractmethod
    def _dtype(self, name: str) -> Any:
        """Return the framework's dtype of a name in numpy's spelling."""

    def _array(self, tensor: Any) -> TypedArray:
        name = parse_dtype(self._framework.dtype_text(tensor)).name
        return TypedArray(name, np.array(self._framework.to_numpy(tensor)))

    def _read(self, outputs: Sequence[Any]) -> tuple[TypedArray | Any, ...]:
        return tuple(self._leaf(value) for value in outputs)

    def _leaf(self, value: Any) -> Any:
        if self._framework.is_tensor(value):
            return self._array(value)
        leaf = self._framework.special_leaf(value)
        if leaf is not None and leaf["type"].endswith(".dtype"):
            return DtypeArgument(parse_dtype(leaf["value"]).name)
        return value


def restore_arithmetic() -> None:
    """Have this thread's processor compute as it does by default: some kernels (MindSpore's cosine_similarity) leave it
    taking numbers below the smallest normal one for zero."""
    default = ctypes.c_void_p(-1)  # FE_DFL_ENV of glibc
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libm.so.6").fesetenv(default)


def _first_line(text: str) -> str:
    """The first line that says something; some texts begin with a rule or with where in the source they come from."""
    lines = [line.strip() for line in text.splitlines() if any(character.isalpha() for character in line)]
    return next((line for line in lines if not line.startswith(("- ", "mindspore/"))), text.strip())
