"""Functions of a framework that are replaced while dropout is off, and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

#: Attribute of a replacement that holds what it replaced; None stands for an attribute that was not there itself.
_ORIGINAL = "msprobe_original"


def switch(places: Iterable[tuple[Any, str, Callable[[Any], Any]]], *, active: bool) -> None:
    """Replace each function, or put all back where ``active``; may be repeated.

    ``places``: its holder, its name there, and what gives the replacement of the function that is there now.
    """
    for holder, name, replacement in places:
        current = getattr(holder, name)
        replaced = hasattr(current, _ORIGINAL)
        if active and replaced:
            original = getattr(current, _ORIGINAL)
            if original is None:
                delattr(holder, name)
            else:
                setattr(holder, name, original)
        elif not active and not replaced:
            made = replacement(current)
            setattr(made, _ORIGINAL, vars(holder).get(name))
            setattr(holder, name, made)
