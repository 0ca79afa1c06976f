"""A MindSpore training as it goes: the networks whose gradients are computed, the optimizers' calls."""

from __future__ import annotations

import gc
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import mindspore
from mindspore import nn, ops
from mindspore.experimental.optim import Optimizer
from mindspore.ops.composite.base import _Grad

from msprobe_ms.frameworks.mindspore import jit
from msprobe_ms.frameworks.mindspore import msadapter_training as msadapter
from msprobe_ms.frameworks.training import ClassPatches, Listener, Networks, answer
from msprobe_ms.support.translation import tr

#: Functions followed from the one that is differentiated to the network it calls.
_MOST_FUNCTIONS = 200

#: Classes of optimizers, below which all others are.
OPTIMIZERS = (nn.Optimizer, Optimizer)

#: Names by which a function makes gradients.
_GRADIENTS = frozenset({"value_and_grad", "grad", "GradOperation"})
#: What MindSpore calls the functions that these make.
_GRADIENT = "after_grad"


class _Depth(threading.local):
    value = 0


class MindSporeNetworks(Networks):
    """Cells, and the optimizers of ``nn`` and ``experimental.optim``; modules and optimizers of MSAdapter."""

    def trainable(self, network: Any) -> Iterable[Any]:
        return _trainable(network)

    def modules(self, network: Any) -> Iterable[Any]:
        return _parts(network)

    def device(self, network: Any) -> str:
        return str(mindspore.get_context("device_target")).lower()

    def of_optimizer(self, optimizer: Any) -> Iterable[Any]:
        return msadapter.of_optimizer(optimizer) if msadapter.is_optimizer(optimizer) else optimizer.parameters

    def alive(self) -> Iterable[Any]:
        return [value for value in gc.get_objects() if _is_network(value) and not _wraps(value)]


def _is_network(value: Any) -> bool:
    is_cell = issubclass(type(value), nn.Cell) and not issubclass(type(value), OPTIMIZERS)
    return is_cell or msadapter.is_module(value)


def _trainable(network: Any) -> Sequence[Any]:
    return network.trainable_params() if isinstance(network, nn.Cell) else msadapter.trainable(network)


def _parts(network: Any) -> Iterable[Any]:
    """A network and all below it, itself first."""
    if isinstance(network, nn.Cell):
        return (cell for _, cell in network.cells_and_names())
    return network.modules()


def find_networks() -> Networks:
    return MindSporeNetworks()


def _wraps(cell: Any) -> bool:
    """Whether a cell is one of MindSpore's own around a network: what the user gave stands in it."""
    return isinstance(cell, nn.TrainOneStepCell) or type(cell).__module__.startswith("mindspore.nn.wrap.")


class MindSporePatches(ClassPatches):
    """What watches MindSpore, and MSAdapter once that is imported."""

    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._watch = watch

    def watch_msadapter(self) -> None:
        """Watch the modules and optimizers of MSAdapter's ``torch`` as well."""
        module, optimizer = msadapter.module_class(), msadapter.optimizer_class()
        if module is not None:
            self.put(module, "__call__", self._watch.call_module)
        if optimizer is not None:
            self.put(optimizer, "__init__", self._watch.make_torch_optimizer)


def watch_training(listener: Listener) -> MindSporePatches:
    """Tell ``listener`` of the training steps of this process until the result's ``remove``.

    Computing is the outermost gradient function, made by ``value_and_grad``, ``grad`` or ``GradOperation``, the
    outermost ``TrainOneStepCell``, which ``Model`` makes too, or a jitted function that reaches a network. Before there
    is an optimizer, the call of a Cell that has parameters and stands in no other is computing, too.
    """
    watch = _Watch(listener)
    patches = MindSporePatches(watch)
    for operation in (ops.GradOperation, _Grad):
        patches.put(operation, "__call__", watch.make_gradient)
    patches.put(nn.Cell, "__call__", watch.call_cell)
    patches.put(nn.TrainOneStepCell, "__call__", watch.train_one_step)
    for optimizer in OPTIMIZERS:
        patches.put(optimizer, "__init__", watch.make_optimizer)
        patches.put(optimizer, "__call__", watch.optimize)
    for holder, name in jit.graph_calls():
        patches.put(holder, name, watch.run_graph)
    return patches


