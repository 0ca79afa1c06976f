"""Watching a training that knows nothing of it: which networks are trained, where a step ends."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Listener(Protocol):
    """Is told of a training as it goes. No method raises."""

    def computes(self, networks: Sequence[Any], found: str) -> None:
        """Forward and backward of ``networks`` begin; ``found`` says in words how they were found."""

    def pauses(self) -> None:
        """They are over, or an optimizer is about to run."""

    def step_ends(self, optimizer: str) -> None:
        """The optimizer of this class has updated the parameters."""


class ClassPatches:
    """Methods of classes, replaced until ``remove``. Class methods alone: a compiler does not read them by name."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def put(self, holder: type, name: str, around: Callable[..., Any]) -> None:
        """``holder.name`` becomes ``around(original, self, *args, **kwargs)``."""
        original = getattr(holder, name)

        @functools.wraps(original)
        def replaced(instance: Any, *args: Any, **kwargs: Any) -> Any:
            return around(original, instance, *args, **kwargs)

        own = vars(holder).get(name)
        setattr(holder, name, replaced)
        self._undo.append(
            functools.partial(delattr, holder, name) if own is None else lambda: setattr(holder, name, own)
        )

    def remove(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()
