"""Arguments and results of single calls: trees of containers, from arrays to a framework's tensors and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument
from msprobe_ms.support.translation import tr


class _Place(NamedTuple):
    """Where a floating-point tensor belongs."""

    number: int


class Call:
    """A call's arguments as a framework takes them. Others can be put in place of its floating-point tensors.

    ``floats``, these tensors, are in the order of ``ApiOutcome.gradients``.
    """

    def __init__(self, arguments: Arguments, tensor: Callable[[TypedArray], Any], dtype: Callable[[str], Any]) -> None:
        self.floats: list[Any] = []

        def placed(value: Any) -> Any:
            if isinstance(value, DtypeArgument):
                return dtype(value.name)
            if not isinstance(value, TypedArray):
                return value
            if parse_dtype(value.dtype).kind != "float":
                return tensor(value)
            self.floats.append(tensor(value))
            return _Place(len(self.floats) - 1)

        self._positional = tuple(_rebuilt(value, placed) for value in arguments.positional)
        self._keywords = {name: _rebuilt(value, placed) for name, value in arguments.keywords.items()}

    def make(self, function: Callable[..., Any], floats: Sequence[Any]) -> Any:
        """Call ``function`` with ``floats`` for the call's own. Return its result; the argument it changed, if it
        returns nothing: the one a method is called on, or the first."""

        def filled(value: Any) -> Any:
            return floats[value.number] if isinstance(value, _Place) else value

        positional = [_rebuilt(value, filled) for value in self._positional]
        keywords = {name: _rebuilt(value, filled) for name, value in self._keywords.items()}
        result = function(*positional, **keywords)
        return next(iter([*positional, *keywords.values()]), None) if result is None else result


def _rebuilt(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """The same containers with every leaf replaced."""
    if isinstance(value, (TypedArray, DtypeArgument, _Place)):
        return leaf(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_rebuilt(each, leaf) for each in value)
    if isinstance(value, Mapping):
        return {key: _rebuilt(each, leaf) for key, each in value.items()}
    if isinstance(value, slice):
        return slice(*(_rebuilt(each, leaf) for each in (value.start, value.stop, value.step)))
    return leaf(value)


def flattened(result: Any) -> list[Any]:
    """Leaves of a result, depth first."""
    if isinstance(result, (tuple, list)):
        return [leaf for each in result for leaf in flattened(each)]
    if isinstance(result, Mapping):
        return [leaf for each in result.values() for leaf in flattened(each)]
    return [result]


def attribute(holder: Any, path: str) -> Any:
    """Return what a dotted path leads to from ``holder``; None where it leads nowhere."""
    for name in path.split("."):
        holder = getattr(holder, name, None)
    return holder


def wanted(outputs: Sequence[Any], gradients: Sequence[TypedArray | None]) -> Iterator[tuple[Any, TypedArray]]:
    """Yield each output that the loss depends on, with its gradient.

    :raises ValueError: these are not the gradients of these outputs
    """
    if len(outputs) != len(gradients):
        raise ValueError(
            tr("{count} gradients were given for {count2} outputs", count=len(gradients), count2=len(outputs))
        )
    for number, (output, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        if gradient is None or not hasattr(output, "shape"):
            continue
        if tuple(output.shape) != gradient.values.shape:
            shapes = tr("{shape} for an output of {shape2}", shape=gradient.values.shape, shape2=tuple(output.shape))
            raise ValueError(
                tr("the gradient of output {number} has another shape: {shapes}", number=number, shapes=shapes)
            )
        yield output, gradient
