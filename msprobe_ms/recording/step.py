"""The interfaces of a recorded step, and of what opens the steps of one execution mode, as the debugger knows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.writing.writer import process_folder
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.hooks.apis import ApiHooks
from msprobe_ms.recording.progress import Status
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.recording.selection.why_empty import Exceptions
from msprobe_ms.recording.start_arguments import TokenRange
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import logger
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class Step(ABC):
    """One step of one process, from the first ``start`` to ``step``.

    Once it is open nothing here raises into the host, but for a UsageError of ``start``.
    """

    def __init__(self, config: Config, framework: Framework, status: Status) -> None:
        self._config = config
        self._framework = framework
        self.status = status
        self._process = ThisProcess()
        #: Whether `finish` was called; it may have been interrupted.
        self.ending = False
        #: Whether another debugger's `start` ends it: nobody can tell then what would have been called.
        self.gave_way = False
        self._exceptions = Exceptions()
        #: The exception that ended the step, in one line; "" while none is known.
        self.ended_by = ""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where the dump lies."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is neither an entry nor an error that explains why."""

    @property
    def left_nothing(self) -> bool:
        """The same of all that a step has written, asked once it is over."""
        return self.is_empty

    @property
    def saw_backward(self) -> bool:
        """Whether gradients have come back since the last ``start``."""
        return False

    def failed(self, error: Exception, where: str) -> None:
        """Say that ``where`` did not come to its end, to readers of the dump as well where they are told of errors."""
        logger.warning(
            tr("{where}: {name}: {error}; training goes on", where=where, name=type(error).__name__, error=error)
        )

    @abstractmethod
    def start(self, model: Any, token_range: TokenRange | None) -> None:
        """Record from here on. Raises UsageError where that cannot work."""

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Record a value that the script hands over (level debug)."""
        return None

    def stop_apis(self) -> None:
        """Record no APIs until `start` (level L1)."""
        return None

    def record_module(self, module: Any, name: str) -> None:
        """Record the calls of ``module``, and no APIs, until `leave_modules` (level L1)."""
        return None

    def leave_modules(self) -> None:
        """Record APIs again, and the modules of `record_module` no more."""
        return None

    def optimizer_ran(self, optimizer: Any) -> None:
        """The call of an optimizer is over, which ends the step."""
        return None

    def stop(self) -> None:
        """Pause until `start`, and bring the files up to date."""
        self.ended_by = self.ended_by or self._exceptions.new()
        self._pause()
        if self._process.is_mine:
            self._export()

    def finish(self, unused: UnusedSettings) -> None:
        """End the step: let go of the host, then complete the files, which a forked child does not.

        May be called again where something interrupted it.
        """
        self.ending = True
        try:
            self.stop()
        finally:
            self._release()
        if self._process.is_mine:
            self._complete(unused)

    @abstractmethod
    def _pause(self) -> None:
        """Nothing more is called that is recorded."""

    def _export(self) -> None:
        """Bring the files up to date."""
        return None

    def _release(self) -> None:
        """What still comes belongs to nothing."""
        return None

    @abstractmethod
    def _complete(self, unused: UnusedSettings) -> None:
        """Complete the files and say what came of the step."""


class Dumper(ABC):
    """What opens the steps of one debugger in one execution mode."""

    #: Whether all that is recorded runs in compiled graphs.
    in_graphs = False

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quotas: Quotas) -> None:
        self._framework = framework
        self._apis = apis
        self._quotas = quotas
        #: What steps have warned of that holds for every step.
        self._warned: set[str] = set()
        #: Name of a process's folder → that which its dumps have, where another process has taken the first.
        self._names: dict[str, str] = {}
        #: Steps that could not be recorded, and the errors of the system that were warned of.
        self._refused, self._reasons = list[int](), set[int | None]()

    def open(self, config: Config, step: int, rank: int | None) -> Step | None:
        """Open a step that is selected; None, with a warning, when the disk does not allow it.

        ``config`` is the debugger's as it is now: a file may change while a job runs.
        """
        own = process_folder(config.dump_path, step, rank)
        folder = own.with_name(self._names.get(own.name, own.name))
        try:
            opened = self._open(config, folder, step, rank)
        except OSError as error:
            if interrupts(error):
                raise
            self._warn_refused(step, folder, error)
            return None
        if opened is not None:
            self._names[own.name] = opened.folder.name
        return opened

    @abstractmethod
    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> Step | None:
        """The step, whose dump goes to ``folder``; None where nothing is recorded. Raises OSError."""

    def announce(self, models: Sequence[Any]) -> None:
        """``start`` was called with ``models``, whether or not the step is recorded."""
        return None

    def step_ended(self, step: int) -> None:
        """``step`` is over; its recording, if there was one, is finished."""
        return None

    def _warn_refused(self, step: int, folder: Path, error: OSError) -> None:
        """Warn that the disk does not let ``step`` be recorded: once for each error, however many steps meet it."""
        self._refused.append(step)
        if error.errno not in self._reasons:
            self._reasons.add(error.errno)
            logger.warning(
                tr(
                    "{folder}: {strerror}; step {step} is not recorded, training goes on",
                    folder=folder,
                    strerror=error.strerror or error,
                    step=step,
                )
            )

    def close(self) -> None:
        """Nothing more is recorded: put back what was changed in the process."""
        refused, self._refused = self._refused, []
        if len(refused) > len(self._reasons):
            logger.warning(
                tr(
                    "{count} steps are not recorded, the first {refused}, the last {other_refused}: the disk did "
                    "not allow it",
                    count=len(refused),
                    refused=refused[0],
                    other_refused=refused[-1],
                ),
            )
