"""Hooks on optimizers, put on at start; they stay until the step ends, as an optimizer may run after ``stop``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.updates import Updates
from msprobe_ms.support.patching import Hooks


class OptimizerHooks:
    """Between ``install`` and ``remove`` each update of a parameter of the models is an entry."""

    def __init__(self, framework: Framework, updates: Updates) -> None:
        self._framework = framework
        self._updates = updates
        self._watch: Hooks | None = None

    def install(self, models: Any) -> None:
        """Record updates of what these models hold, one or several."""
        self._updates.paths = {id(each): path for path, each in parameters_of(self._framework, models)}
        if self._watch is None:
            self._watch = self._framework.watch_optimizers(self._updates.begin, self._updates.end)
            if self._watch is not None:
                self._watch.install()

    def remove(self) -> None:
        """Take the hooks off."""
        if self._watch is not None:
            self._watch.remove()
        self._watch = None


def parameters_of(framework: Framework, models: Any) -> Iterator[tuple[str, Any]]:
    """Yield path and parameter, each once; of several models the path begins with the number of one."""
    several, seen = isinstance(models, (list, tuple)), set[int]()
    for index, model in enumerate(models if several else [models]):
        for module_name, module in framework.named_modules(model):
            for name, parameter in framework.parameters(module):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield ".".join(filter(None, (str(index) if several else "", module_name, name))), parameter
