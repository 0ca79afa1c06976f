"""What stands for a debugger elsewhere has all methods that scripts call."""

from __future__ import annotations

import pickle
from typing import Any

from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.recording.debuggers import MethodOfCurrent
from msprobe_ms.recording.travelling import IdleDebugger, Travelling


class Debugger(Travelling):
    """Of a class whose current one is chosen here."""

    chosen: Any = None

    @classmethod
    def current(cls) -> Any:
        return cls.chosen


def test_a_pickle_is_the_debugger_of_the_process_that_loads_it() -> None:
    debugger = Debugger()
    raw = pickle.dumps({"debugger": debugger})
    assert isinstance(pickle.loads(raw)["debugger"], IdleDebugger)
    Debugger.chosen = debugger
    try:
        assert pickle.loads(raw)["debugger"] is debugger
    finally:
        Debugger.chosen = None


def test_what_does_nothing_has_every_method() -> None:
    idle = IdleDebugger()
    for name, method in vars(BaseDebugger).items():
        if isinstance(method, MethodOfCurrent) or name == "set_init_step":
            assert getattr(idle, name)(3, key="value") is None, name
    assert pickle.loads(pickle.dumps(idle)).stop() is None
