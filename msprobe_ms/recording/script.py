"""``msprobe run``: a training script that was not edited, recorded while it runs."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from msprobe_ms.frameworks import FRAMEWORKS
from msprobe_ms.frameworks.training import ClassPatches
from msprobe_ms.recording.auto import TrainingRecorder
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger

#: Frames of these files around the script's own are none of its traceback.
_OURS = (__file__, runpy.__file__)


class _WhenImported(importlib.abc.MetaPathFinder):
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


class _Watches:
    """The frameworks that the script imports, each watched from its import on."""

    def __init__(self, **arguments: Any) -> None:
        self._arguments = arguments
        self._recorders: list[TrainingRecorder] = []
        self._patches: list[ClassPatches] = []
        self._finder = _WhenImported(list(FRAMEWORKS), self._watch)

    def install(self) -> None:
        sys.meta_path.insert(0, self._finder)
        for name in FRAMEWORKS:
            if name in sys.modules:
                self._watch(name)

    def remove(self) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        for patches in self._patches:
            patches.remove()
        for recorder in self._recorders:
            recorder.finish()

    def _watch(self, name: str) -> None:
        _, ours = FRAMEWORKS[name]
        try:
            training = importlib.import_module(f"msprobe_ms.frameworks.{ours}.training")
            debugger = importlib.import_module(f"msprobe_ms.{ours}").PrecisionDebugger
        except Exception as error:  # another package of this name, or a release of it that is not known
            logger.warning("msprobe run: %s cannot be watched: %s: %s", name, type(error).__name__, error)
            return
        recorder = TrainingRecorder(debugger, partial(debugger, **self._arguments), training.find_networks())
        self._recorders.append(recorder)
        self._patches.append(training.watch_training(recorder))


def run_script(target: str, arguments: Sequence[str], *, as_module: bool, **settings: Any) -> int:
    """Run a script (or a module) as ``python`` would and record its training; ``settings`` are the debugger's.

    Returns the exit status: 1 after an exception, whose traceback is the script's own. SystemExit passes.
    Raises UsageError when there is no such script.
    """
    if not as_module and not Path(target).is_file():
        raise UsageError(f"run: {target}: no such script; give a Python file, or -m and the name of a module")
    sys.argv[:] = [target, *arguments]
    sys.path[0] = os.getcwd() if as_module else str(Path(target).resolve().parent)
    watches = _Watches(**settings)
    watches.install()
    try:
        if as_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            _run_file(target)
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _without_ours(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        watches.remove()
    return 0


def _run_file(target: str) -> None:
    """The script's module stays ``__main__`` to the end of the process: what it pickles and registers needs it."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=target, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = main
    with open(target, "rb") as file:
        code = compile(file.read(), target, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the script's own first frame on; all of it when it has none."""
    inner = trace
    while inner is not None and (inner.tb_frame.f_code.co_filename in _OURS or _is_frozen(inner)):
        inner = inner.tb_next
    return inner


def _is_frozen(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith("<frozen")
