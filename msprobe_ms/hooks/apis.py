"""Wrappers around a framework's functions and tensor methods: put in place at start, gone after stop."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from msprobe_ms.errors import ConfigError
from msprobe_ms.frameworks.base import Framework, Namespace
from msprobe_ms.hooks.patch import Patch
from msprobe_ms.recorder import Recorder, Subject

#: Set on classes whose attributes can be replaced: made by Python code (``Py_TPFLAGS_HEAPTYPE``).
_CHANGEABLE = 1 << 9

#: Largest API list read; a longer file is not an API list.
_LONGEST_LIST = 1 << 20


class ApiList:
    """Which callables to wrap: ``{namespace path: [names]}`` from the package's list and the user's.

    A namespace the package does not know (``mypackage.kernels``) is imported; its entries start with the last part of
    its path.
    """

    def __init__(self, framework: Framework, extra: Path | None = None) -> None:
        """Read the lists. Raises ConfigError naming the file, the key and what is accepted."""
        self._namespaces = {space.path: space for space in framework.namespaces()}
        folder = Path(__file__).parent.parent / "frameworks"
        self.apis: dict[Namespace, list[str]] = {}
        for own in (framework.api_list, *framework.more_api_lists):
            for path, names in _read_list(folder / own).items():
                if path in self._namespaces:  # a namespace this version of the framework lacks is left out
                    self._add(self._namespaces[path], names)
        for path, names in ({} if extra is None else _read_list(extra)).items():
            space = self._namespaces.get(path) or _import_namespace(path, extra)
            self._add(space, [_existing(space, name, extra) for name in names])

    def _add(self, space: Namespace, names: list[str]) -> None:
        known = self.apis.setdefault(space, [])
        known += [name for name in names if name not in known]


def _read_list(path: Path) -> dict[str, list[str]]:
    form = "a mapping of a module or class to a list of names, such as\n  mindspore.ops:\n    - relu"
    try:
        with path.open("rb") as file:
            content = yaml.safe_load(file.read(_LONGEST_LIST)) or {}
    except OSError as error:
        raise ConfigError(f"{path}: api_list cannot be read: {error.strerror}; give a yaml file with {form}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: api_list is not valid yaml: {error}; expected {form}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: api_list holds a {type(content).__name__}; expected {form}")
    for key, names in content.items():
        if not isinstance(key, str) or not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise ConfigError(f"{path}: {key}: {names!r} is not accepted; expected {form}")
    return content


def _import_namespace(path: str, source: Path | None) -> Namespace:
    holder = _imported(path, source)
    if isinstance(holder, ModuleType) or (isinstance(holder, type) and holder.__flags__ & _CHANGEABLE):
        return Namespace(path, path.rpartition(".")[2], holder)
    kind = "built-in class" if isinstance(holder, type) else type(holder).__name__
    raise ConfigError(f"{source}: {path}: a {kind} cannot be recorded; give a module or a class written in Python")


def _imported(path: str, source: Path | None) -> Any:
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
        f"{source}: {path}: no such module or class can be imported; give a dotted name like mindspore.ops"
    )


def _import_error(path: str, source: Path | None, error: Exception) -> ConfigError:
    return ConfigError(f"{source}: {path}: importing it failed: {type(error).__name__}: {error}")


def _existing(space: Namespace, name: str, source: Path | None) -> str:
    if callable(getattr(space.holder, name, None)):
        return name
    raise ConfigError(f"{source}: {space.path}: {name!r} is not something that can be called there")


#: Names of APIs that change their arguments, and of functions of ``mindspore.ops`` that update a Parameter given first.
_IN_PLACE = re.compile(r"__i(?!n)\w+__|__(set|del)item__|(?!__)\w*[^_]_|inplace_\w+|assign\w*|set_\w+|copy_")
_IN_PLACE_FUNCTIONS = re.compile(r"scatter_(nd_)?(add|sub|mul|div|max|min|update)|index_add|(bernoulli|normal|random)_")


def writes_in_place(prefix: str, name: str) -> bool:
    """Whether an API of this name changes its arguments, which must then be the caller's own objects.

    >>> [writes_in_place("Tensor", name) for name in ("add_", "__iadd__", "__invert__", "add")]
    [True, True, False, False]
    """
    return bool(_IN_PLACE.fullmatch(name) or (prefix == "Functional" and _IN_PLACE_FUNCTIONS.fullmatch(name)))


class ApiHooks:
    """The wrappers of one debugger, made once. ``install`` and ``remove`` may be repeated."""

    def __init__(self, framework: Framework, apis: ApiList) -> None:
        self._framework = framework
        self._recorder: Recorder | None = None
        self._patches = list(self._make_patches(apis))

    def install(self, recorder: Recorder) -> None:
        """Bring calls of the listed APIs to ``recorder`` until ``remove``."""
        self._recorder = recorder
        for patch in self._patches:
            patch.apply()

    def remove(self) -> None:
        """Put the framework's own functions back; wrappers somebody still holds only pass calls on."""
        for patch in reversed(self._patches):
            patch.undo()
        self._recorder = None

    def _make_patches(self, apis: ApiList) -> Iterator[Patch]:
        subjects: dict[str, Subject] = {}
        for space, names in apis.apis.items():
            for name in names:
                if not callable(getattr(space.holder, name, None)):
                    continue  # another version of the framework
                base = f"{space.prefix}.{name}"
                subject = subjects.setdefault(
                    base, Subject(base, is_module=False, writes_in_place=writes_in_place(space.prefix, name))
                )
                yield Patch(space.holder, name, partial(self._wrap, subject))

    def _wrap(self, subject: Subject, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            call = None if recorder is None else recorder.enter(subject)
            if recorder is None or call is None:
                return original(*args, **kwargs)
            try:
                args, kwargs = recorder.before(call, args, kwargs)
                output = original(*args, **kwargs)
            except BaseException:
                recorder.abandon(call)
                raise
            return recorder.after(call, args, kwargs, output)

        return wrapper

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A compiler reads user code by its names: there it must find the framework's functions, not ours."""
        patches = [patch for patch in self._patches if patch.in_module and patch.applied]
        for patch in patches:
            patch.undo()
        try:
            yield
        finally:
            for patch in patches:
                patch.apply()
