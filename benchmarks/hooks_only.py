"""What any tool that records by hooks pays, as ``step_time.py --adapter`` takes it: hooks and wrappers that do nothing.

At L0 hooks before and after each module, on each parameter, and on the gradient graph where each module's call began
and ended; at L1 a wrapper around each function that msprobe_ms wraps, and the same on the graph; at mix both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.hooks.api_list import ApiList
from msprobe_ms.recording.hooks.operators import left_out


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
                parameters = [each for _, each in self._framework.parameters(module) if each.requires_grad]
                self._handles.append(module.register_forward_pre_hook(self.module_begins))
                self._handles.append(module.register_forward_hook(partial(self._module_ended, parameters)))
                self._handles += [parameter.register_hook(self.parameter_gradient) for parameter in parameters]
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
                self.begins((*args, *kwargs.values()))
                output = function(*args, **kwargs)
                self.ended(output)
            finally:
                self._inside = False
            self._watch(output)
            return output

        return call

    def _module_ended(self, parameters: list[Any], module: Any, given: Any, output: Any) -> None:
        self.ended((output, *parameters))
        self._watch(output)

    def module_begins(self, module: Any, given: Any) -> None:
        """A module is called."""

    def begins(self, given: Sequence[Any]) -> None:
        """A function is called."""

    def ended(self, output: Any) -> None:
        """The call that began last is over; of a module its parameters are with the ``output``."""

    def gradients_begin(self, gradients: Any) -> None:
        """A node of the graph is given the gradients of what its call gave."""

    def gradients_ended(self, inputs: Any, outputs: Any) -> None:
        """A node has computed the gradients of what its call was given."""

    def parameter_gradient(self, gradient: Any) -> None:
        """A parameter has its gradient."""

    def _watch(self, output: Any) -> None:
        if self._framework.is_tensor(output):
            node = output.grad_fn if hasattr(output, "grad_fn") else output._grad_node
            if node is not None:
                node.register_prehook(self.gradients_begin)
                node.register_hook(self.gradients_ended)

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


def framework() -> Framework:
    """Return the one that is imported."""
    if "mindspore" in sys.modules:
        from msprobe_ms.frameworks.mindspore.framework import MindSpore

        return MindSpore()
    from msprobe_ms.frameworks.pytorch.framework import PyTorch

    return PyTorch()


def make(config_path: str) -> HooksOnly:
    """Hooks of the framework that is imported, and of the ``level`` in the file."""
    return HooksOnly(framework(), json.loads(Path(config_path).read_text())["level"])
