"""Kernels of MindSpore's dynamic graphs, as its dispatch mode (2.9 and later) shows them one by one."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Sequence
from typing import Any

import mindspore
from mindspore import _c_expression
from mindspore.ops import Primitive

from msprobe_ms.frameworks.base import OnKernel

_modes = getattr(_c_expression, "_DispatchGuardStack", None)

#: None where kernels can be seen.
NO_KERNELS = (
    None
    if hasattr(mindspore, "MsDispatchMode") and hasattr(mindspore.Tensor, "_nbytes") and _modes is not None
    else f"Level L2 records dynamic graphs from MindSpore 2.9 on, and this is {mindspore.__version__}; "
    "use one of L0, L1, mix"
)


class Interception:
    """One dispatch mode, on the thread that made it, until ``remove``; a script's own see what they always did."""

    def __init__(self, on_kernel: OnKernel) -> None:
        assert _modes is not None
        self._on_kernel: OnKernel | None = on_kernel
        self._thread = threading.get_ident()
        _modes.push(_mode(self._kernel))
        self._depth = _modes.depth()

    def _kernel(self, operator: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None) -> Any:
        def launch() -> Any:
            return operator(*args, **kwargs) if kwargs else operator(*args)

        on_kernel = self._on_kernel
        return launch() if on_kernel is None else on_kernel(operator.name, _inputs(args), launch)  # type: ignore[attr-defined]

    def remove(self) -> None:
        """Show no kernels any more. Under a mode that the user entered later, this one stays, idle."""
        if self._on_kernel is None or _modes is None:
            return
        self._on_kernel = None
        if self._is_here() and _modes.depth() == self._depth:
            _modes.pop()
            self._depth = 0
        else:
            # Python must not exit with any mode: that is fatal.
            atexit.unregister(_modes.clear)
            atexit.register(_modes.clear)

    def revived(self, on_kernel: OnKernel) -> bool:
        """Go on with a mode that had to stay; whether there is one."""
        if not self._is_here() or not self._depth or _modes is None or _modes.depth() < self._depth:
            return False
        self._on_kernel = on_kernel
        return True

    def _is_here(self) -> bool:
        return self._thread == threading.get_ident()


def _mode(handle: Callable[..., Any]) -> Any:
    class Mode(mindspore.MsDispatchMode):
        def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
            return handle(func, args, kwargs)

    return Mode()


def _inputs(args: Sequence[Any]) -> Sequence[Any]:
    """What the kernel computes with; operators called as objects come as ``(operator, name, arguments)``."""
    if len(args) == 3 and isinstance(args[0], Primitive) and isinstance(args[2], tuple):
        return args[2]
    return args
