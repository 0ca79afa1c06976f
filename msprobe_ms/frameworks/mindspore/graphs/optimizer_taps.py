"""Optimizers inside MindSpore's compiled graphs, on the CPU: callbacks tell the gradients that they are given."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, NamedTuple

import mindspore
import numpy as np
from mindspore import Tensor, ops

from msprobe_ms.frameworks.graph_observer import UpdateObserver
from msprobe_ms.frameworks.mindspore.graphs.callbacks import DONE, unpacked
from msprobe_ms.frameworks.mindspore.graphs.marking import MarkedGraphs, plain_construct
from msprobe_ms.frameworks.mindspore.graphs.seeds import next_seeds, put_back
from msprobe_ms.frameworks.mindspore.graphs.source import NOTHING, SINGLE, callback, form_of
from msprobe_ms.frameworks.mindspore.training import OPTIMIZERS
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.translation import tr


class _Callbacks(NamedTuple):
    """What running graphs call."""

    begin: Any
    gradient: Any
    end: Any


class OptimizerTaps(MarkedGraphs):
    """Compiles what tells an observer of optimizers' calls into the graphs that make them.

    Gradients go on as they are: nothing waits for what a callback returns. They are told in the order of the program.
    """

    def __init__(self) -> None:
        super().__init__()
        self._observer: UpdateObserver | None = None
        #: What numbers in compiled graphs stand for: parameters' names and how gradients are told; optimizers.
        self._places: list[tuple[str, int]] = []
        self._numbers: dict[int, int] = {}

    @cached_property
    def _callbacks(self) -> _Callbacks:
        """Made when something is compiled, so that a process without graphs has none of it."""
        return _Callbacks(
            begin=callback(lambda number: self._told(self._on_begin, number)),
            gradient=callback(lambda gradient, place: self._told(self._on_gradient, gradient, place)),
            end=callback(lambda number: self._told(self._on_end, number)),
        )

    def install(self, observer: UpdateObserver) -> None:
        self._observer = observer
        self._mark_graphs()

    def forget(self) -> None:
        self._observer = None

    # -- compiling -------------------------------------------------------------------------------------------------

    def _compiling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(executor: Any, compiled: Any, args: Any, kwargs: Any, phase: str, *others: Any) -> Any:
            plain = partial(original, executor, compiled, args, kwargs, phase, *others)
            seeds, was_compiled = next_seeds(), executor.has_compiled(phase.replace(self._marking, ""))
            try:
                with self._tapping():
                    return plain()
            except Exception as error:
                if interrupts(error):
                    raise
                # Once more without us; a mistake of the user's is raised by this.
                put_back(seeds)
                result = plain()
                if self._observer is not None:
                    self._observer.failed(
                        error, tr("an optimizer in a graph that does not compile with callbacks in it")
                    )
                return result
            finally:
                if was_compiled:
                    put_back(seeds)

        return compile

    @contextmanager
    def _tapping(self) -> Iterator[None]:
        """Every optimizer's ``construct``, as long as something is compiled."""
        before: list[tuple[Any, Any]] = []
        try:
            for optimizer in _optimizers():
                names = {} if self._observer is None else self._observer.watched(optimizer)
                if not names:
                    continue
                held = vars(optimizer)
                construct = self._construct_of(optimizer, names, plain_construct(optimizer))
                before.append((optimizer, held.get("construct")))
                held["construct"] = types.MethodType(construct, optimizer)
            yield
        finally:
            for optimizer, construct in before:
                vars(optimizer).pop("construct", None)
                if construct is not None:
                    vars(optimizer)["construct"] = construct

    def _construct_of(self, optimizer: Any, names: Mapping[int, str], original: Any) -> Callable[..., Any]:
        """A call of ``original`` whose gradients are told, for the parser."""
        number = Tensor([self._numbers.setdefault(id(optimizer), len(self._numbers))], mindspore.int32)
        begin, end, count = self._callbacks.begin, self._callbacks.end, len(optimizer.parameters)
        tell_all = self._tells(names, optimizer.parameters)

        def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
            begin(number)
            if len(args) > 0 and len(args[0]) == count:
                tell_all(args[0])
            result = original(*args, **kwargs)
            end(number)
            return result

        return construct

    def _tells(self, names: Mapping[int, str], parameters: Sequence[Any]) -> Callable[[Any], Any]:
        """What tells each gradient, for the parser: a tree of functions, as it limits loops and how deep calls go."""
        gradient = self._callbacks.gradient

        def teller(index: int) -> Callable[[Any], Any]:
            form = form_of(parameters[index].shape)
            self._places.append((names[index], form))
            place = Tensor([len(self._places) - 1], mindspore.int32)

            def tell(gradients: Any) -> Any:
                if form != NOTHING and isinstance(gradients[index], Tensor):
                    if form == SINGLE:
                        gradient(ops.reshape(gradients[index], (1,)), place)
                    else:
                        gradient(gradients[index], place)
                return 0

            return tell

        def both(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def tell(gradients: Any) -> Any:
                first(gradients)
                second(gradients)
                return 0

            return tell

        tells = [teller(index) for index in names]
        while len(tells) > 1:
            pairs = [both(*tells[at : at + 2]) for at in range(0, len(tells) - 1, 2)]
            tells = pairs + tells[2 * len(pairs) :]
        return tells[0]

    # -- called by running graphs ----------------------------------------------------------------------------------

    def _told(self, tell: Callable[..., None], *arguments: Any) -> np.ndarray:
        if (observer := self._observer) is not None:
            try:
                tell(observer, *arguments)
            except Exception as error:
                observer.failed(error, tr("an optimizer in a graph"))
        return DONE

    def _on_begin(self, observer: UpdateObserver, number: np.ndarray) -> None:
        observer.begins(int(number[0]))

    def _on_gradient(self, observer: UpdateObserver, gradient: Any, place: np.ndarray) -> None:
        name, form = self._places[int(place[0])]
        array = unpacked(gradient, form)
        if isinstance(array, np.ndarray):
            observer.gradient(name, array)

    def _on_end(self, observer: UpdateObserver, number: np.ndarray) -> None:
        observer.ends(int(number[0]))


def _optimizers() -> list[Any]:
    """The optimizers of this process that have parameters."""
    found = [value for value in gc.get_objects() if issubclass(type(value), OPTIMIZERS)]
    return [optimizer for optimizer in found if len(optimizer.parameters)]
