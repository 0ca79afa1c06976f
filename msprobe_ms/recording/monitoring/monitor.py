"""``monitor`` of a debugger: what it watches over many steps, beside or instead of a dump."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msprobe_ms.recording.debuggers import MethodOfCurrent
from msprobe_ms.recording.monitoring.gradient_probe import GradientProbe
from msprobe_ms.support.log import LogOnce
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class Monitoring:
    """The part of a debugger that task grad_probe needs."""

    config: Config
    _say_once: LogOnce
    _guarded: Callable[..., None]
    _gradients: GradientProbe | None = None

    @property
    def writes_gradients(self) -> bool:
        """Whether the task is grad_probe: `monitor` alone does something."""
        return self._gradients is not None

    @MethodOfCurrent
    def monitor(self, watched: Any) -> None:
        """Task grad_probe: write the gradients that ``watched`` has at each call of its optimizer, from here on.

        ``watched`` is the network, or an optimizer that knows the names of its parameters, as MindSpore's do. A step is
        a call of the optimizer: ``start``, ``stop`` and ``step`` do nothing. With the other tasks this does nothing.

        Raises UsageError for anything else.
        """
        if self._gradients is None:
            text = tr('monitor: task {task} writes no gradients by step, task "grad_probe" does', task=self.config.task)
            self._say_once(logging.INFO, text)
        else:
            self._guarded("monitor", partial(self._gradients.watch, watched))
