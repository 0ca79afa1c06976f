"""How modules are found and hooked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msprobe_ms.support.patching import Hooks

#: Is told of an exception that comes no further.
Failed = Callable[[Exception], None]

#: ``before(args, kwargs) -> (args, kwargs)`` and ``after(args, kwargs, output) -> output`` of one module call.
Before = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]
After = Callable[[tuple[Any, ...], dict[str, Any], Any], Any]


class ModuleInterface(ABC):
    """What a module is, what it holds, and how its calls are observed."""

    @abstractmethod
    def is_module(self, value: Any) -> bool: ...

    @abstractmethod
    def layer_call(self) -> tuple[Any, str]:
        """Return the class of all modules, and the name of the method through which each is called."""

    @abstractmethod
    def is_layer(self, module: Any) -> bool:
        """Whether this is a module of the framework's own with no modules inside."""

    @abstractmethod
    def named_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        """Yield dotted name and module of every module below ``model`` (and ``model`` itself, named ""), each once."""

    @abstractmethod
    def parameters(self, module: Any) -> Iterable[tuple[str, Any]]:
        """Return the module's own parameters, not its children's."""

    def recorded_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        """Return dotted name and module of those that have entries: every module below ``model``, each once.

        And ``model`` itself, named "", where it holds a parameter that none of them does, such as a ``cls_token``.
        """
        modules = list(self.named_modules(model))
        own = {id(parameter) for name, module in modules if not name for _, parameter in self.parameters(module)}
        if own:
            own -= {id(parameter) for name, module in modules if name for _, parameter in self.parameters(module)}
        return ((name, module) for name, module in modules if name or own)

    @abstractmethod
    def hook_module(self, module: Any, before: Before, after: After, failed: Failed) -> Sequence[Hooks]:
        """Return what calls ``before`` and ``after`` around each call; ``after`` too when it raises, where it can.

        ``failed`` is told of what they raise, which goes no further.
        """

    def clean_copies(self) -> Hooks | None:
        """Return what has deep copies and pickles of modules hold genuine functions where these hold wrappers."""
        return None
