"""One attribute of a module or class, replaced and put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Marks that a class or module had no attribute of its own before ours.
_INHERITED: Any = object()


class Patch:
    """One attribute replaced on one module or class."""

    def __init__(self, holder: Any, name: str, wrapper: Callable[..., Any]) -> None:
        self._holder = holder
        self._name = name
        self._wrapper = wrapper
        self.in_module = not isinstance(holder, type)
        self._before: Any = vars(holder).get(name, _INHERITED)
        self.applied = False

    def apply(self) -> None:
        setattr(self._holder, self._name, self._wrapper)
        self.applied = True

    def undo(self) -> None:
        # Whoever replaced our wrapper meanwhile keeps what they put there.
        if self.applied and vars(self._holder).get(self._name) is self._wrapper:
            if self._before is _INHERITED:
                delattr(self._holder, self._name)
            else:
                setattr(self._holder, self._name, self._before)
        self.applied = False
