"""A MindSpore training as it goes: the network whose gradients are computed, the optimizer's call."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from mindspore import nn, ops
from mindspore.experimental.optim import Optimizer
from mindspore.ops.composite.base import _Grad

from msprobe_ms.frameworks.training import ClassPatches, Listener

#: Functions followed from the one that is differentiated to the network it calls.
_MOST_FUNCTIONS = 200


class _Depth(threading.local):
    value = 0


def watch_training(listener: Listener) -> ClassPatches:
    """Tell ``listener`` of the training steps of this process until the result's ``remove``.

    A step's computing is the outermost gradient function, made by ``value_and_grad``, ``grad`` or ``GradOperation``, or
    the outermost ``TrainOneStepCell``, which ``Model`` makes too.
    """
    patches = ClassPatches()
    depth = _Depth()

    def computing(networks: Callable[[], Sequence[Any]], found: str, run: Callable[[], Any]) -> Any:
        if depth.value == 0:
            listener.computes(networks(), found)
        depth.value += 1
        try:
            return run()
        finally:
            depth.value -= 1
            if depth.value == 0:
                listener.pauses()

    def make_gradient(original: Any, operation: Any, function: Any, weights: Any = None, *rest: Any) -> Any:
        gradient = original(operation, function, weights, *rest)
        if not operation.pynative_:
            return gradient  # what the user gets, and a compiler may read; it comes back here when it is called
        found = f"given to {'GradOperation' if isinstance(operation, ops.GradOperation) else 'grad or value_and_grad'}"
        return lambda *args, **kwargs: computing(
            lambda: networks_of(function, weights), found, partial(gradient, *args, **kwargs)
        )

    def train_one_step(original: Any, cell: Any, *args: Any, **kwargs: Any) -> Any:
        found = f"given to {type(cell).__name__}"
        return computing(lambda: networks_of(cell.network, None), found, partial(original, cell, *args, **kwargs))

    def optimize(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        listener.pauses()
        result = original(optimizer, *args, **kwargs)
        listener.step_ends(type(optimizer).__name__)
        return result

    for operation in (ops.GradOperation, _Grad):
        patches.put(operation, "__call__", make_gradient)
    patches.put(nn.TrainOneStepCell, "__call__", train_one_step)
    for optimizer in (nn.Optimizer, Optimizer):
        patches.put(optimizer, "__call__", optimize)
    return patches


def networks_of(function: Any, weights: Any) -> Sequence[Any]:
    """The networks that ``function`` is or calls, outermost cells only; those of ``weights`` where they are given."""
    cells = {id(cell): cell for cell in _cells_in(function)}
    trained = _identities(weights)
    kept = [cell for cell in cells.values() if _trains(cell, trained)]
    inner = {id(child) for cell in kept for name, child in cell.cells_and_names() if name}
    return [cell for cell in kept if id(cell) not in inner]


def _identities(weights: Any) -> set[int]:
    if weights is None:
        return set()
    return {id(weight) for weight in (weights if isinstance(weights, (list, tuple)) else [weights])}


def _trains(cell: Any, trained: set[int]) -> bool:
    parameters = cell.trainable_params()
    return any(id(parameter) in trained for parameter in parameters) if trained else bool(parameters)


def _cells_in(function: Any) -> Iterator[Any]:
    """Cells that are ``function``, or that it can name: in its closure, its globals, its object, functions it calls."""
    waiting, seen = [function], set[int]()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (nn.Optimizer, Optimizer)):
            continue
        if isinstance(value, nn.WithLossCell):
            value = value.backbone_network  # what the user gave; its names are those of the plain network
        if isinstance(value, nn.Cell):
            yield value
        elif isinstance(value, partial):
            waiting += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, types.MethodType):
            owner = value.__self__
            waiting += (
                [owner] if isinstance(owner, nn.Cell) else [value.__func__, *getattr(owner, "__dict__", {}).values()]
            )
        elif isinstance(value, types.FunctionType):
            waiting += _named_by(value)


def _named_by(function: types.FunctionType) -> list[Any]:
    function = getattr(function, "__wrapped__", function)
    closure = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    names = [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    return [*closure, *(function.__defaults__ or ()), *names]


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name of the enclosing function that has no value yet
        return False
