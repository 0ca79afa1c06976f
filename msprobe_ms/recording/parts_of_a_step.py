"""Parts of a step that a script marks between ``start`` and ``stop``: what of it is recorded at level L1."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msprobe_ms.recording.debuggers import MethodOfCurrent
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import LogOnce
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config
    from msprobe_ms.frameworks.base import Framework
    from msprobe_ms.recording.step import Step


class PartsOfAStep:
    """The part of a debugger that narrows down what is recorded of a step that is open."""

    config: Config
    _framework: Framework
    _say_once: LogOnce
    _guarded: Callable[..., None]
    _open_step: Step | None
    stop: Callable[[], None]

    @MethodOfCurrent
    def forward_backward_dump_end(self) -> None:
        """Level L1: record no more APIs until ``start``; compiled functions are recorded until ``stop``.

        At the other levels it is ``stop``. Gradients of recorded calls still come in.
        """
        if self.config.level != "L1":
            also = tr(
                "forward_backward_dump_end: is for level L1; at level {level} it stops all recording, as stop() does",
                level=self.config.level,
            )
            self._say_once(logging.WARNING, also)
            return self.stop()
        self._within("forward_backward_dump_end", lambda step: step.stop_apis())

    @MethodOfCurrent
    def module_dump(self, module: Any, module_name: str) -> None:
        """Level L1: record the calls of ``module``, and no APIs, until ``module_dump_end``.

        Its entries are ``Module.{module_name}.{class}.forward.{n}``; several modules may be named. At the other levels
        the call does nothing, so that it may stay in the script. Raises UsageError for what is no module or no name.
        """
        if not self._framework.is_module(module):
            given = type(module).__name__
            raise UsageError(
                tr(
                    "module_dump: module is a {given}; give a {module_type}",
                    given=given,
                    module_type=self._framework.module_type,
                )
            )
        if not isinstance(module_name, str) or not module_name:
            raise UsageError(
                tr(
                    'module_dump: module_name {module_name} is not accepted; give a text, such as "fc1"',
                    module_name=repr(module_name),
                )
            )
        if self.config.level != "L1":
            text = f"module_dump: level {self.config.level} does not record single modules, level L1 does"
            return self._say_once(logging.WARNING, text)
        self._within("module_dump", lambda step: step.record_module(module, module_name))

    @MethodOfCurrent
    def module_dump_end(self) -> None:
        """Record APIs again, and no more calls of the modules that `module_dump` was given."""
        if self.config.level == "L1":
            self._within("module_dump_end", lambda step: step.leave_modules())

    def _within(self, where: str, action: Callable[[Step], None]) -> None:
        if self._open_step is not None:
            self._guarded(where, partial(action, self._open_step))
