"""Which functions and methods are recorded: the package's own lists, and what a user adds to them."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.interface.apis import Namespace
from msprobe_ms.support.errors import ConfigError, UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import and_more, show
from msprobe_ms.support.translation import tr, tr_list
from msprobe_ms.support.yaml_files import UnreadableError, read_texts

#: Set on classes whose attributes can be replaced: made by Python code (``Py_TPFLAGS_HEAPTYPE``).
_CHANGEABLE = 1 << 9

#: Methods that every object has, but for comparisons, and others by which Python or a framework handles objects.
_OF_OBJECTS = frozenset(dir(object)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"} | {
    "__del__", "__getattr__", "__get__", "__instancecheck__", "__torch_function__", "__torch_dispatch__",
}  # fmt: skip

#: Largest API list read; a longer file is not an API list.
_LONGEST_LIST = 1 << 17

#: Most names that a log line repeats.
_NAMED = 10

#: Heads of msprobe's ``support_wrap_ops.yaml`` that are neither a prefix of entries nor the end of a module's path.
_HEADS = {"mint.ops": "mint"}


class ApiList:
    """Which callables to wrap: ``{namespace path: [names]}`` from the package's list and the user's.

    A namespace the package does not know (``mypackage.kernels``) is imported; its entries start with the last part of
    its path.
    """

    def __init__(self, framework: Framework, extra: Path | None = None) -> None:
        """Read the lists. Raises ConfigError naming the file, the key and what is accepted."""
        self._namespaces = {space.path: space for space in framework.namespaces()}
        self.apis: dict[Namespace, list[str]] = {}
        for own in framework.api_lists:
            for path, names in _package_list(own).items():
                if path in self._namespaces:  # a namespace this version of the framework lacks is left out
                    self._add(self._namespaces[path], names)
        if extra is not None:
            self._add_list(_read_list(extra), extra)

    def _add_list(self, given: Mapping[str, Sequence[str]], source: Path) -> None:
        """Add a user's list, by dotted names or by the heads of a ``support_wrap_ops.yaml``.

        Such a file is made for several versions of a framework: it names what others have, which is left out and said.
        """
        headed = {key: spaces for key in given if key not in self._namespaces and (spaces := self._by_head(key))}
        missing: list[str] = []
        for key, names in given.items():
            if key in headed:
                for space in headed[key]:
                    self._add(space, [name for name in names if _is_there(space, name)])
                missing += [f"{key}.{n}" for n in names if not any(_is_there(each, n) for each in headed[key])]
            elif headed and key not in self._namespaces and not _is_installed(key.partition(".")[0]):
                missing.append(key)
            else:
                space = self._namespaces.get(key) or _import_namespace(key, source)
                self._add(space, [name for name in names if _exists(space, name, source)])
        if missing:
            names, more = tr_list(missing[:_NAMED]), and_more(len(missing) - _NAMED)
            logger.warning(
                tr(
                    "{source}: not recorded, not in this framework: {names}{more}",
                    source=source,
                    names=names,
                    more=more,
                )
            )

    def _by_head(self, head: str) -> list[Namespace]:
        """The namespaces that other tools call ``functional``, ``tensor``, ``ops``, ``mint.nn.functional``."""
        word = _HEADS.get(head, head).lower()
        spaces = self._namespaces.values()
        by_prefix = [space for space in spaces if space.prefix.lower() == word]
        return by_prefix or [space for space in spaces if space.path.lower().endswith(f".{word}")]

    def _add(self, space: Namespace, names: Sequence[str]) -> None:
        known = self.apis.setdefault(space, [])
        known += [name for name in names if name not in known]


@cache
def _package_list(path: Path) -> Mapping[str, Sequence[str]]:
    """A list of the package's own, which stays the same while the process runs."""
    return _read_list(path)


def _read_list(path: Path) -> dict[str, list[str]]:
    form = tr("a mapping of a module or class to a list of names, such as\n  mindspore.ops:\n    - relu")
    try:
        content = read_texts(path, _LONGEST_LIST) or {}
    except UnreadableError as error:
        raise ConfigError(tr("{path}: api_list: {error}; expected {form}", path=path, error=error, form=form)) from None
    if not isinstance(content, dict):
        raise ConfigError(
            tr("{path}: api_list holds a {name}; expected {form}", path=path, name=type(content).__name__, form=form)
        )
    for key, names in content.items():
        if not isinstance(key, str) or not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise ConfigError(
                tr(
                    "{path}: {key}: {names} is not accepted; expected {form}",
                    path=path,
                    key=key,
                    names=show(names),
                    form=form,
                )
            )
    return content


