"""What any tool that records by hooks pays, as ``step_time.py --adapter`` takes it: hooks and wrappers that do nothing.

At L0 hooks before and after each module, on each parameter, and on the gradient graph where each module's call began
and ended; at L1 a wrapper around each function that msprobe_ms wraps, and the same on the graph; at mix both. What a
tool cannot do without beside, `floor` adds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
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

    def taken(self, values: Sequence[Any]) -> Any:
        """What a call takes, before it begins; what is returned is handed to `given`."""

    def given(self, taken: Any, values: Sequence[Any]) -> None:
        """What the call has given, and of a module its parameters."""

    def came(self, gradients: Sequence[Any]) -> None:
        """Gradients, some of them None, before backward goes on."""

    def start(self, model: Any) -> None:
        for name, module in self._framework.named_modules(model) if self._modules else ():
            if name:
                self._hook(module, [each for _, each in self._framework.parameters(module)])
        for holder, name in self._wrapped() if self._functions else ():
            self._replaced.append((holder, name, vars(holder).get(name)))
            setattr(holder, name, self._wrapper(getattr(holder, name)))

    def _hook(self, module: Any, parameters: list[Any]) -> None:
        begun: list[Any] = []

        def before(module: Any, given: tuple[Any, ...]) -> None:
            begun.append(self.taken(given))
            for value in given:
                self._watch(value)

        def after(module: Any, given: Any, output: Any) -> None:
            self.given(begun.pop(), (output, *parameters))
            self._watch(output)

        self._handles += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        self._handles += [each.register_hook(lambda gradient: self.came((gradient,))) for each in trained]

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
                taken = self.taken((*args, *kwargs.values()))
                output = function(*args, **kwargs)
                self.given(taken, (output,))
                if (node := self._node(output)) is not None:
                    node.register_prehook(lambda gradients: self.came(gradients))
                    node.register_hook(lambda gradients, _: self.came(gradients))
            finally:
                self._inside = False
            return output

        return call

    def _node(self, value: Any) -> Any:
        if not self._framework.is_tensor(value):
            return None
        return value.grad_fn if hasattr(value, "grad_fn") else value._grad_node

    def _watch(self, value: Any) -> None:
        if (node := self._node(value)) is not None:
            node.register_prehook(lambda gradients: self.came(gradients))

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


def framework_at_hand() -> Framework:
    """The one that is imported."""
    if "mindspore" in sys.modules:
        from msprobe_ms.frameworks.mindspore.framework import MindSpore

        return MindSpore()
    from msprobe_ms.frameworks.pytorch.framework import PyTorch

    return PyTorch()


def make(config_path: str) -> HooksOnly:
    """Hooks of the framework that is imported, and of the ``level`` in the file."""
    return HooksOnly(framework_at_hand(), json.loads(Path(config_path).read_text())["level"])
