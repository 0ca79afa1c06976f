"""What all recorders of a step share: where entries go, which are recorded, how often each thing was called."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from msprobe_ms.dump.names import PARAMETERS_GRAD
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.selection.filters import CallFilter
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.support.process import ThisProcess

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class CallCounts:
    """How often each thing was called in one step, by its name without direction and index."""

    def __init__(self) -> None:
        self.made: dict[str, int] = {}
        self._lock = threading.RLock()  # as in `StepRecorder`

    def count(self, base: str) -> int:
        """Return how often it was called before."""
        with self._lock:
            index = self.made.get(base, 0)
            self.made[base] = index + 1
        return index


class StepRecorder:
    """What all recorders of a step share: where entries go, which are recorded, how often each thing was called."""

    def __init__(self, config: Config, framework: Framework, dump: StepDump) -> None:
        self._framework = framework
        self._sink = dump.sinks.first
        self._values = dump.values
        self.errors = dump.errors
        self._filter = CallFilter(config, dump.calls)
        self._counts = CallCounts()
        self._count = self._counts.count
        #: Counts all calls, where their position is what numbers them.
        self._calls_made = itertools.count(1) if config.numbers == "by_position" else None
        self._losses = 0
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile
        self._closed = False
        self._process = ThisProcess()

    def warn_of_unused(self, unused: UnusedSettings) -> None:
        """Warn of what of the configuration selected nothing in this step."""
        calls = self._calls()
        if calls and not self._sink.full:
            self._filter.warn_of_unused(unused, calls)

    def _calls(self) -> dict[str, int]:
        """Name without direction and index → calls in this step."""
        return {base: count for base, count in self._counts.made.items() if f".{PARAMETERS_GRAD}." not in base}

    @property
    def saw_calls(self) -> bool:
        """Whether anything was called that could have been recorded, selected or not."""
        return bool(self._counts.made)

    @property
    def saw_losses(self) -> bool:
        """Whether gradients of a scalar were computed."""
        return self._losses > 0

    def close(self) -> None:
        """The step is over: what comes later belongs to nothing and is dropped."""
        self._closed = True

    def _is_open(self) -> bool:
        return not self._closed and self._process.is_mine

    def _number(self, base: str) -> int:
        """The number of a call that begins, in the names of its entries."""
        index = self._count(base)
        return index if self._calls_made is None else next(self._calls_made)
