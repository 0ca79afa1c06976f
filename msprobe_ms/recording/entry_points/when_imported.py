"""Be told when packages have been imported. Imports little itself: every Python below a command runs it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any


class WhenImported(importlib.abc.MetaPathFinder):
    """Calls ``action(name)`` once a package of ``names`` has been imported, by whomever.

    Many look for a package before they import it, or never do: only one that has run is imported.
    """

    def __init__(self, names: Sequence[str], action: Callable[[str], None]) -> None:
        self._names = set(names)
        self._action = action

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._names:
            return None
        finders = [each.find_spec for each in sys.meta_path if each is not self and hasattr(each, "find_spec")]
        spec = next((found for find in finders if (found := find(name, path, target)) is not None), None)
        if spec is not None and spec.loader is not None:
            self._follow(name, spec.loader)
        return spec

    def _follow(self, name: str, loader: Any) -> None:
        """Have the loader tell when it has run the package; it may be that of other packages too."""
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            if module.__name__ != name:
                return execute(module)
            vars(loader).pop("exec_module", None)
            execute(module)
            if name in self._names:
                self._names.discard(name)
                self._action(name)

        if hasattr(loader, "__dict__") and "exec_module" not in vars(loader):
            loader.exec_module = exec_module

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
