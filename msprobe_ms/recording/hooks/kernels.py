"""Level L2: the framework shows every kernel it launches, between install and remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msprobe_ms.frameworks.base import Framework, Removable
from msprobe_ms.recording.hooks.primitives import left_out
from msprobe_ms.recording.kernel_recorder import KernelRecorder


class KernelHooks:
    """Brings kernels to the recorder."""

    def __init__(self, framework: Framework, recorder: KernelRecorder) -> None:
        self._framework = framework
        self._recorder = recorder
        self._left_out = left_out(framework)
        self._interception: Removable | None = None

    def install(self) -> None:
        if self._interception is None:
            self._interception = self._framework.intercept_kernels(self._launched)

    def _launched(self, operator: str, inputs: Sequence[Any], launch: Callable[[], Any]) -> Any:
        return launch() if operator in self._left_out else self._recorder.kernel(operator, inputs, launch)

    def remove(self) -> None:
        interception, self._interception = self._interception, None
        if interception is not None:
            interception.remove()
