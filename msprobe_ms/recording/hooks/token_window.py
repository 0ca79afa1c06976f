"""Recording only some calls of the model, as inference makes them: one a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from msprobe_ms.frameworks.base import Framework, Removable
from msprobe_ms.support.patching import taken_off


class TokenWindow:
    """Counts the model's calls from 0 and records those from ``first`` to ``last`` and nothing else."""

    def __init__(
        self,
        framework: Framework,
        model: Any,
        token_range: Sequence[int],
        calls: Iterator[int],
        open_recording: Callable[[], None],
        close_recording: Callable[[], None],
    ) -> None:
        self._framework = framework
        self._model = model
        self._first, self._last = token_range
        #: Gives the number of each call; it outlives the window, so that counting goes on after the next `start`.
        self._calls = calls
        self._open = open_recording
        self._close = close_recording
        self._hooks: Sequence[Removable] = ()

    def install(self) -> None:
        self._hooks = self._framework.hook_module(self._model, self._before, self._after)

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = ()

    def suspended(self) -> AbstractContextManager[None]:
        return taken_off(self, installed=bool(self._hooks))

    def _before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._first <= next(self._calls) <= self._last:
            self._open()
        return args, kwargs

    def _after(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        self._close()
        return output
