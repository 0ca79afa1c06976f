"""What a reference is: a closed formula in float64, bound to an operator's own arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments, NotJudged
from msprobe_ms.support.translation import tr

__all__ = ["Computed", "FusedReference", "NotJudged", "NotReproducible"]

Array: TypeAlias = npt.NDArray[Any]


class NotReproducible(Exception):
    """Nothing can stand for this call: what it needs was not recorded, or the operator leaves the result open."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


#: A gradient of an argument: an array of its shape; None where none reaches it; ``NotJudged``; a list of a list's.
Gradient: TypeAlias = Any


@dataclass(frozen=True)
class Computed:
    """What a formula gives.

    ``outputs``   arrays, plain values and ``NotJudged``, in the operator's order
    ``backward``  from one gradient for each output (zeros where the loss does not depend on it; None for outputs that
                  have none) to those of arguments, by the formula's names; None where no gradient is defined
    """

    outputs: tuple[Any, ...]
    backward: Callable[..., Mapping[str, Gradient]] | None = None


#: A formula: floats arrive as float64 arrays, integers and bools as they are, plain values plain.
Formula: TypeAlias = Callable[..., Computed]


_FIRST_TENSOR = frozenset({"self", "input", "x"})


@dataclass(frozen=True)
class FusedReference:
    """The reference of one operator.

    ``signature``  the operator's own: names, order, defaults
    ``names``      the formula's name of each argument it reads
    ``unused``     arguments that must be at their default: nothing is known of what they do
    ``constants``  arguments of the formula that the operator fixes
    """

    name: str
    formula: Formula
    signature: inspect.Signature
    names: Mapping[str, str]
    unused: frozenset[str] = frozenset()
    constants: Mapping[str, Any] = field(default_factory=dict)

    def run(
        self, arguments: Arguments, output_gradients: Sequence[TypedArray | NotJudged | None] | None = None
    ) -> ApiOutcome:
        """Compute outputs, and gradients if those of the outputs are given, in float64.

        Outputs and gradients may hold ``NotJudged`` where others hold an array.

        :raises NotReproducible: the arguments are not the operator's, or nothing can stand for the call
        """
        values = {name: as_float64(value) for name, value in self.named(arguments).items()}
        try:
            with np.errstate(all="ignore"):
                computed = self.formula(**values, **self.constants)
                gradients = None if output_gradients is None else _gradients(computed, output_gradients)
        except NotReproducible:
            raise
        except Exception as error:
            raise NotReproducible(
                tr("the reference of {name} cannot take it: {error}", name=self.name, error=error)
            ) from error
        outputs = tuple(map(typed, computed.outputs))
        if gradients is None:
            return ApiOutcome(outputs)
        return ApiOutcome(outputs, tuple(self._in_order(arguments, gradients)))

    def named(self, arguments: Arguments) -> dict[str, Any]:
        """Return what the formula reads, by its names, defaults included.

        :raises NotReproducible: the arguments are not the operator's
        """
        keywords = {self.own_name(name): value for name, value in arguments.keywords.items()}
        try:
            bound = self.signature.bind(*arguments.positional, **keywords)
        except TypeError as error:
            raise NotReproducible(
                tr(
                    "{error}; the signature known is {name}{signature}",
                    error=error,
                    name=self.name,
                    signature=self.signature,
                )
            ) from None
        for name in self.unused & bound.arguments.keys():
            if not _equal(bound.arguments[name], self.signature.parameters[name].default):
                raise NotReproducible(tr("the reference of {name} has no {name2}", name=self.name, name2=name))
        bound.apply_defaults()
        return {self.names[own]: value for own, value in bound.arguments.items() if own in self.names}

    def own_name(self, name: str) -> str:
        """Return the name of an argument here; documents and versions call an operator's first tensor differently."""
        first = next(iter(self.signature.parameters))
        return first if {name, first} <= _FIRST_TENSOR else name

    def _in_order(self, arguments: Arguments, gradients: Mapping[str, Gradient]) -> Iterator[Any]:
        """The gradients as ``ApiOutcome`` has them: one for each floating-point tensor, as the call passed it."""
        positional = zip(self.signature.parameters, arguments.positional, strict=False)
        for name, value in (*positional, *arguments.keywords.items()):
            for _, gradient in _float_leaves(value, gradients.get(self.names.get(self.own_name(name), ""))):
                yield typed(gradient)


def as_float64(value: Any) -> Any:
    """Tensors as arrays, floats among them in float64; containers of them likewise."""
    if isinstance(value, TypedArray):
        return np.asarray(value.values, np.float64) if is_float(value) else np.asarray(value.values)
    if isinstance(value, list) or type(value) is tuple:
        return type(value)(as_float64(each) for each in value)
    if isinstance(value, dict):
        return {key: as_float64(each) for key, each in value.items()}
    return value


def typed(value: Any) -> Any:
    """An array with its dtype; anything else as it is."""
    if isinstance(value, (TypedArray, NotJudged)) or not isinstance(value, (np.ndarray, np.generic)):
        return value
    return TypedArray(value.dtype.name, np.asarray(value))


def float_tensors(arguments: Arguments) -> Iterator[TypedArray]:
    """The floating-point tensors of a call, as ``ApiOutcome.gradients`` has them."""
    for value in (*arguments.positional, *arguments.keywords.values()):
        yield from (leaf for leaf, _ in _float_leaves(value, None))


def is_float(tensor: TypedArray) -> bool:
    """Whether a tensor is of a real floating-point dtype."""
    return tensor.dtype.startswith(("float", "bfloat", "hifloat"))


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which an argument of ``shape`` was broadcast."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=stretched, keepdims=True)


def _gradients(computed: Computed, given: Sequence[TypedArray | NotJudged | None]) -> Mapping[str, Gradient]:
    """Those of the arguments by the formula's names; empty where no gradient is defined or none arrives."""
    if len(given) != len(computed.outputs):
        raise NotReproducible(
            tr("{count} gradients for {count2} outputs", count=len(given), count2=len(computed.outputs))
        )
    if computed.backward is None or not any(isinstance(each, TypedArray) for each in given):
        return {}
    return computed.backward(*map(_output_gradient, computed.outputs, given))


def _output_gradient(output: Any, given: TypedArray | NotJudged | None) -> Array | None:
    if not isinstance(given, TypedArray):
        return np.zeros_like(output) if isinstance(output, np.ndarray) and output.dtype.kind == "f" else None
    if isinstance(output, np.ndarray) and output.shape != given.values.shape:
        raise NotReproducible(
            tr(
                "a gradient of shape {shape} for an output of shape {shape2}",
                shape=given.values.shape,
                shape2=output.shape,
            )
        )
    return np.asarray(given.values, np.float64)


def _float_leaves(value: Any, gradient: Gradient) -> Iterator[tuple[TypedArray, Gradient]]:
    """The floating-point tensors in an argument, depth first, each with its gradient."""
    if isinstance(value, TypedArray):
        if is_float(value):
            yield value, gradient
    elif isinstance(value, (list, tuple)):
        for place, each in enumerate(value):
            yield from _float_leaves(each, gradient[place] if isinstance(gradient, list) else None)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _float_leaves(each, None)


def _equal(value: Any, default: Any) -> bool:
    same_type = type(value) is type(default) and not isinstance(value, TypedArray)
    return value is default or (same_type and value == default)
