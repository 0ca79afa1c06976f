"""Hooks that a framework registers are found again and taken off, wherever something interrupted putting them on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

from msprobe_ms.frameworks.own_hooks import ModuleHook, OwnHook, Registered, telling


class Module:
    """Keeps hooks by number, as frameworks' modules do; may be interrupted as it hands out the handle."""

    def __init__(self) -> None:
        self._forward_hooks: dict[int, Any] = OrderedDict()
        self._forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
        self.interrupted = False

    def register(self, hook: Callable[..., Any]) -> Handle:
        number = len(self._forward_hooks)
        self._forward_hooks[number], self._forward_hooks_with_kwargs[number] = hook, True
        if self.interrupted:
            raise KeyboardInterrupt
        return Handle([self._forward_hooks, self._forward_hooks_with_kwargs], number)


class Handle:
    def __init__(self, tables: list[dict[int, Any]], number: int) -> None:
        self._tables, self._number = tables, number

    def remove(self) -> None:
        for table in self._tables:
            table.pop(self._number, None)


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_module_has_none_of_ours_left(interrupted: bool) -> None:
    module, users = Module(), OwnHook(None, print)
    module.register(users)
    module.interrupted = interrupted
    hook = ModuleHook(OwnHook(module, print), module.register)
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            hook.install()
    else:
        hook.install()
    assert len(module._forward_hooks) == 2
    hook.remove()
    hook.remove()
    assert (dict(module._forward_hooks), dict(module._forward_hooks_with_kwargs)) == ({0: users}, {0: True})


def test_several_are_taken_off_whatever_comes() -> None:
    gone: list[str] = []

    def take_off(handle: str) -> None:
        gone.append(handle)
        if handle == "a" and len(gone) < 3:
            raise KeyboardInterrupt

    hooks = Registered((str, lambda: None), (str, lambda: None), take_off=take_off)
    hooks._handles = ["a", "b"]
    with pytest.raises(KeyboardInterrupt):
        hooks.remove()
    hooks.remove()
    hooks.remove()
    assert gone == ["a", "b", "a", "b"]


def test_what_telling_of_a_gradient_raises_is_told() -> None:
    told: list[Any] = []

    def on_gradient(gradient: Any) -> None:
        told.append(gradient)
        if gradient == 1:
            raise ValueError("a")

    report = telling(on_gradient)
    assert report(0) is None and report(1) is None
    assert told[:2] == [0, 1] and isinstance(told[2], ValueError)
