"""Be told when packages have been imported. Imports little itself: every Python below a command runs it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence


class WhenImported(importlib.abc.MetaPathFinder):
    """Calls ``action(name)`` once a package of ``names`` has been imported, by whomever."""

    def __init__(self, names: Sequence[str], action: Callable[[str], None]) -> None:
        self._names = set(names)
        self._action = action

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._names:
            return None
        self._names.discard(name)  # the other finders answer; not asked again for this name
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                self._action(name)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def install(self) -> None:
        """Be asked before other finders."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Be asked no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def forget_imports() -> None:
    """Remove all that `WhenImported` has put in place: one who watches comes in the place of another."""
    for finder in [each for each in sys.meta_path if isinstance(each, WhenImported)]:
        finder.remove()
