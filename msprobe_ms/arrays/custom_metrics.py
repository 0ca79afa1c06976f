"""The user's own metrics of real data: functions in files of theirs, ``(golden, target) -> (value, message)``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

Array = npt.NDArray[Any]
#: What a user writes. Both arrays have the shape and dtype they were saved with (bfloat16 and float8 as float32).
Function = Callable[[Array, Array], tuple[Any, Any]]

_FORM = tr("expected FILE.py:FUNCTION, a function (golden, target) -> (value, message) of two numpy arrays")

#: Characters of an error told in a cell.
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Algorithm:
    """One function of the user's. ``name`` is the title of its column; ``source`` the text it was loaded from."""

    name: str
    source: str
    function: Function

    def measure(self, target: Array, golden: Array) -> tuple[float | str, str]:
        """Call the function on copies of two arrays; return the value, or why there is none, and the message.

        Never raises: whatever is wrong with the function becomes the text in the place of the value.
        """
        try:
            answer = self.function(golden.copy(), target.copy())
            if not isinstance(answer, (tuple, list)) or len(answer) != 2:
                return tr("returned {name}, expected (value, message)", name=type(answer).__name__), ""
            value, message = answer
            return _cell(value), "" if message is None else str(message)
        except (Exception, SystemExit) as error:
            return _spoken(error), ""


class Unloaded(NamedTuple):
    """An ``Algorithm`` on its way to another process, which loads the file itself."""

    name: str
    source: str

    def load(self) -> Algorithm:
        """Load the function. Raises UsageError: the file cannot be read or run there, or has no such function."""
        file, function = _parts(self.source)
        return Algorithm(self.name, self.source, _function(self.source, _run(self.source, Path(file)), function))


def load_algorithms(sources: Iterable[str]) -> tuple[Algorithm, ...]:
    """Load the functions that ``FILE.py:FUNCTION`` texts name; of two of one name the second is titled by its file.

    :raises UsageError: a file cannot be read or run, or has no such function
    """
    modules: dict[str, ModuleType] = {}
    loaded: dict[str, Algorithm] = {}
    for source in dict.fromkeys(sources):
        file, name = _parts(source)
        if file not in modules:
            modules[file] = _run(source, Path(file))
        title = name if name not in loaded else source
        loaded[title] = Algorithm(title, source, _function(source, modules[file], name))
    return tuple(loaded.values())


def metric_of(algorithm: Algorithm) -> str:
    """Return the key of its value in ``Row.metrics``; its message has that of ``message_of``."""
    return f"own {algorithm.name}"


def message_of(algorithm: Algorithm) -> str:
    """Return the key of its message in ``Row.metrics``."""
    return f"{metric_of(algorithm)} message"


def measured_by(algorithms: Iterable[Algorithm], target: Array, golden: Array) -> Mapping[str, float | str]:
    """Measure two arrays of any shapes with all of them; return values and messages by the keys of ``Row.metrics``."""
    found: dict[str, float | str] = {}
    for algorithm in algorithms:
        found[metric_of(algorithm)], found[message_of(algorithm)] = algorithm.measure(target, golden)
    return found


def _cell(value: Any) -> float | str:
    """A number, or the text of what is none."""
    if isinstance(value, (bool, np.bool_, str)) or value is None:
        return str(value)
    number = float(value)  # of numpy's scalars, arrays of one element, tensors of other libraries too
    return int(value) if isinstance(value, (int, np.integer)) and int(value) == number else number


def _parts(source: str) -> tuple[str, str]:
    file, _, name = source.rpartition(":")
    if not file or not name:
        raise UsageError(tr("-alg {source}: {form}", source=source, form=_FORM))
    if not Path(file).is_file() or not file.endswith(".py"):
        raise UsageError(
            tr("-alg {source}: there is no Python file {file}; {form}", source=source, file=file, form=_FORM)
        )
    return file, name


def _function(source: str, module: ModuleType, name: str) -> Function:
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(
            tr(
                "-alg {source}: there is no function {name} in {file}; {form}",
                source=source,
                name=name,
                file=module.__file__,
                form=_FORM,
            )
        )
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise UsageError(
            tr(
                "-alg {source}: {name} does not take two arrays: {error}; {form}",
                source=source,
                name=name,
                error=error,
                form=_FORM,
            )
        ) from None
    except ValueError:  # compiled functions may not tell
        pass
    return cast(Function, function)


def _run(source: str, path: Path) -> ModuleType:
    """The file as a module, under a name that no import has: the user's file may be called ``numpy.py``."""
    name = f"msprobe_algorithms:{path.resolve()}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # there always is one for .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses of the file look themselves up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise UsageError(
            tr(
                "-alg {source}: {path}{line}: {spoken}",
                source=source,
                path=path,
                line=_line(error, path),
                spoken=_spoken(error),
            )
        ) from error
    return module


def _line(error: BaseException, path: Path) -> str:
    """``, line 7``: where in the file it went wrong; "" where that is elsewhere."""
    if isinstance(error, SyntaxError) and error.lineno:
        return tr(", line {line}", line=error.lineno)
    file = path.resolve()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).resolve() == file]
    return tr(", line {line}", line=frames[-1].lineno) if frames else ""


def _spoken(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())[:_LONGEST_REASON]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
