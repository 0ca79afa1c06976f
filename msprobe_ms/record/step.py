"""What records the steps of a debugger: the interface that the debugger knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.record.hooks.apis import ApiHooks
from msprobe_ms.record.output.overflow import OverflowQuota
from msprobe_ms.record.progress import Status
from msprobe_ms.record.selection.unused_settings import UnusedSettings
from msprobe_ms.support.log import logger

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class Step(Protocol):
    """What a dumper makes of one step of one process, from the first ``start`` to ``step``."""

    status: Status

    @property
    def folder(self) -> Path: ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def saw_backward(self) -> bool: ...

    def start(self, model: Any, token_range: Sequence[int] | None) -> None: ...

    def save(self, variable: Any, name: str, save_backward: bool) -> None: ...

    def stop(self) -> None: ...

    def finish(self, misses: UnusedSettings) -> None: ...


class Dumper(ABC):
    """What records the steps of one debugger in one execution mode."""

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quota: OverflowQuota) -> None:
        self._framework = framework
        self._apis = apis
        self._quota = quota
        #: Steps that could not be recorded, and the errors of the system that were told of.
        self._refused, self._reasons = list[int](), set[int | None]()

    @abstractmethod
    def open(self, config: Config, step: int, rank: int | None) -> Step | None:
        """The recording of a step that is selected; None, with a warning, when the disk does not allow it.

        ``config`` is the debugger's as it is now: a file may change while a job runs.
        """

    def announce(self, models: Sequence[Any]) -> None:
        """``start`` was called with ``models``, whether or not the step is recorded."""
        return None

    def step_ended(self, step: int) -> None:
        """``step`` is over; its recording, if there was one, is finished."""
        return None

    def refused(self, step: int, folder: Path, error: OSError) -> None:
        """Warn that the disk does not let ``step`` be recorded: once for each error, however many steps meet it."""
        self._refused.append(step)
        if error.errno not in self._reasons:
            self._reasons.add(error.errno)
            logger.warning("%s: %s; step %d is not recorded, training goes on", folder, error.strerror or error, step)

    def close(self) -> None:
        """Nothing more is recorded: put back what was changed in the process."""
        refused, self._refused = self._refused, []
        if len(refused) > len(self._reasons):
            logger.warning(
                "%d steps are not recorded, the first %d, the last %d: the disk did not allow it",
                len(refused), refused[0], refused[-1],
            )  # fmt: skip
