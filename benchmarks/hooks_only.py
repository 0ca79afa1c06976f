"""What any tool that records by hooks pays, as ``step_time.py --adapter`` takes it: hooks and wrappers that do nothing.

At L0 hooks before and after each module, on each parameter, and on the gradient graph where each module's call began
and ended; at L1 a wrapper around each function that msprobe_ms wraps, and the same on the graph; at mix both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.hooks.api_list import ApiList
from msprobe_ms.recording.hooks.operators import left_out


def _nothing(*_: Any) -> None:
    return None


class HooksOnly:
    """Has the interface of a debugger, and records nothing."""

    def __init__(self, framework: Framework, level: str) -> None:
        self._framework = framework
        self._modules, self._functions = level in ("L0", "mix"), level in ("L1", "mix")
        self._handles: list[Any] = []
        #: Holder, name and what stood there.
        self._replaced: list[tuple[Any, str, Any]] = []
        self._inside = False

    def start(self, model: Any) -> None:
        for name, module in self._framework.named_modules(model) if self._modules else ():
            if name:
                self._handles.append(module.register_forward_pre_hook(_nothing))
                self._handles.append(module.register_forward_hook(lambda module, given, output: self._watch(output)))
                parameters = [each for _, each in self._framework.parameters(module) if each.requires_grad]
                self._handles += [parameter.register_hook(_nothing) for parameter in parameters]
        for holder, name in self._wrapped() if self._functions else ():
            self._replaced.append((holder, name, vars(holder).get(name)))
            setattr(holder, name, self._wrapper(getattr(holder, name)))

    def _wrapped(self) -> Iterator[tuple[Any, str]]:
        for space, names in ApiList(self._framework).apis.items():
            yield from ((space.holder, name) for name in names if callable(getattr(space.holder, name, None)))
        unwanted = left_out(self._framework)
        yield from ((each, "__call__") for each in self._framework.operator_classes() if each.__name__ not in unwanted)

    def _wrapper(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return function(*args, **kwargs)
            self._inside = True
            try:
                output = function(*args, **kwargs)
            finally:
                self._inside = False
            self._watch(output)
            return output

        return call

    def _watch(self, output: Any) -> None:
        if self._framework.is_tensor(output):
            node = output.grad_fn if hasattr(output, "grad_fn") else output._grad_node
            if node is not None:
                node.register_prehook(_nothing)
                node.register_hook(_nothing)

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        for holder, name, before in reversed(self._replaced):
            if before is None:
                delattr(holder, name)
            else:
                setattr(holder, name, before)
        self._handles, self._replaced = [], []

    def step(self) -> None:
        return None


def make(config_path: str) -> HooksOnly:
    """Hooks of the framework that is imported, and of the ``level`` in the file."""
    level = json.loads(Path(config_path).read_text())["level"]
    if "mindspore" in sys.modules:
        from msprobe_ms.frameworks.mindspore.framework import MindSpore

        return HooksOnly(MindSpore(), level)
    from msprobe_ms.frameworks.pytorch.framework import PyTorch

    return HooksOnly(PyTorch(), level)
