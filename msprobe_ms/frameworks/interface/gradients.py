"""How gradients and updates of parameters are observed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msprobe_ms.frameworks.graph_observer import UpdateTaps
from msprobe_ms.frameworks.optimizers import AfterUpdates, BeforeUpdates
from msprobe_ms.support.patching import Hooks

#: Receives the gradients of watched tensors, in their order; None where no gradient reached one. Or why there are none.
OnGradients = Callable[[Sequence[Any] | Exception], None]
#: The same; told None beforehand whenever a part of them has come, where they come in parts.
OnInputGradients = Callable[[Sequence[Any] | Exception | None], None]
#: Is told the tensors that gradients are about to be computed of.
OnRoots = Callable[[Sequence[Any] | Exception], None]


class InputWatch:
    """Tensors watched during one call."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        #: What to hand to the call, in the order of the tensors to watch.
        self.tensors = tensors

    def settle(self, outputs: Sequence[Any]) -> None:
        """The call is over: ``outputs`` are the tensors it returned, none when it raised."""


class GradientInterface(ABC):
    """Watches on tensors, parameters and optimizers."""

    @abstractmethod
    def can_watch(self, tensor: Any, *, parameters: bool) -> bool:
        """Whether a gradient may flow through this tensor and it can be watched without harm."""

    @abstractmethod
    def watch_inputs(self, tensors: Sequence[Any], on_gradients: OnInputGradients, *, is_module: bool) -> InputWatch:
        """Watch the arguments of a call for the gradients that this call alone sends them.

        What is handed to the call instead is equal to the arguments and shares their memory.
        """

    @abstractmethod
    def watch_outputs(
        self, tensors: Sequence[Any], on_gradients: OnGradients, inputs: InputWatch | None
    ) -> Sequence[Any]:
        """Watch a call's results for the gradients that reach them; return what to hand on instead, often the same.

        ``inputs`` is the watch on the same call's arguments, if there was anything to watch.
        May report more than once, each time with all gradients that have come by then.
        """

    def backward_ended(self, *, everywhere: bool = False) -> None:
        """Report what watches still wait for: no gradient is on its way any more, on this thread or on any."""
        return None

    def leave_leaves(self) -> None:
        """Take off the hooks of watches that stay with the script's tensors beyond the gradient graph."""
        return None

    @abstractmethod
    def hook_parameter(self, parameter: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        """Return what reports the parameter's accumulated gradient; None for one that has none."""

    @abstractmethod
    def watch_gradient(self, tensor: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        """Return what reports the whole gradient of a tensor that ``can_watch``; None where the graph alone has it."""

    def gradient_calls(self, on_roots: OnRoots) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        """Return ``(holder, attribute, wrap)`` of what computes gradients; wrapped, it tells of what, after forward."""
        return ()

    def watch_optimizers(self, before: BeforeUpdates, after: AfterUpdates) -> Hooks | None:
        """Return what calls ``before`` and ``after`` around each call of an optimizer; None where that cannot be."""
        return None

    def optimizer_taps(self) -> UpdateTaps | None:
        """Return what observes optimizers inside compiled graphs; None where nothing can."""
        return None

    def optimizer_parameters(self, value: Any) -> Mapping[str, Any] | None:
        """Return an optimizer's parameters by name, without any where it has no names; None of what is no optimizer."""
        return None

    def main_gradient(self, parameter: Any) -> Any:
        """Return the gradient that a parameter keeps beside its own, for an optimizer of copies; None without one."""
        return None
