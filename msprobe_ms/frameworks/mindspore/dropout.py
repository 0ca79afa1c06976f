"""Switch MindSpore's dropout off, and back on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from typing import Any

from mindspore import ops
from mindspore.ops import auto_generate
from mindspore.ops.function import nn_func

#: Attribute of our replacements that holds what they replaced; None stands for an inherited attribute.
_ORIGINAL = "msprobe_original"


def set_dropout(active: bool) -> None:
    """Make every dropout the identity, in layers made before and after alike, or give it back.

    For dynamic graphs; what was compiled before keeps its dropout.
    """
    for holder, name in _dropouts():
        current = getattr(holder, name)
        replaced = hasattr(current, _ORIGINAL)
        if active and replaced:
            original = getattr(current, _ORIGINAL)
            if original is None:
                delattr(holder, name)
            else:
                setattr(holder, name, original)
        elif not active and not replaced:
            setattr(holder, name, _identity(holder, name, current))


def _dropouts() -> Iterator[tuple[Any, str]]:
    """Where all dropout ends: nn and ops in three primitives, mint in two functions, which two modules hold."""
    yield from ((kind, "__call__") for kind in (ops.Dropout, ops.Dropout2D, ops.Dropout3D))
    for space in (auto_generate, nn_func):
        for name in ("func_dropout_ext_op", "dropout2d_ext_op"):  # not in every version
            if hasattr(space, name):
                yield space, name


def _identity(holder: Any, name: str, current: Any) -> Any:
    if isinstance(holder, type):

        @wraps(current)
        def replacement(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
            # A mask that no gradient flows through, as the real one.
            return x, ops.ones_like(ops.stop_gradient(x))
    else:

        def replacement(input: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
            return input

    setattr(replacement, _ORIGINAL, vars(holder).get(name))
    return replacement
