"""Functions that user code took from the framework before recording began: ``from mindspore.ops import relu``.

The wrapper of a function replaces it in the framework's namespace; whoever holds the function itself goes past it. So
the same replacement is made where users hold functions: names of their modules, entries of lists and dictionaries
there, attributes and default arguments of their classes and functions, attributes of the model's modules.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

#: Longest list or dictionary of a user's module that is searched: a table of functions, not data.
_LONGEST_TABLE = 1000


class EarlyBindings:
    """Replaces functions where user code holds them, between ``install`` and ``remove``."""

    def __init__(self) -> None:
        #: Whether a module is a user's; settled by its file, once.
        self._is_users: dict[str, bool] = {}
        self._library_folders = tuple(_library_folders())
        self._undo: list[Callable[[], None]] = []

    def install(self, wrappers: Mapping[int, tuple[Any, Any]], modules: Iterable[Any]) -> None:
        """Put wrappers in place.

        ``wrappers`` gives function and wrapper by the function's identity, ``modules`` are those of the model.
        """
        for module in list(sys.modules.values()):
            if issubclass(type(module), ModuleType) and self._belongs_to_user(module):
                self._search_module(ModuleType.__getattribute__(module, "__dict__"), wrappers)
        for module in modules:
            self._search_dict(vars(module), wrappers)

    def remove(self) -> None:
        """Put the functions back, except where somebody else has put something since."""
        while self._undo:
            self._undo.pop()()

    def _belongs_to_user(self, module: ModuleType) -> bool:
        # Read past a module's own __getattr__ and properties: lazy modules load what they are asked for.
        names = ModuleType.__getattribute__(module, "__dict__")
        name = names.get("__name__")
        if name == "__main__":
            return True  # a notebook's has no file
        if not isinstance(name, str):
            return False
        known = self._is_users.get(name)
        if known is None:
            file = names.get("__file__")
            known = isinstance(file, str) and not os.path.abspath(file).startswith(self._library_folders)
            self._is_users[name] = known
        return known

    def _search_module(self, names: dict[str, Any], wrappers: Mapping[int, tuple[Any, Any]]) -> None:
        home = names.get("__name__")
        for value in self._search_dict(names, wrappers):
            kind = type(value)
            if kind is FunctionType:
                if value.__module__ == home:
                    self._search_defaults(value, wrappers)
            elif kind is dict:
                if len(value) <= _LONGEST_TABLE:
                    self._search_dict(value, wrappers)
            elif kind is list:
                if len(value) <= _LONGEST_TABLE:
                    self._search_list(value, wrappers)
            elif issubclass(kind, type) and vars(value).get("__module__") == home:
                self._search_class(value, wrappers)

    def _search_dict(self, values: dict[Any, Any], wrappers: Mapping[int, tuple[Any, Any]]) -> list[Any]:
        """Replace among the values; gives the other values back."""
        others = []
        for key, value in list(values.items()):
            found = wrappers.get(id(value))
            if found is None:
                others.append(value)
            else:
                values[key] = found[1]
                self._undo.append(partial(_restore_key, values, key, *found))
        return others

    def _search_list(self, values: list[Any], wrappers: Mapping[int, tuple[Any, Any]]) -> None:
        for index, value in enumerate(values):
            if (found := wrappers.get(id(value))) is not None:
                values[index] = found[1]
                self._undo.append(partial(_restore_item, values, *found))

    def _search_class(self, holder: type, wrappers: Mapping[int, tuple[Any, Any]]) -> None:
        for name, value in list(vars(holder).items()):
            is_static = type(value) is staticmethod
            function = value.__func__ if is_static else value
            if (found := wrappers.get(id(function))) is not None:
                # What does not bind as a method must not begin to.
                binds = not is_static and hasattr(type(function), "__get__")
                wrapper = found[1] if binds else staticmethod(found[1])
                type.__setattr__(holder, name, wrapper)
                self._undo.append(partial(_restore_attribute, holder, name, value, wrapper))
            elif type(function) is FunctionType:
                self._search_defaults(function, wrappers)

    def _search_defaults(self, function: FunctionType, wrappers: Mapping[int, tuple[Any, Any]]) -> None:
        before = function.__defaults__
        if before and any(id(value) in wrappers for value in before):
            after = tuple(wrappers[id(value)][1] if id(value) in wrappers else value for value in before)
            function.__defaults__ = after
            self._undo.append(partial(_restore_defaults, function, before, after))
        if function.__kwdefaults__:
            self._search_dict(function.__kwdefaults__, wrappers)


def _restore_key(values: dict[Any, Any], key: Any, function: Any, wrapper: Any) -> None:
    if values.get(key) is wrapper:
        values[key] = function


def _restore_item(values: list[Any], function: Any, wrapper: Any) -> None:
    # Wherever it stands by now.
    for index, value in enumerate(values):
        if value is wrapper:
            values[index] = function


def _restore_attribute(holder: type, name: str, before: Any, after: Any) -> None:
    if vars(holder).get(name) is after:
        type.__setattr__(holder, name, before)


def _restore_defaults(function: FunctionType, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    if function.__defaults__ is after:
        function.__defaults__ = before


def _library_folders() -> Iterator[str]:
    """Where installed packages and Python itself lie; and this package."""
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    folders.append(site.getusersitepackages())
    yield _OWN_FOLDER
    for folder in dict.fromkeys(folders):
        yield os.path.abspath(folder) + os.sep
        yield os.path.realpath(folder) + os.sep
