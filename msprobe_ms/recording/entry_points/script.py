"""``msprobe run``: a training script that was not edited, recorded while it runs."""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import io
import os
import pkgutil
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msprobe_ms.frameworks import FRAMEWORKS
from msprobe_ms.recording.entry_points.when_imported import WhenImported, forget_imports
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:  # what records is imported with a framework: a script without one waits for neither
    from msprobe_ms.frameworks.training import ClassPatches
    from msprobe_ms.recording.entry_points.auto import Drive, TrainingRecorder

#: Frames of these files around the script's own are none of its traceback.
_OURS = (__file__, runpy.__file__)


class Watches:
    """The frameworks that the script imports, each watched from its import on; ``arguments`` are the debugger's.

    ``drive`` gives what is driven in the debugger's place. ``alone``: no other process is watched, so that it is said
    where this one records nothing. ``seed`` is what each seeds its random numbers with.
    """

    def __init__(
        self, drive: Drive | None = None, *, alone: bool = True, seed: int | None = None, **arguments: Any
    ) -> None:
        self._drive = drive
        self._alone = alone
        self._seed = seed
        self._arguments = arguments
        self._recorders: list[TrainingRecorder] = []
        self._patches: list[ClassPatches] = []
        self._finder = WhenImported(list(FRAMEWORKS), self.watch)
        self._process = ThisProcess()

    def install(self) -> None:
        """Watch those that are imported already, and each of the others as it is."""
        forget_imports()
        self._finder.install()
        for name in FRAMEWORKS:
            if name in sys.modules:
                self.watch(name)

    def remove(self) -> None:
        """Take all off again, and end the recording."""
        self._finder.remove()
        for patches in self._patches:
            patches.remove()
        recording = [recorder for recorder in self._recorders if recorder.has_recording]
        for number, recorder in enumerate(self._recorders):
            recorder.finish(others_recorded=bool(recording or number))
        if self._alone and self._process.is_mine and not any(name in sys.modules for name in FRAMEWORKS):
            logger.warning(
                tr(
                    "msprobe run: nothing is recorded: the script imported neither MindSpore nor PyTorch in this "
                    "process; --exec watches the processes that it starts, too"
                )
            )

    def watch(self, name: str) -> None:
        """Watch a framework that has been imported."""
        _, ours = FRAMEWORKS[name]
        try:
            from msprobe_ms.recording.entry_points.auto import TrainingRecorder, drive_itself

            training = importlib.import_module(f"msprobe_ms.frameworks.{ours}.training")
            tool = importlib.import_module(f"msprobe_ms.{ours}")
            debugger = tool.PrecisionDebugger
            if self._seed is not None:
                tool.seed_all(self._seed, mode=True)
        except Exception as error:  # another package of this name, or a release of it that is not known
            if name == "torch" and _is_msadapter():
                for patches in self._patches:
                    patches.watch_msadapter()  # MindSpore tells of the rest of its training
                return
            logger.warning(
                tr(
                    "msprobe run: {name} cannot be watched: {other_name}: {error}",
                    name=name,
                    other_name=type(error).__name__,
                    error=error,
                )
            )
            return
        recorder = TrainingRecorder(
            debugger,
            partial(debugger, **self._arguments),
            training.find_networks(),
            self._drive or drive_itself,
            alone=self._alone,
        )
        self._recorders.append(recorder)
        self._patches.append(training.watch_training(recorder))


def _is_msadapter() -> bool:
    """Whether ``torch`` is MSAdapter's, which stands on MindSpore."""
    if "mindspore" not in sys.modules:
        return False
    return bool(importlib.import_module("msprobe_ms.frameworks.msadapter").is_in_use())


def prepare_script(
    target: str,
    arguments: Sequence[str],
    *,
    as_module: bool,
    drive: Drive | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Callable[[], int]:
    """Prepare the run of a script, a folder or archive with a ``__main__``, or a module, as ``python`` would.

    Returns what runs it and records its training, and gives the exit status; ``settings`` are the debugger's,
    ``drive`` gives what is driven in its place. What the script raises passes, its traceback without our frames, and
    ends the interpreter as it would end ``python``. Raises UsageError when there is no such script.
    """
    importer = None if as_module else _importer(target)
    if not as_module and importer is None and not _can_be_opened(target):
        raise UsageError(
            tr("run: {target}: no such script; give a Python file, or -m and the name of a module", target=target)
        )

    def run() -> int:
        main = _main_module()
        sys.argv[:] = ["-m" if as_module else target, *arguments]
        if importer is not None:
            sys.path[0] = _absolute(target)
        elif not getattr(sys.flags, "safe_path", False):  # -P: python puts no folder there, and neither did ours
            sys.path[0] = os.getcwd() if as_module else os.path.dirname(os.path.realpath(target))
        watches = Watches(drive, seed=seed, **settings)
        watches.install()
        try:
            if as_module or importer is not None:
                # As python does it: in the module that is __main__ already, which runpy.run_module is not.
                run_as_main = runpy._run_module_as_main  # type: ignore[attr-defined]
                run_as_main(target if as_module else "__main__", alter_argv=as_module)
            else:
                _run_file(target, main)
        except SystemExit:
            raise
        except BaseException as error:
            _tell_without_ours(error)
            raise
        finally:
            watches.remove()
        return 0

    return run


def _main_module() -> types.ModuleType:
    """Make a new ``__main__`` as the interpreter begins with; it stays to the end: what it pickles needs it."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=builtins)
    sys.modules["__main__"] = main
    return main


def _run_file(target: str, main: types.ModuleType) -> None:
    path = _absolute(target)
    with io.open_code(path) as file:
        raw = file.read()
    code = pkgutil.read_code(io.BytesIO(raw))
    loader = importlib.machinery.SourceFileLoader if code is None else importlib.machinery.SourcelessFileLoader
    main.__dict__.update(__loader__=loader("__main__", path), __file__=path, __cached__=None)
    exec(code or compile(raw, path, "exec", dont_inherit=True), main.__dict__)


def _importer(target: str) -> object | None:
    """Return the finder of a folder or an archive; None for a file."""
    return pkgutil.get_importer(_absolute(target))


def _absolute(target: str) -> str:
    """The path as python makes it: nothing in it is resolved."""
    return target if os.path.isabs(target) else f"{os.getcwd()}{os.sep}{target}"


def _can_be_opened(target: str) -> bool:
    """Whether it is no folder: a file, or a pipe that a shell has made of a command."""
    return os.path.exists(target) and not os.path.isdir(target)


def _tell_without_ours(error: BaseException) -> None:
    """Let the hook that is called at the end, the script's own or python's, see the traceback of the script alone."""
    hook, trace = sys.excepthook, _without_ours(error.__traceback__)

    def excepthook(kind: type[BaseException], value: BaseException, whole: TracebackType | None) -> None:
        if value is error:
            sys.last_traceback = whole = value.__traceback__ = trace
        sys.excepthook = hook
        hook(kind, value, whole)

    sys.excepthook = excepthook


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the script's own first frame on; all of it when it has none."""
    inner = trace
    while inner is not None and (inner.tb_frame.f_code.co_filename in _OURS or _is_frozen(inner)):
        inner = inner.tb_next
    return inner


def _is_frozen(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith("<frozen")
