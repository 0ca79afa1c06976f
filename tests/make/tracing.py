"""What a net computes, found without hooks: calls counted by replaced functions, gradients by zeros added to tensors.

Nothing here is the tool's: a call is seen because its function was replaced by one that counts; the gradient of a
tensor in the middle of a net is that of a zero added to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops

#: Where a tensor stands among the arguments or results of a call: ``("0", "left", "1")``.
Place = tuple[str, ...]

_MISSING: Any = object()


class Gradient(NamedTuple):
    """The loss's gradient of a tensor somewhere in a net."""

    value: np.ndarray
    #: Whether training needs it: other weights change the tensor, and the tensor changes the loss.
    needed: bool


@dataclass
class Traced:
    """One call, its tensors, and the gradients of those that are float32.

    Among gradients an argument stands by its number among those that hold tensors, keywords last.
    """

    base: str
    index: int
    parent: str | None
    inputs: dict[Place, np.ndarray] = field(default_factory=dict)
    outputs: dict[Place, np.ndarray] = field(default_factory=dict)
    input_gradients: dict[Place, Gradient] = field(default_factory=dict)
    output_gradients: dict[Place, Gradient] = field(default_factory=dict)

    @property
    def is_cell(self) -> bool:
        return self.base.startswith("Cell.")

    def entry(self, direction: str) -> str:
        """Its name in a dump."""
        return f"{self.base}.{direction}.{self.index}" if self.is_cell else f"{self.base}.{self.index}.{direction}"


def trace(
    make: Callable[[], tuple[nn.Cell, Tensor, Tensor]],
    loss: Callable[[nn.Cell, Tensor, Tensor], Tensor],
    apis: Iterable[str],
    hidden: Callable[[str], bool] = lambda name: False,
) -> list[Traced]:
    """Every call of the net's Cells and of ``apis``, in the order in which they end, with values and gradients.

    ``hidden`` says which Cells are not looked at.
    """
    apis = list(dict.fromkeys(apis))

    def run(tracer: _Tracer, change: float = 0) -> Tensor:
        net, x, labels = make()
        for parameter in net.trainable_params() if change else ():
            parameter.set_data(parameter * (1 + change) + change)
        with tracer.watching(net, apis):
            return loss(net, x, labels)

    tracer, changed = _Tracer(hidden), _Tracer(hidden)
    run(tracer)
    run(changed, 0.01)

    def probed(*probes: Tensor) -> Tensor:
        again = _Tracer(hidden, list(probes))
        result = run(again)
        assert not again.probes
        return result

    zeros = [Tensor(np.zeros_like(value)) for value, _, _ in tracer.probed]
    gradients = ms.grad(probed, tuple(range(len(zeros))))(*zeros)
    for (value, noted, place), (other, _, _), gradient in zip(tracer.probed, changed.probed, gradients, strict=True):
        array = gradient.asnumpy().copy()
        noted[place] = Gradient(array, bool(array.any()) and not np.array_equal(value, other))
    return tracer.calls


