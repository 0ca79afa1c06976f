"""Wrappers around a framework's functions and tensor methods: put in place at start, gone after stop."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from msprobe_ms.frameworks.base import Framework, Namespace
from msprobe_ms.recording.calls import CallTaker, Subject
from msprobe_ms.recording.hooks.communication import Communication
from msprobe_ms.recording.hooks.early_imports import EarlyBindings
from msprobe_ms.recording.hooks.operators import PrimitiveHooks
from msprobe_ms.support.errors import ConfigError, UsageError
from msprobe_ms.support.patching import Patch, do_all
from msprobe_ms.support.text import show
from msprobe_ms.support.yaml_files import UnreadableError, read_texts

#: Set on classes whose attributes can be replaced: made by Python code (``Py_TPFLAGS_HEAPTYPE``).
_CHANGEABLE = 1 << 9

#: Largest API list read; a longer file is not an API list.
_LONGEST_LIST = 1 << 17


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
        for path, names in ({} if extra is None else _read_list(extra)).items():
            space = self._namespaces.get(path) or _import_namespace(path, extra)
            self._add(space, [_existing(space, name, extra) for name in names])

    def _add(self, space: Namespace, names: Sequence[str]) -> None:
        known = self.apis.setdefault(space, [])
        known += [name for name in names if name not in known]


@cache
def _package_list(path: Path) -> Mapping[str, Sequence[str]]:
    """A list of the package's own, which stays the same while the process runs."""
    return _read_list(path)


def _read_list(path: Path) -> dict[str, list[str]]:
    form = "a mapping of a module or class to a list of names, such as\n  mindspore.ops:\n    - relu"
    try:
        content = read_texts(path, _LONGEST_LIST) or {}
    except UnreadableError as error:
        raise ConfigError(f"{path}: api_list: {error}; expected {form}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: api_list holds a {type(content).__name__}; expected {form}")
    for key, names in content.items():
        if not isinstance(key, str) or not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise ConfigError(f"{path}: {key}: {show(names)} is not accepted; expected {form}")
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


def check_custom_api(where: str, module: Any, api: Any, prefix: Any) -> None:
    """Raises UsageError for what cannot be wrapped."""
    if not (isinstance(module, ModuleType) or (isinstance(module, type) and module.__flags__ & _CHANGEABLE)):
        kind = type(module).__name__
        raise UsageError(f"{where}: module is a {kind}; give a module or a class written in Python")
    if not isinstance(api, str) or not callable(getattr(module, api, None)):
        raise UsageError(f"{where}: {api!r} is not something that can be called in {module.__name__}; give its name")
    if prefix is not None and (not isinstance(prefix, str) or not prefix):
        raise UsageError(f'{where}: api_prefix {prefix!r} is not accepted; give a text, such as "Custom"')


def _existing(space: Namespace, name: str, source: Path | None) -> str:
    if callable(getattr(space.holder, name, None)):
        return name
    raise ConfigError(f"{source}: {space.path}: {name!r} is not something that can be called there")


#: Names of APIs that change their arguments, and of functions of ``mindspore.ops`` that update a Parameter given first.
_IN_PLACE = re.compile(r"__i(?!n)\w+__|__(set|del)item__|(?!__)\w*[^_]_|inplace_\w+|assign\w*|set_\w+|copy_")
_IN_PLACE_FUNCTIONS = re.compile(r"scatter_(nd_)?(add|sub|mul|div|max|min|update)|index_add|(bernoulli|normal|random)_")


@cache
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
        #: What they were made of.
        self.chosen = apis
        self._recorder: CallTaker | None = None
        self._patches = [*self._make_patches(apis), *(Patch(*each) for each in framework.beside_wrappers())]
        self._primitives = PrimitiveHooks(framework)
        self._early = EarlyBindings()
        self._copies = framework.clean_copies()
        self._models: Any = None
        self._custom: dict[tuple[int, str], Patch] = {}

    def install(self, recorder: CallTaker, models: Any = None) -> None:
        """Bring calls of the listed APIs to ``recorder`` until ``remove``; ``models`` name the operators they hold."""
        self._recorder = recorder
        if self._copies is not None:
            self._copies.install()
        for patch in self._patches:
            patch.apply()
        self._primitives.install(recorder, models)
        self._models = models
        self._install_early()

    def _install_early(self) -> None:
        if not self._framework.finds_early_imports:
            return
        pairs = [pair for patch in self._patches if (pair := patch.replaced) is not None]
        # A function that stands under several names goes by the first.
        wrappers = {id(function): (function, wrapper) for function, wrapper in reversed(pairs)}
        models = self._models if isinstance(self._models, (list, tuple)) else [self._models]
        given = [model for model in models if model is not None]
        self._early.install(wrappers, (each for model in given for _, each in self._framework.named_modules(model)))

    def remove(self) -> None:
        """Put the framework's own functions back; wrappers somebody still holds only pass calls on."""
        self._models = self._recorder = None
        copies = [] if self._copies is None else [self._copies.remove]
        undo = (patch.undo for patch in reversed(self._patches))
        do_all([self._early.remove, self._primitives.remove, *undo, *copies])

    def register(self, holder: Any, name: str, prefix: str) -> None:
        """Wrap one more callable, ``holder.name``, under another prefix if it was registered before."""
        self.unregister(holder, name)
        base = f"{prefix}.{name}"
        subject = Subject(base, is_module=False, writes_in_place=writes_in_place(prefix, name))
        patch = self._custom[id(holder), name] = Patch(holder, name, partial(self._wrap, subject))
        self._patches.append(patch)
        if self._recorder is not None:
            patch.apply()

    def unregister(self, holder: Any, name: str) -> None:
        patch = self._custom.pop((id(holder), name), None)
        if patch is not None:
            patch.undo()
            self._patches.remove(patch)

    def _make_patches(self, apis: ApiList) -> Iterator[Patch]:
        subjects: dict[str, Subject] = {}
        for space, names in apis.apis.items():
            for name in names:
                if not callable(getattr(space.holder, name, None)):
                    continue  # another version of the framework
                base = f"{space.prefix}.{name}"
                if base not in subjects:
                    subjects[base] = self._subject(space, name)
                subject = subjects[base]
                yield Patch(space.holder, name, partial(self._wrap, subject))

    def _subject(self, space: Namespace, name: str) -> Subject:
        communication = None
        if space.communicates:
            communication = Communication(getattr(space.holder, name), name, self._framework.group)
        return Subject(
            f"{space.prefix}.{name}",
            is_module=False,
            writes_in_place=writes_in_place(space.prefix, name),
            communication=communication,
        )

    def _wrap(self, subject: Subject, original: Callable[..., Any]) -> Callable[..., Any]:
        function = self._framework.direct(original)

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if recorder is None:
                return function(*args, **kwargs)
            try:
                return recorder.run(subject, function, args, kwargs)
            except (MemoryError, RecursionError) as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                    raise
                recorder.errors.untold = True
            return function(*args, **kwargs)  # where not even the recorder can be called

        return wrapper

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A compiler reads user code by its names: there it must find the framework's functions, not ours."""
        patches = [patch for patch in self._patches if patch.in_module and patch.applied]
        try:
            do_all([self._early.remove, *(patch.undo for patch in patches)])
            yield
        finally:
            for patch in patches:
                patch.apply()
            if patches:
                self._install_early()
