"""Remove our patches while the framework reads or compiles user code, so that it sees the original functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.recorder import Recorder
from msprobe_ms.support.patching import Patch, Patches


class Suspendable(Protocol):
    """Hooks that can be away for a while."""

    def suspended(self) -> AbstractContextManager[None]: ...


class CompilerCalls:
    """Steps aside in calls that compile user code: hooks are taken off, and nothing called inside is recorded."""

    def __init__(self, framework: Framework, recorder: Recorder, hooks: Sequence[Suspendable]) -> None:
        self._recorder = recorder
        self._hooks = hooks
        self._patches = Patches(Patch(holder, name, self._wrap) for holder, name in framework.compiler_calls())

    def install(self) -> None:
        self._patches.apply()

    def remove(self) -> None:
        self._patches.undo()

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with ExitStack() as away:
                away.enter_context(self._recorder.blind())
                for hooks in self._hooks:
                    away.enter_context(hooks.suspended())
                return original(*args, **kwargs)

        return wrapper