def _import_namespace(path: str, source: Path) -> Namespace:
    if path.partition(".")[0] in sys.stdlib_module_names:  # which everything calls, recording itself as well
        raise ConfigError(
            tr(
                "{source}: {path}: belongs to Python; give a module or class whose functions take tensors",
                source=source,
                path=path,
            )
        )
    holder = _imported(path, source)
    if _holds_apis(holder):
        return Namespace(path, path.rpartition(".")[2], holder)
    kind = tr("built-in class") if isinstance(holder, type) else type(holder).__name__
    raise ConfigError(
        tr(
            "{source}: {path}: a {kind} cannot be recorded; give a module or a class written in Python",
            source=source,
            path=path,
            kind=kind,
        )
    )


def _holds_apis(holder: Any) -> bool:
    return isinstance(holder, ModuleType) or (isinstance(holder, type) and bool(holder.__flags__ & _CHANGEABLE))


def _imported(path: str, source: Path) -> Any:
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            return functools.reduce(getattr, parts[length:], importlib.import_module(module))
        except ModuleNotFoundError as error:
            if f"{module}.".startswith(f"{error.name}."):
                continue
            raise _import_error(path, source, error) from error
        except AttributeError:
            break
        except Exception as error:  # a module of the user's own may fail in any way
            raise _import_error(path, source, error) from error
    raise ConfigError(
        tr(
            "{source}: {path}: no such module or class can be imported; give a dotted name like mindspore.ops",
            source=source,
            path=path,
        )
    )


def _import_error(path: str, source: Path, error: Exception) -> ConfigError:
    return ConfigError(
        tr(
            "{source}: {path}: importing it failed: {name}: {error}",
            source=source,
            path=path,
            name=type(error).__name__,
            error=error,
        )
    )


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # of no package's name
        return False


def _is_there(space: Namespace, name: str) -> bool:
    return _is_api(space.holder, name)


def _is_api(holder: Any, name: str) -> bool:
    """Whether it can be called, and is neither a class, by which objects are told, nor what makes and reads objects."""
    value = getattr(holder, name, None)
    return callable(value) and not isinstance(value, type) and name not in _OF_OBJECTS


def _exists(space: Namespace, name: str, source: Path) -> bool:
    if _is_there(space, name):
        return True
    if isinstance(getattr(space.holder, name, None), type):
        logger.warning(
            tr(
                "{source}: {found} is a class, and not recorded; its methods can be, listed under its name",
                source=source,
                found=f"{space.path}.{name}",
            )
        )
        return False
    what = (
        tr("handles objects, and is no operation")
        if name in _OF_OBJECTS
        else tr("is not something that can be called there")
    )
    raise ConfigError(tr("{source}: {path}: {name} {what}", source=source, path=space.path, name=repr(name), what=what))


def check_custom_api(where: str, module: Any, api: Any, prefix: Any) -> None:
    """Raises UsageError for what cannot be wrapped."""
    if not _holds_apis(module):
        kind = type(module).__name__
        raise UsageError(
            tr("{where}: module is a {kind}; give a module or a class written in Python", where=where, kind=kind)
        )
    if isinstance(api, str) and isinstance(getattr(module, api, None), type):
        raise UsageError(
            tr("{where}: {api} is a class; give it as the module, and the name of a method", where=where, api=api)
        )
    if not isinstance(api, str) or not _is_api(module, api):
        raise UsageError(
            tr(
                "{where}: {api} is not something that can be called in {name}; give its name",
                where=where,
                api=repr(api),
                name=module.__name__,
            )
        )
    if prefix is not None and (not isinstance(prefix, str) or not prefix):
        raise UsageError(
            tr(
                '{where}: api_prefix {prefix} is not accepted; give a text, such as "Custom"',
                where=where,
                prefix=repr(prefix),
            )
        )
