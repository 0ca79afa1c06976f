"""MindSpore's random state and its dropout."""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from typing import Any

import mindspore
from mindspore import mint, ops

#: Attribute of our replacements that holds what they replaced.
_ORIGINAL = "msprobe_original"


def seed_framework(seed: int, mode: bool) -> None:
    """Seed MindSpore; ``mode`` turns deterministic computing on or off."""
    mindspore.set_seed(seed)
    mindspore.set_context(deterministic="ON" if mode else "OFF")


def set_dropout(active: bool) -> None:
    """Make every dropout the identity, in layers made before and after alike, or give it back."""
    for holder, name in _dropouts():
        current = getattr(holder, name)
        original = getattr(current, _ORIGINAL, None)
        if active and original is not None:
            setattr(holder, name, original)
        elif not active and original is None:
            setattr(holder, name, _identity(current, is_primitive=name == "__call__"))


def _dropouts() -> Iterator[tuple[Any, str]]:
    """All of nn and ops dropout ends in three primitives; mint has functions of its own."""
    yield from ((kind, "__call__") for kind in (ops.Dropout, ops.Dropout2D, ops.Dropout3D))
    yield from ((space, "dropout") for space in (mint.nn.functional,) if hasattr(space, "dropout"))


def _identity(original: Any, *, is_primitive: bool) -> Any:
    if is_primitive:

        @wraps(original)
        def replacement(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
            return x, ops.ones_like(x)
    else:

        @wraps(original)
        def replacement(input: Any, *args: Any, **kwargs: Any) -> Any:
            return input

    setattr(replacement, _ORIGINAL, original)
    return replacement
