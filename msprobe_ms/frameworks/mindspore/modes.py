"""How MindSpore runs what a script calls: dynamic graphs, or compiled ones of one of two kinds; and who is told."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from itertools import starmap
from typing import Any

import mindspore
from mindspore import _c_expression
from mindspore._c_expression import MSContext, PyNativeExecutor_
from mindspore.context import get_jit_config

from msprobe_ms.frameworks.compiled_call import ExecutionMode
from msprobe_ms.frameworks.mindspore import device_statistics
from msprobe_ms.support.translation import tr

#: The one processor on which graphs are run as a whole unless something else is asked for.
_WHOLE_GRAPHS = "ascend910"

#: Users' modes that are told of operators (``MsDispatchMode``), and what keeps operators from them; from 2.10 on.
_told = getattr(getattr(_c_expression, "_DispatchGuardStack", None), "has_dispatch_guard", bool)
_untold = getattr(_c_expression, "_DisableMsDispatchMode", nullcontext)
_NOTHING = nullcontext()


def unseen() -> AbstractContextManager[Any]:
    """Return a context for operators of this package, of which nobody is told."""
    return _untold() if _told() else _NOTHING


def jit_level() -> str:
    """The level that compiled graphs have: of the jit configuration, else of the context, else the device's own."""
    configured = (get_jit_config() or {}).get("jit_level") or mindspore.get_context("jit_level")
    return configured or ("O2" if MSContext.get_instance().get_ascend_soc_version() == _WHOLE_GRAPHS else "O0")


def execution_mode() -> ExecutionMode:
    """What calls of Cells run as from here on."""
    if mindspore.get_context("mode") == mindspore.PYNATIVE_MODE:
        return ExecutionMode.PYNATIVE
    return ExecutionMode.GRAPH if jit_level() == "O2" else ExecutionMode.KBYK


def mode_text() -> str:
    """What runs now, in a user's words."""
    if mindspore.get_context("mode") == mindspore.PYNATIVE_MODE:
        return tr("dynamic graphs (PYNATIVE_MODE)")
    return tr("compiled graphs (GRAPH_MODE, jit_level {jit_level})", jit_level=jit_level())


class Lockstep:
    """Dynamic graphs run in lockstep with Python from here on, as they do inside MindSpore's ``saved_tensors_hooks``.

    Else threads run operators and build the gradient graph behind Python's back, and whoever looks at either waits for
    all of them, call by call; on few cores the waiting takes longer than the step.
    """

    def __init__(self) -> None:
        self._executor = PyNativeExecutor_.get_instance()
        #: Whether it was so before, each time that it was asked for.
        self._was: list[bool] = []

    def install(self) -> None:
        # Nothing of Python's own comes between its beginning and the note of it.
        self._was.extend(starmap(self._executor.disable_frontend_and_bprop_pipeline, ((),)))

    @property
    def holds(self) -> bool:
        """Whether it is up to this to let MindSpore run ahead again."""
        return False in self._was

    def remove(self) -> None:
        """As before; where a script's ``saved_tensors_hooks`` rely on it by now, not yet."""
        if self.holds and not self._executor.is_saved_tensor_hook_active():
            self._executor.enable_frontend_and_bprop_pipeline()
            self._was.clear()


def lockstep() -> Lockstep | None:
    """None where that is not known (before 2.8), and on devices, where nothing waits for every call."""
    known = hasattr(PyNativeExecutor_, "disable_frontend_and_bprop_pipeline")
    return Lockstep() if known and not device_statistics.is_there() else None