class _Tracer:
    """Counts the calls of one run and notes their tensors; with ``probes``, adds these to them on the way."""

    def __init__(self, hidden: Callable[[str], bool], probes: list[Any] | None = None) -> None:
        self.calls: list[Traced] = []
        #: Every tensor that can take a gradient, in the order in which they were met: where its gradient is noted.
        self.probed: list[tuple[np.ndarray, dict[Place, Gradient], Place]] = []
        self.probes = probes
        self._hidden = hidden
        self._counts: Counter[str] = Counter()
        self._open: list[Traced] = []
        self._at_work = False

    @contextmanager
    def watching(self, net: nn.Cell, names: Iterable[str]) -> Iterator[None]:
        with ExitStack() as undo:
            for holder, attribute, base_of in _functions(net, names):
                undo.callback(_put_back, holder, attribute, vars(holder).get(attribute, _MISSING))
                setattr(holder, attribute, self._wrapped(base_of, getattr(holder, attribute)))
            for name, cell in net.cells_and_names():
                # Of the nets traced none holds a parameter of its own that a Cell below it holds too.
                if (name or cell._params) and not self._hidden(name):
                    base = ".".join(filter(None, ("Cell", name, type(cell).__name__)))
                    cell.construct = self._wrapped(lambda *_, base=base: base, cell.construct)
            yield

    def _wrapped(self, base_of: Callable[..., str], original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if self._at_work or (self._open and not self._open[-1].is_cell):
                return original(*args, **kwargs)
            base = base_of(*args)
            parent = next((call for call in reversed(self._open) if call.is_cell), None)
            call = Traced(base, self._counts[base], parent and parent.entry("forward"))
            self._counts[base] += 1
            operator, args = (args[:1], args[1:]) if base.startswith("Primitive.") else ((), args)
            keys, values = [*map(str, range(len(args))), *kwargs], [*args, *kwargs.values()]
            given = [
                self._met(value, (call.inputs, (key,)), (call.input_gradients, (place,)))
                for key, value, place in zip(keys, values, _tensor_numbers(values), strict=True)
            ]
            self._open.append(call)
            try:
                output = original(*operator, *given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))
            finally:
                self._open.pop()
            self.calls.append(call)
            if isinstance(output, Parameter):  # handed on, and not a result
                call.outputs["0",] = output.asnumpy().copy()
                return output
            several = isinstance(output, (tuple, list))
            results = self._met(output if several else [output], (call.outputs, ()), (call.output_gradients, ()))
            return results if several else results[0]

        return wrapper

    def _met(self, value: Any, values: tuple[Any, Place], gradients: tuple[Any, Place]) -> Any:
        """Note every tensor of ``value``; gives it back, with probes added to its tensors."""
        if isinstance(value, (dict, list, tuple)):
            named = isinstance(value, dict)
            members = list(value.values()) if named else list(value)
            keys = [str(key) for key in value] if named else [str(index) for index in range(len(value))]
            below = [
                self._met(member, (values[0], (*values[1], key)), (gradients[0], (*gradients[1], place)))
                for member, key, place in zip(members, keys, keys if named else _tensor_numbers(members), strict=True)
            ]
            return dict(zip(value, below, strict=True)) if named else type(value)(below)
        if not isinstance(value, Tensor):
            return value
        self._at_work = True
        try:
            values[0][values[1]] = array = value.asnumpy().copy()
            if value.dtype != ms.float32 or (isinstance(value, Parameter) and not value.requires_grad):
                return value
            self.probed.append((array, *gradients))
            return value if self.probes is None else ops.Add()(value, self.probes.pop(0))
        finally:
            self._at_work = False


def _tensor_numbers(values: Iterable[Any]) -> list[str]:
    """The place of each value's gradient: what holds no tensor takes none."""
    before = 0
    numbers = []
    for value in values:
        numbers.append(str(before))
        before += _holds_tensor(value)
    return numbers


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (dict, list, tuple)):
        return any(_holds_tensor(member) for member in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, Tensor)


def _put_back(holder: Any, attribute: str, value: Any) -> None:
    if value is _MISSING:
        delattr(holder, attribute)
    else:
        setattr(holder, attribute, value)


def _functions(net: nn.Cell, names: Iterable[str]) -> Iterator[tuple[Any, str, Callable[..., str]]]:
    """Where the functions of these names are held, and what a call is named, from its arguments."""
    operators = {id(operator): (attribute, operator) for _, cell in reversed(list(net.cells_and_names()))
                 for attribute, operator in cell._primitives.items()}  # fmt: skip
    held = {type(operator).__name__: type(operator) for _, operator in operators.values()}
    done = set()
    for name in names:
        space, attribute, *rest = name.split(".")
        if space == "Primitive":
            (kind,) = rest
            if kind not in done:
                done.add(kind)
                yield held.get(kind) or getattr(ops, kind), "__call__", partial(_operator_base, operators)
        elif space == "Jit":
            cell = next((cell for cell in net.cells() if type(cell).__name__ == attribute), None)
            yield (net, attribute, lambda *_, n=name: n) if cell is None else (cell, "construct", lambda *_, n=name: n)
        else:
            yield {"Functional": ops, "Tensor": Tensor, "Mint": mint}[space], attribute, lambda *_, n=name: n


def _operator_base(operators: dict[int, tuple[str, Any]], operator: Any, *_: Any) -> str:
    kind = type(operator).__name__
    return f"Primitive.{operators.get(id(operator), (kind,))[0]}.{kind}"
