"""How calls inside a compiled graph are observed, whatever the framework: the words that both sides use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np


class Described(NamedTuple):
    """A tensor as the compiler knows it; ``shape`` is None where only the running graph does."""

    dtype: str
    shape: tuple[int, ...] | None
    takes_gradient: bool


class Unknown(Enum):
    """A value that is no tensor and that only the running graph knows."""

    VALUE = "value"


#: What a call was given or gave, as the compiler knows it: lists and dictionaries of tensors and constants.
Layout = Any

Path = tuple[str, ...]


class Place(NamedTuple):
    """Where a tensor stands in a call: ``output`` and ``("1", "a")`` for ``output[1]["a"]``, or its gradient."""

    field: str
    path: Path
    is_gradient: bool
    dtype: str


class TensorStatistics(NamedTuple):
    """What is known of a tensor whose values could not be brought out of the graph."""

    shape: tuple[int, ...]
    maximum: float
    minimum: float
    mean: float
    norm: float


class GraphObserver(Protocol):
    """Told what calls inside running graphs do, on whatever thread runs them."""

    def untold(self, module: int | None, what: str) -> None:
        """What graphs cannot tell of a module's calls, or (None) of any of those in a graph, in words for the user."""

    def notice(self, text: str) -> None:
        """Something that the user should know of, a sentence."""

    def begins(self, module: int, args: Layout, kwargs: Layout) -> int:
        """A call of the ``module``-th module; the number by which the rest of it is told."""

    def value(self, call: int, place: Place, value: np.ndarray | TensorStatistics) -> None:
        """A tensor of the call or a gradient; the array's memory is the framework's own."""

    def ends(self, call: int, output: Layout) -> None: ...

    def parameter_gradient(self, module: int, name: str, dtype: str, gradient: np.ndarray | TensorStatistics) -> None:
        """The gradient of a parameter of the ``module``-th module."""

    def failed(self, error: Exception, where: str) -> None:
        """Something of the tool's went wrong."""


class Tapped(NamedTuple):
    """What of the calls is observed besides their beginning and end."""

    values: bool
    parameters: bool
    gradients: bool


class GraphTaps(Protocol):
    """Compiles observers into graphs. A graph that was compiled with them runs with them only while they are on."""

    def install(self, modules: Sequence[tuple[str, Any]], observer: GraphObserver) -> None:
        """From here on graphs with these modules (name and module) run with observers in them."""

    def remove(self) -> None:
        """From here on they run as if none had ever been there."""

    def wait(self) -> None:
        """Return when what was launched has told all it has to tell."""

    def forget(self) -> None:
        """Tell nobody any more what graphs do that are still on their way."""


class UpdateObserver(Protocol):
    """Told of the calls of optimizers inside running graphs, on whatever thread runs them, in the program's order."""

    def watched(self, optimizer: Any) -> Mapping[int, str]:
        """Names of those of its parameters whose gradients are to be told, by their places; asked by the compiler."""

    def begins(self, optimizer: int) -> None:
        """A call of an optimizer with such parameters, which may be inside that of another; a number stands for it."""

    def gradient(self, name: str, gradient: np.ndarray) -> None:
        """The gradient that it is given of one of them; the array's memory is the framework's own."""

    def ends(self, optimizer: int) -> None:
        """The end of a call; it does not come where the graph fails."""

    def failed(self, error: Exception, where: str) -> None:
        """Something of the tool's went wrong."""


class UpdateTaps(Protocol):
    """Compiles an observer of optimizers into graphs. They run with it only while it is on."""

    def install(self, observer: UpdateObserver) -> None:
        """From here on graphs with optimizers run with the observer in them."""

    def remove(self) -> None:
        """From here on they run as if it had never been there."""

    def wait(self) -> None:
        """Return when what was launched has told all it has to tell."""

    def forget(self) -> None:
        """Tell nobody any more what graphs do that are still on their way."""
