"""What is known of one run of a compiled graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


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
