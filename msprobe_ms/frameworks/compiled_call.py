"""What is known of compiled graphs: how a framework runs them, and one run of one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, NamedTuple


class ExecutionMode(Enum):
    """How a framework runs what a script calls."""

    #: Call by call.
    PYNATIVE = "pynative"
    #: Compiled to a graph, launched kernel by kernel.
    KBYK = "kbyk"
    #: Compiled to a graph that the device runs as a whole.
    GRAPH = "graph"


def _always(*_: Any, **__: Any) -> bool:
    return True


class CompilerCall(NamedTuple):
    """A call that compiles user code; ``applies``, called as it is, says whether hooks may not be in that code."""

    holder: Any
    name: str
    applies: Callable[..., bool] = _always


@dataclass(frozen=True, slots=True)
class CompiledCall:
    """One run of a graph compiled from user code.

    ``name``      what entries call it: the function, or the class of a compiled module
    ``leading``   how many of the first arguments are no inputs (the object whose method was compiled)
    ``function``  what was compiled
    ``modules``   gives names and modules that run inside it, where hooks cannot see them
    ``frameworks_own`` whether it is no user code: an optimizer's
    ``group``     the processes it exchanges tensors with, as a value that ``special_leaf`` knows; None for most
    """

    name: str
    leading: int
    function: Callable[..., Any]
    modules: Callable[[], Sequence[tuple[str, Any]]]
    frameworks_own: bool = False
    group: Any = None


class Reaches(IntEnum):
    """How far a graph goes towards a network with new weights."""

    RESULTS = 0
    GRADIENTS = 1
    WEIGHTS = 2


@dataclass(frozen=True, slots=True)
class GraphRun:
    """A compiled graph that the script is about to run.

    ``key``            the same for each run of what was written in one place, whatever shapes it is compiled for
    ``name``           what a user calls it
    ``reaches``        how far it goes
    ``is_update``      whether it is an optimizer, and nothing else
    ``awaits_update``  whether an optimizer, a graph of its own, trains what it computes gradients of
    """

    key: Hashable
    name: str
    reaches: Reaches
    is_update: bool = False
    awaits_update: bool = False
