"""References that users give: functions of their own on numpy arrays, named in a yaml file or by installed packages."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from msprobe_ms.accuracy.references.reference import (
    FusedReference,
    NotJudged,
    NotReproducible,
    as_float64,
    float_tensors,
    typed,
)
from msprobe_ms.accuracy.references.table import fused_reference
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.dialects import API_PREFIXES
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr
from msprobe_ms.support.yaml_files import UnreadableError, read_texts

#: Entry points of this group are references: the name is the operator's, the object a function, or one with the
#: functions ``forward`` and ``backward``.
ENTRY_POINTS = "msprobe_ms.references"
#: In the place of a prefix: calls of the name under any.
ANY_PREFIX = ""

_FORM = tr("expected operators: {NAME: {forward: MODULE:FUNCTION, backward: MODULE:FUNCTION, description: TEXT}}")
_LARGEST_FILE = 1 << 20
_NO_BACKWARD = NotJudged(tr("the reference has no backward"))


@dataclass(frozen=True)
class UserReference:
    """The reference of one operator, given by a user.

    ``forward``   gets the arguments of the call, floats in float64; returns an array, or several
    ``backward``  gets the list of the outputs' gradients (None where the loss does not depend on one) before the
                  arguments; returns one for each floating-point tensor among them, None where none reaches it
    """

    name: str
    forward: Callable[..., Any]
    backward: Callable[..., Any] | None = None
    description: str = ""

    def run(
        self, arguments: Arguments, output_gradients: Sequence[TypedArray | NotJudged | None] | None = None
    ) -> ApiOutcome:
        """Call the user's functions.

        :raises NotReproducible: they raise, or return what does not fit
        """
        positional = [as_float64(each) for each in arguments.positional]
        keywords = {name: as_float64(each) for name, each in arguments.keywords.items()}
        with np.errstate(all="ignore"):
            outputs = self._several(self.forward, *positional, **keywords)
            if output_gradients is None:
                return ApiOutcome(outputs)
            wanted = sum(1 for _ in float_tensors(arguments))
            if self.backward is None:
                return ApiOutcome(outputs, (_NO_BACKWARD,) * wanted)  # type: ignore[arg-type]
            given = [as_float64(each) if isinstance(each, TypedArray) else None for each in output_gradients]
            gradients = self._several(self.backward, given, *positional, **keywords)
        if len(gradients) != wanted:
            raise NotReproducible(
                tr(
                    "backward of {name} returned {count} gradients, {wanted} are needed",
                    name=self.name,
                    count=len(gradients),
                    wanted=wanted,
                )
            )
        return ApiOutcome(outputs, gradients)

    def _several(self, function: Callable[..., Any], /, *positional: Any, **keywords: Any) -> tuple[Any, ...]:
        try:
            result = function(*positional, **keywords)
        except NotReproducible:
            raise
        except (Exception, SystemExit) as error:
            raise NotReproducible(
                tr("reference of {name}: {name2}: {error}", name=self.name, name2=type(error).__name__, error=error)
            ) from error
        return tuple(map(typed, result)) if isinstance(result, (list, tuple)) else (typed(result),)


#: A reference of either kind: ``name`` and ``run(arguments, output_gradients)``.
Reference: TypeAlias = "FusedReference | UserReference"
UserReferences: TypeAlias = Mapping[tuple[str, str], UserReference]


def user_references(file: Path | None = None) -> UserReferences:
    """Return the references of installed packages and of a file, by prefix (``ANY_PREFIX``) and name; the file's come
    first. Functions are ``package.module:function``, or ``path.py:function`` beside the file.

    :raises UsageError: the file is not of the form, or a function is not there
    """
    found = [*_installed(), *(() if file is None else _of_file(Path(file)))]
    return {_key(each.name): each for each in found}


def find_reference(apis: str, prefix: str, api: str, users: UserReferences) -> Reference | None:
    """Return the user's reference for calls ``{prefix}.{api}.{n}``, else the built-in one, else None."""
    return users.get((prefix, api)) or users.get((ANY_PREFIX, api)) or fused_reference(apis, prefix, api)


def _key(name: str) -> tuple[str, str]:
    prefix, _, api = name.partition(".")
    return (prefix, api) if api and prefix in API_PREFIXES else (ANY_PREFIX, name)


def _installed() -> Iterator[UserReference]:
    for entry_point in entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry_point.load()
        except (Exception, SystemExit) as error:
            raise UsageError(
                tr(
                    "entry point {entry_points} {name}: {error}",
                    entry_points=ENTRY_POINTS,
                    name=entry_point.name,
                    error=error,
                )
            ) from error
        description = (getattr(loaded, "__doc__", None) or "").partition("\n")[0]
        if not callable(getattr(loaded, "forward", loaded)):
            raise UsageError(
                tr(
                    "entry point {entry_points} {name}: {value} is no function",
                    entry_points=ENTRY_POINTS,
                    name=entry_point.name,
                    value=entry_point.value,
                )
            )
        yield UserReference(
            entry_point.name, getattr(loaded, "forward", loaded), getattr(loaded, "backward", None), description
        )


def _of_file(file: Path) -> Iterator[UserReference]:
    try:
        content = read_texts(file, _LARGEST_FILE)
    except UnreadableError as error:
        raise UsageError(tr("{file}: {error}; {form}", file=file, error=error, form=_FORM)) from None
    operators = content.get("operators") if isinstance(content, dict) else None
    if not isinstance(operators, dict):
        raise UsageError(tr("{file}: {form}", file=file, form=_FORM))
    for name, given in operators.items():
        unknown = set(given) - {"forward", "backward", "description"} if isinstance(given, dict) else {"text"}
        if unknown or "forward" not in given:
            raise UsageError(tr("{file}: operators.{name}: {form}", file=file, name=name, form=_FORM))
        backward = given.get("backward")
        yield UserReference(
            name,
            _function(file, name, given["forward"]),
            _function(file, name, backward) if backward else None,
            str(given.get("description", "")),
        )


def _function(file: Path, operator: str, source: Any) -> Callable[..., Any]:
    place = f"{file}: operators.{operator}: {source}"
    module_name, _, name = str(source).rpartition(":")
    if not module_name or not name:
        raise UsageError(tr("{place}: {form}", place=place, form=_FORM))
    try:
        module = _of_path(file.parent / module_name) if module_name.endswith(".py") else _imported(module_name)
    except (Exception, SystemExit) as error:
        raise UsageError(tr("{place}: {name}: {error}", place=place, name=type(error).__name__, error=error)) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(tr("{place}: there is no function {name}", place=place, name=name))
    return function


def _imported(module: str) -> Any:
    return importlib.import_module(module)


def _of_path(path: Path) -> Any:
    """The file as a module, once, under a name that no import has: it may be called ``numpy.py``."""
    name = f"msprobe_references:{path.resolve()}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None  # there always is one for .py
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses of the file look themselves up
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
