"""Hooks on single modules that a script names while it records: ``module_dump(module, name)``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.hooks.modules import ModuleCalls
from msprobe_ms.recording.recorder import Recorder
from msprobe_ms.support.patching import Hooks, install, remove


class NamedModules:
    """The modules named since recording began; what is inside them has no entries."""

    def __init__(self, framework: Framework, recorder: Recorder) -> None:
        self._framework, self._recorder = framework, recorder
        self._calls: list[ModuleCalls] = []
        self._forward: list[Hooks] = []
        self._parameters: list[Hooks] = []

    def add(self, module: Any, name: str) -> None:
        """Record the calls of ``module`` as ``Module.{name}.{class}.forward.{n}`` until `remove_forward`."""
        base = f"{self._framework.dialect.module_prefix}.{name}.{type(module).__name__}"
        calls = ModuleCalls(self._framework, self._recorder, base, module)
        self._calls.append(calls)
        install(calls.hooks(), self._forward)
        install(calls.parameter_hooks(), self._parameters)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A compiler would compile the hooks into the user's graph."""
        calls = self._calls
        try:
            self.remove_forward()
            yield
        finally:
            self._calls = calls
            for each in calls:
                install(each.hooks(), self._forward)

    def remove_forward(self) -> None:
        """Take the hooks off the modules; gradients of calls already made still come in."""
        self._calls = []
        remove(self._forward)

    def remove_parameters(self) -> None:
        """Take the hooks off the parameters."""
        remove(self._parameters)