class _Watch:
    """What the methods of MindSpore do that a training runs through: each is given the original and its arguments."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._depth = _Depth()
        #: By identity: a script's optimizers may have no hash.
        self._optimizers: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._trained_in_mode: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def _computing(self, networks: Callable[[], Sequence[Any]], found: str, run: Callable[[], Any]) -> Any:
        if self._depth.value == 0:
            self._listener.computes(answer(networks, ()), found)
        self._depth.value += 1
        try:
            return run()
        finally:
            self._depth.value -= 1
            if self._depth.value == 0:
                self._listener.pauses()

    def make_gradient(self, original: Any, operation: Any, function: Any, weights: Any = None, *rest: Any) -> Any:
        gradient = original(operation, function, weights, *rest)
        if not operation.pynative_:
            return gradient  # what the user gets, and a compiler may read; it comes back here when it is called
        found = tr(
            "given to {name}",
            name="GradOperation" if isinstance(operation, ops.GradOperation) else tr("grad or value_and_grad"),
        )

        return lambda *args, **kwargs: self._computing(
            lambda: networks_of(function, weights), found, partial(gradient, *args, **kwargs)
        )

    def train_one_step(self, original: Any, cell: Any, *args: Any, **kwargs: Any) -> Any:
        found = tr("given to {name}", name=type(cell).__name__)
        return self._computing(lambda: networks_of(cell.network, None), found, partial(original, cell, *args, **kwargs))

    def run_graph(self, original: Any, executor: Any, *args: Any, **kwargs: Any) -> Any:
        training = answer(lambda: self._trained_by(executor, args), None) if self._depth.value == 0 else None
        if training is None:
            return original(executor, *args, **kwargs)
        name, networks, inside = training
        # Called once more by its name: from now on its calls are recorded.
        found = tr(
            "run by the jitted {name}, one entry in all; {how_to_uncompile}",
            name=name,
            how_to_uncompile=jit.HOW_TO_UNCOMPILE,
        )
        result = self._computing(lambda: networks, found, lambda: executor(*args, **kwargs))
        for optimizer in inside:
            self._listener.optimizer_ran(optimizer)
        return result

    def _trained_by(self, executor: Any, args: Any) -> tuple[str, Sequence[Any], Sequence[Any]] | None:
        """The name of a graph, the networks that it trains or calls, and the optimizers in it; None for others."""
        call = jit.describe(executor, args)
        if call is None or call.frameworks_own:
            return None
        inside = optimizers_in(executor.fn)
        networks = networks_of(executor.fn if executor.obj is None else executor.obj, None)
        # With an optimizer elsewhere, a graph without gradients is an evaluation.
        if not networks or (self._optimizers and not inside and not differentiates(executor.fn)):
            return None
        return call.name, networks, inside

    def call_cell(self, original: Any, cell: Any, *args: Any, **kwargs: Any) -> Any:
        if self._depth.value or self._optimizers or not answer(lambda: _has_parameters(cell), False):
            return original(cell, *args, **kwargs)

        def networks() -> Sequence[Any]:
            return [child for child in cell.cells() if _has_parameters(child)] if _wraps(cell) else [cell]

        return self._computing(networks, tr("the outermost Cell called"), partial(original, cell, *args, **kwargs))

    def call_module(self, original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        """The call of a module of MSAdapter: where nothing else computes, backward follows and an optimizer ends it."""
        if self._depth.value == 0 and not answer(lambda: self._is_evaluation(module), False):
            self._listener.computes([module], tr("the outermost module called"))
        self._depth.value += 1
        try:
            return original(module, *args, **kwargs)
        finally:
            self._depth.value -= 1

    def _is_evaluation(self, module: Any) -> bool:
        if module.training:
            self._trained_in_mode[id(module)] = module
        if not msadapter.trainable(module):
            return True
        return bool(self._optimizers) and not module.training and id(module) in self._trained_in_mode

    def make_torch_optimizer(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        original(optimizer, *args, **kwargs)
        if self._optimizers.get(id(optimizer)) is not optimizer:
            self._optimizers[id(optimizer)] = optimizer
            optimizer.register_step_pre_hook(lambda *_: self._listener.pauses())
            optimizer.register_step_post_hook(lambda made, *_: self._listener.optimizer_ran(made))
            self._listener.optimizer_made(optimizer)

    def make_optimizer(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        original(optimizer, *args, **kwargs)
        if self._optimizers.get(id(optimizer)) is not optimizer:
            self._optimizers[id(optimizer)] = optimizer
            self._listener.optimizer_made(optimizer)

    def optimize(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        self._listener.pauses()
        result = original(optimizer, *args, **kwargs)
        self._listener.optimizer_ran(optimizer)
        return result


def _has_parameters(cell: Any) -> bool:
    return next(iter(cell.get_parameters()), None) is not None


def networks_of(function: Any, weights: Any) -> Sequence[Any]:
    """The networks that ``function`` is or calls, outermost cells only; those of ``weights`` where they are given."""
    cells = {id(cell): cell for cell in _cells_in(function)}
    trained = _identities(weights)
    kept = [cell for cell in cells.values() if _trains(cell, trained)]
    inner = {id(part) for cell in kept for part in _parts(cell) if part is not cell}
    return [cell for cell in kept if id(cell) not in inner]


def _identities(weights: Any) -> set[int]:
    if weights is None:
        return set()
    return {id(weight) for weight in (weights if isinstance(weights, (list, tuple)) else [weights])}


def _trains(cell: Any, trained: set[int]) -> bool:
    parameters = _trainable(cell)
    return any(id(parameter) in trained for parameter in parameters) if trained else bool(parameters)


def _cells_in(function: Any) -> Iterator[Any]:
    """Cells that are ``function``, or that it can name: in its closure, its globals, its object, functions it calls."""
    for value in _reached(function):
        if isinstance(value, nn.TrainOneStepCell):
            value = value.network
        if isinstance(value, nn.WithLossCell):
            value = value.backbone_network  # what the user gave; its names are those of the plain network
        if _is_network(value):
            yield value


def optimizers_in(function: Any) -> Sequence[Any]:
    """The optimizers that a function can name, or those of steps that it can name."""
    cells = [value.optimizer if isinstance(value, nn.TrainOneStepCell) else value for value in _reached(function)]
    return [cell for cell in cells if isinstance(cell, OPTIMIZERS)]


def differentiates(function: Any) -> bool:
    """Whether a function makes gradients, or calls one that does."""
    return any(
        isinstance(value, types.FunctionType)
        and (value.__name__ == _GRADIENT or not _GRADIENTS.isdisjoint(value.__code__.co_names))
        for value in _reached(function)
    )


def makes_gradients(cell: nn.Cell) -> bool:
    """Whether a Cell holds what computes gradients."""
    return any(isinstance(value, (ops.GradOperation, _Grad)) for value in vars(cell).values())


def is_trained(networks: Sequence[nn.Cell]) -> bool:
    """Whether there is an optimizer of parameters of these networks."""
    trained = {id(parameter) for network in networks for parameter in network.trainable_params()}
    optimizers = [value for value in gc.get_objects() if issubclass(type(value), OPTIMIZERS)]
    return any(id(parameter) in trained for optimizer in optimizers for parameter in optimizer.parameters)


def _reached(function: Any) -> Iterator[Any]:
    """Objects that a function can name, and those that these can, where they are functions."""
    waiting, seen = [function], set[int]()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, nn.Cell) or msadapter.is_module(value):
            continue
        if isinstance(value, partial):
            waiting += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, types.MethodType):
            owner = value.__self__
            waiting += (
                [owner]
                if isinstance(owner, nn.Cell) or msadapter.is_module(owner)
                else [value.__func__, *getattr(owner, "__dict__", {}).values()]
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
