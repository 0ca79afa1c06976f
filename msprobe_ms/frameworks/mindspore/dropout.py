"""Switch MindSpore's dropout off, and back on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, wraps
from typing import Any

from mindspore import ops
from mindspore.ops import auto_generate
from mindspore.ops.function import nn_func

from msprobe_ms.frameworks.dropout import switch


def set_dropout(active: bool) -> None:
    """Make every dropout the identity, in layers made before and after alike, or give it back.

    For dynamic graphs; what was compiled before keeps its dropout.
    """
    switch(((holder, name, partial(_identity, holder)) for holder, name in _dropouts()), active=active)


def _dropouts() -> Iterator[tuple[Any, str]]:
    """Where all dropout ends: nn and ops in three primitives, mint in two functions, which two modules hold."""
    yield from ((kind, "__call__") for kind in (ops.Dropout, ops.Dropout2D, ops.Dropout3D))
    for space in (auto_generate, nn_func):
        for name in ("func_dropout_ext_op", "dropout2d_ext_op"):  # not in every version
            if hasattr(space, name):
                yield space, name


def _identity(holder: Any, current: Any) -> Any:
    if isinstance(holder, type):

        @wraps(current)
        def replacement(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
            # A mask that no gradient flows through, as the real one.
            return x, ops.ones_like(ops.stop_gradient(x))
    else:

        def replacement(input: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
            return input

    return replacement
