"""Functions that user code took from the framework before recording began: ``from mindspore.ops import relu``.

The wrapper of a function replaces it in the framework's namespace; whoever holds the function itself goes past it. So
the same replacement is made where users hold functions: names of their modules, and whatever is reached from there, and
from the model's modules, through lists, dictionaries and tuples, attributes of their classes and of objects of these,
default arguments and closures of their functions, and ``functools.partial``.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import CellType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from msprobe_ms.support.files import PACKAGE_FOLDER
from msprobe_ms.support.patching import do_all
from msprobe_ms.support.process import no_garbage_collection

#: Longest list, dictionary or tuple that is searched: a table of functions, not data.
_LONGEST_TABLE = 1000

#: Objects that are looked into below the names of modules, which takes some 20 ms at most.
_MOST_OBJECTS = 20_000

_DICTIONARIES = (dict, OrderedDict, defaultdict)


class EarlyBindings:
    """Replaces functions where user code holds them, between ``install`` and ``remove``."""

    def __init__(self) -> None:
        #: Whether a module is a user's; settled by its file, once.
        self._is_users: dict[str, bool] = {}
        #: Under which names of `sys.modules` others are.
        self._libraries: set[str] = set()
        self._library_folders = tuple(_library_folders())
        #: Each noted before it is needed, and harmless where what it undoes was not done.
        self._undo: list[Callable[[], None]] = []
        #: Lists and dictionaries that are names of libraries' modules, by identity; gathered when first needed.
        self._library_tables: dict[int, Any] = {}

    def install(self, wrappers: Mapping[int, tuple[Any, Any]], modules: Iterable[Any]) -> None:
        """Put wrappers in place.

        ``wrappers`` gives function and wrapper by the function's identity, ``modules`` are those of the model.
        """
        with no_garbage_collection():  # it would go through all the program's objects several times, and find nothing
            self._search(wrappers, modules)

    def _search(self, wrappers: Mapping[int, tuple[Any, Any]], modules: Iterable[Any]) -> None:
        users = list(self._users_modules())
        search = _Search(wrappers, {names.get("__name__") for names in users}, self._undo, self._library_tables)
        for names in users:
            search.names(names)
        for module in modules:
            search.names(vars(module))
        search.run()

    def remove(self) -> None:
        """Put the functions back, except where somebody else has put something since."""
        do_all(reversed(self._undo))
        self._undo.clear()

    def _users_modules(self) -> Iterator[dict[str, Any]]:
        """Yield the names of each; libraries are looked at once."""
        for place in [place for place in list(sys.modules) if place not in self._libraries]:
            module: Any = sys.modules.get(place)
            if not issubclass(type(module), ModuleType):
                continue
            if self._belongs_to_user(module):
                yield ModuleType.__getattribute__(module, "__dict__")
            else:
                self._libraries.add(place)

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


class _Search:
    """One pass through what users hold. Nothing of theirs is called: attributes are read past their own access."""

    def __init__(
        self,
        wrappers: Mapping[int, tuple[Any, Any]],
        users: set[Any],
        undo: list[Callable[[], None]],
        library_tables: dict[int, Any],
    ) -> None:
        self._wrappers = wrappers
        #: Names of the user's modules.
        self._users = users
        self._undo = undo
        #: What to do with values of a type, None: nothing. Settled once a type.
        self._kinds: dict[type, Callable[[Any], None] | None] = {
            FunctionType: self._function, list: self._list, tuple: self._tuple, partial: self._partial,
            staticmethod: self._bound, classmethod: self._bound, property: self._property,
            **dict.fromkeys(_DICTIONARIES, self._table),
        }  # fmt: skip
        self._kinds |= {type(function): self._kinds.get(type(function), _pass) for function, _ in wrappers.values()}
        self._seen: set[int] = set()
        self._waiting: list[tuple[Callable[[Any], None], Any]] = []
        self._library_tables = library_tables

    def run(self) -> None:
        """Look into what was found on the way, and into what is found there, until the bound."""
        try:
            for look, value in self._waiting:  # grows meanwhile
                look(value)
        finally:  # with it what users hold would stay until Python looks for cycles
            self._waiting.clear()
            self._kinds.clear()

    def _after(self, value: Any) -> Any:
        """What to hold instead of ``value``, or ``value`` itself, which may be looked into later."""
        kind = type(value)
        try:
            look = self._kinds[kind]
        except KeyError:
            look = self._kinds[kind] = self._look_at(kind)
        if look is None:
            return value
        if (found := self._wrappers.get(id(value))) is not None:
            return found[1]
        if kind is tuple:
            return self._tuple_after(value)
        if kind is FunctionType and not _may_hold(value):
            return value
        if id(value) not in self._seen and len(self._waiting) < _MOST_OBJECTS:
            self._seen.add(id(value))
            self._waiting.append((look, value))
        return value

    def _look_at(self, kind: type) -> Callable[[Any], None] | None:
        """For types that are met for the first time: the user's classes, and objects of them."""
        if issubclass(kind, type):
            return self._class
        return self._object if type.__getattribute__(kind, "__module__") in self._users else None

    def _tuple_after(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not 0 < len(values) <= _LONGEST_TABLE:
            return values
        after = tuple(self._after(value) for value in values)
        return after if any(new is not old for new, old in zip(after, values, strict=True)) else values

    # -- what may be looked into -----------------------------------------------------------------------------------

    def names(self, values: dict[Any, Any]) -> None:
        """Replace among the names of a module, or the attributes of an object."""
        self._dictionary(values, is_table=False)

    def _table(self, values: dict[Any, Any]) -> None:
        if 0 < len(values) <= _LONGEST_TABLE:
            self._dictionary(values, is_table=True)

    def _dictionary(self, values: dict[Any, Any], *, is_table: bool) -> None:
        kinds = self._kinds
        changed: dict[int, Any] = {}
        for value in [value for value in tuple(values.values()) if kinds.get(type(value), _pass) is not None]:
            if (after := self._after(value)) is not value:
                changed[id(value)] = after
        if not changed or (is_table and self._is_librarys(values)):
            return
        for key, value in list(values.items()):
            if (after := changed.get(id(value))) is not None:
                self._undo.append(partial(_restore_key, values, key, value, after))
                values[key] = after

    def _list(self, values: list[Any]) -> None:
        if len(values) > _LONGEST_TABLE:
            return
        for index, value in enumerate(values):
            after = self._after(value)
            if after is not value and not self._is_librarys(values):
                self._undo.append(partial(_restore_item, values, value, after))
                values[index] = after

    def _tuple(self, values: tuple[Any, ...]) -> None:
        return None  # settled by `_after`: a tuple is replaced where it is held

    def _bound(self, value: Any) -> None:
        self._after(value.__func__)

    def _property(self, value: Any) -> None:
        for function in (value.fget, value.fset):
            self._after(function)

    def _partial(self, value: partial[Any]) -> None:
        before = value.func, value.args, value.keywords, vars(value)
        function, arguments = self._after(value.func), self._after(value.args)
        if function is not value.func or arguments is not value.args:
            self._undo.append(partial(_restore_partial, value, before, function, arguments))
            value.__setstate__((function, arguments, *before[2:]))  # type: ignore[attr-defined]
        self._table(value.keywords)

    def _object(self, value: Any) -> None:
        """An object of a user's class."""
        try:
            held = object.__getattribute__(value, "__dict__")
        except AttributeError:
            held = None
        if type(held) is dict:
            self.names(held)
        for owner in type.__getattribute__(type(value), "__mro__"):
            for slot in vars(owner).values():
                if type(slot) is MemberDescriptorType and owner.__module__ in self._users:
                    self._slot(slot, value)

    def _slot(self, slot: MemberDescriptorType, value: Any) -> None:
        held = _held_in(slot, value)
        if (after := self._after(held)) is not held:
            self._undo.append(partial(_restore_slot, slot, value, held, after))
            slot.__set__(value, after)

    def _class(self, holder: type) -> None:
        if vars(holder).get("__module__") not in self._users:
            return
        for name, value in list(vars(holder).items()):
            is_static = type(value) is staticmethod
            function = value.__func__ if is_static else value
            after = self._after(function)
            if after is not function:
                kept = staticmethod(after) if is_static else after
                self._undo.append(partial(_restore_attribute, holder, name, value, kept))
                type.__setattr__(holder, name, kept)

    def _function(self, function: FunctionType) -> None:
        if function.__globals__.get("__name__") in self._users:
            self._users_function(function)
        elif function.__module__ in self._users:
            # A library's decorator around a user's function: that one is looked at, the decorator is left alone.
            for value in (*map(_contents, function.__closure__ or ()), *vars(function).values()):
                if type(value) is FunctionType:
                    self._after(value)

    def _users_function(self, function: FunctionType) -> None:
        before = function.__defaults__
        if before and (after := self._after(before)) is not before:
            self._undo.append(partial(_restore_defaults, function, before, after))
            function.__defaults__ = after
        for values in (function.__kwdefaults__, vars(function)):
            if values:
                self._table(values)
        for cell in function.__closure__ or ():
            value = _contents(cell)
            if (after := self._after(value)) is not value:
                self._undo.append(partial(_restore_cell, cell, value, after))
                cell.cell_contents = after

    def _is_librarys(self, table: Any) -> bool:
        """Whether a list or dictionary, which the user holds, is a name of a library's module as well."""
        if not self._library_tables:
            loaded = [vars(module) for module in list(sys.modules.values()) if type(module) is ModuleType]
            others = [names for names in loaded if names.get("__name__") not in self._users]
            tables = (list, *_DICTIONARIES)
            values = (value for names in others for value in tuple(names.values()) if type(value) in tables)
            self._library_tables.update((id(value), value) for value in values)
        return id(table) in self._library_tables


def _may_hold(function: FunctionType) -> bool:
    """Whether a function can hold another at all."""
    return bool(function.__defaults__ or function.__closure__ or function.__kwdefaults__ or function.__dict__)


def _pass(value: Any) -> None:
    """Nothing to look into."""


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name of the enclosing function that has no value yet
        return None


def _held_in(slot: MemberDescriptorType, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:  # no value yet, or not any more
        return None


def _restore_key(values: dict[Any, Any], key: Any, before: Any, after: Any) -> None:
    if values.get(key) is after:
        values[key] = before


def _restore_item(values: list[Any], before: Any, after: Any) -> None:
    # Wherever it stands by now.
    for index, value in enumerate(values):
        if value is after:
            values[index] = before


def _restore_attribute(holder: type, name: str, before: Any, after: Any) -> None:
    if vars(holder).get(name) is after:
        type.__setattr__(holder, name, before)


def _restore_defaults(function: FunctionType, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    if function.__defaults__ is after:
        function.__defaults__ = before


def _restore_cell(cell: CellType, before: Any, after: Any) -> None:
    if _contents(cell) is after:
        cell.cell_contents = before


def _restore_partial(value: partial[Any], before: tuple[Any, ...], function: Any, arguments: tuple[Any, ...]) -> None:
    if value.func is function and value.args is arguments:
        value.__setstate__(before)  # type: ignore[attr-defined]


def _restore_slot(slot: MemberDescriptorType, value: Any, before: Any, after: Any) -> None:
    if _held_in(slot, value) is after:
        slot.__set__(value, before)


def _library_folders() -> Iterator[str]:
    """Where installed packages and Python itself lie; and this package."""
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    folders.append(site.getusersitepackages())
    yield PACKAGE_FOLDER
    for folder in dict.fromkeys(folders):
        yield os.path.abspath(folder) + os.sep
        yield os.path.realpath(folder) + os.sep
