"""Watching a training that knows nothing of it: which networks are trained, where a step ends."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.patching import Patch, do_all

_Answer = TypeVar("_Answer")


class Listener(Protocol):
    """Is told of a training as it goes. No method raises."""

    def optimizer_made(self, optimizer: Any) -> None:
        """The script has constructed an optimizer."""

    def computes(self, networks: Sequence[Any], found: str) -> None:
        """Forward (and backward) of ``networks`` begin; ``found`` says in words how they were found."""

    def pauses(self) -> None:
        """They are over, or an optimizer is about to run."""

    def optimizer_ran(self, optimizer: Any) -> None:
        """This optimizer has updated the parameters, or has decided not to."""


class Networks(ABC):
    """Which networks the optimizers of a training train."""

    @abstractmethod
    def trainable(self, network: Any) -> Iterable[Any]:
        """The trainable parameters of a network and all below it."""

    @abstractmethod
    def modules(self, network: Any) -> Iterable[Any]:
        """The network and every module below it."""

    @abstractmethod
    def device(self, network: Any) -> str:
        """What kind of device a network, or several in a list, is on, in lower case: ``cpu``, ``ascend``; "" where that
        is not known."""

    @abstractmethod
    def of_optimizer(self, optimizer: Any) -> Iterable[Any]:
        """The parameters that an optimizer updates."""

    @abstractmethod
    def alive(self) -> Iterable[Any]:
        """Every module in this process that may be a network or a part of one."""

    def trained(self, called: Sequence[Any], optimizers: Iterable[Any]) -> Sequence[Any]:
        """The networks of ``called``, and others, that ``optimizers`` train, in the order of their parameters there.

        A network called later in the step is found too, by what its optimizer holds, so that all of them have their
        names from the step's first call on. Several that stand in one module are given as that module. Gives
        ``called`` back when the optimizers hold no module's own parameters (flat or master copies), or when there is
        none.
        """
        places: dict[int, int] = {}
        for optimizer in optimizers:
            for parameter in self.of_optimizer(optimizer):
                places.setdefault(id(parameter), len(places))
        if not places:
            return called
        known = [network for network in called if self._holds(network, places)]
        missing = set(places).difference(id(parameter) for network in known for parameter in self.trainable(network))
        found = [*known, *self._others(known, missing)] if missing else known
        if not found:
            return called
        if len(found) > 1 and (around := self._around(found)) is not None:
            return [around]
        return sorted(found, key=lambda network: min(places.get(id(p), len(places)) for p in self.trainable(network)))

    def _others(self, known: Sequence[Any], missing: Iterable[int]) -> Sequence[Any]:
        """The outermost modules that hold one of these parameters and stand neither around nor in ``known``."""
        inner = {id(module) for network in known for module in self.modules(network)}
        candidates = [module for module in self.alive() if id(module) not in inner and self._holds(module, missing)]
        apart = [each for each in candidates if not any(id(module) in inner for module in self.modules(each))]
        below = {id(module) for each in apart for module in self.modules(each) if module is not each}
        return [each for each in apart if id(each) not in below]

    def _around(self, networks: Sequence[Any]) -> Any:
        """The smallest module that all of these stand in; None where there is none."""
        wanted = {id(network) for network in networks}
        sizes = []
        for module in self.alive():
            inside = {id(each) for each in self.modules(module)}
            if wanted <= inside and id(module) not in wanted:
                sizes.append((len(inside), module))
        return min(sizes, key=lambda each: each[0])[1] if sizes else None

    def _holds(self, network: Any, parameters: Any) -> bool:
        return any(id(parameter) in parameters for parameter in self.trainable(network))


def answer(question: Callable[[], _Answer], otherwise: _Answer) -> _Answer:
    """What the script's objects say; ``otherwise`` where asking them raises: their methods may be the script's own."""
    try:
        return question()
    except Exception as error:
        if interrupts(error):
            raise
        return otherwise


class ClassPatches:
    """Methods of classes, replaced until ``remove``. Class methods alone: a compiler does not read them by name."""

    def __init__(self) -> None:
        self._patches: list[Patch] = []

    def put(self, holder: type, name: str, around: Callable[..., Any]) -> None:
        """``holder.name`` becomes ``around(original, self, *args, **kwargs)``."""

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def replaced(instance: Any, *args: Any, **kwargs: Any) -> Any:
                return around(original, instance, *args, **kwargs)

            return replaced

        patch = Patch(holder, name, wrap)
        self._patches.append(patch)
        patch.apply()

    def watch_msadapter(self) -> None:
        """``torch`` has been imported, and is MSAdapter's. Nothing changes for frameworks that it does not stand on."""

    def remove(self) -> None:
        """Put everything back."""
        do_all(patch.undo for patch in reversed(self._patches))
        self._patches.clear()
