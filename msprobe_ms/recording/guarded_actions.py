"""What a debugger does when its methods are called, so that no error of it reaches the training."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.debuggers import Debuggers
from msprobe_ms.recording.monitoring.gradient_probe import GradientProbe
from msprobe_ms.recording.step import Step
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.guard import guarded, tell
from msprobe_ms.support.log import LogOnce
from msprobe_ms.support.translation import tr


class GuardedActions(ABC):
    """The part of a debugger that runs its actions."""

    _debuggers: Debuggers
    _framework: Framework
    _open_step: Step | None
    _say_once: LogOnce
    _gradients: GradientProbe | None = None

    @abstractmethod
    def _pause(self) -> None:
        """Take off whatever is put on; may be repeated."""

    def _one_by_one(self, where: str, action: Callable[[], None]) -> None:
        """Run ``action`` guarded, else pause, and neither in the middle of another action that this thread does."""
        one_by_one, pause = self._debuggers.one_by_one, self._pause
        try:
            alone = partial(self._guarded, where, action, pause)
            self._guarded(where, partial(one_by_one, action, alone), partial(one_by_one, pause, pause))
        except MsprobeError as error:
            raise error.with_traceback(None) from None  # the user's mistake: our frames tell nothing
        except (MemoryError, RecursionError) as error:  # before anything was done
            try:
                tell(partial(self._say_failed, where), error)
                pause()
            except (MemoryError, RecursionError):  # nor can anything be: `stop` and `step` do it
                pass

    def _guarded(self, where: str, action: Callable[[], None], instead: Callable[[], None] | None = None) -> None:
        """Run ``action`` so that no error of ours reaches the training, else ``instead``.

        Task grad_probe has nothing but ``monitor``.
        """
        if self._gradients is None or where == "monitor":
            guarded(action, self._debuggers.turn, self._framework.quiet, partial(self._say_failed, where), instead)

    def _say_failed(self, where: str, error: Exception) -> None:
        if self._open_step is not None:
            self._open_step.failed(error, where)
        else:
            self._say_once(
                logging.WARNING,
                tr("{where}: {name}: {error}; training goes on", where=where, name=type(error).__name__, error=error),
            )
