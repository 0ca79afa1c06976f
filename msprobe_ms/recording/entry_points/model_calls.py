"""Record each call of one network as a step of its own: of an inference, token by token."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.log import logger
from msprobe_ms.support.patching import Patch
from msprobe_ms.support.translation import tr


class CallSteps:
    """Starts, stops and steps a debugger around the calls of a network, from ``install`` to ``remove``.

    It ends itself after the last step that is selected, and with the network. Calls of other objects of its class pass.
    """

    def __init__(self, debugger: BaseDebugger, network: Any) -> None:
        self._debugger = debugger
        self._network = weakref.ref(network, lambda _: self.remove())
        self._patch = Patch(type(network), "__call__", self._wrap)
        self._busy = False
        #: Calls of the network that are left to record; None where there is no last.
        self._left = max(debugger.config.step) + 1 if debugger.config.step else None

    @property
    def network(self) -> Any:
        """The network, while there is one."""
        return self._network()

    def install(self) -> None:
        self._patch.apply()

    def remove(self) -> None:
        """Record no more; what was recorded is complete."""
        self._patch.undo()
        self._debugger.retire()

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(network: Any, *args: Any, **kwargs: Any) -> Any:
            if self._busy or network is not self._network() or not self._begins(network):
                return original(network, *args, **kwargs)
            self._busy = True
            try:
                return original(network, *args, **kwargs)
            finally:
                self._busy = False
                self._ended()

        return call

    def _begins(self, network: Any) -> bool:
        try:
            self._debugger.start(network)
        except MsprobeError as error:
            logger.warning(tr("{error}; the network is recorded no more", error=error))
            self.remove()
            return False
        return True

    def _ended(self) -> None:
        self._debugger.stop()
        self._debugger.step()
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self.remove()
