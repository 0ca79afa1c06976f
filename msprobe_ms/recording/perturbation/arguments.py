"""The arguments of a call: the tensors in them, and the same arguments with other tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msprobe_ms.support.translation import tr

#: Containers nested deeper, and members beyond these many, are not looked at.
_DEEPEST, _MOST_MEMBERS = 16, 10_000


class NotRepeatableError(Exception):
    """The call cannot be made again; the text says why."""


class Leaves:
    """Walks through lists, tuples and dictionaries; makes them anew where a member is to be another."""

    def __init__(self, leaf: Callable[[Any], Any]) -> None:
        self._leaf = leaf
        self._left = _MOST_MEMBERS

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return ``value`` with every leaf replaced. Raises `NotRepeatableError`."""
        kind = type(value)
        if kind not in (list, tuple, dict) and not _is_named_tuple(kind):
            return self._leaf(value)
        self._left -= len(value)
        if depth > _DEEPEST or self._left < 0:
            raise NotRepeatableError(tr("its arguments are nested deeply, or many"))
        if kind is dict:
            return {key: self.of(member, depth + 1) for key, member in value.items()}
        found = [self.of(member, depth + 1) for member in value]
        if kind is list or all(new is old for new, old in zip(found, value, strict=True)):
            return found if kind is list else value
        return tuple(found) if kind is tuple else kind(*found)


def _is_named_tuple(kind: type) -> bool:
    """Whether this is a plain named tuple, which is made of its members."""
    return issubclass(kind, tuple) and type(getattr(kind, "_fields", None)) is tuple


def leaves(value: Any) -> list[Any]:
    """Return what is in nested containers, depth first. Raises `NotRepeatableError`."""
    found: list[Any] = []

    def note(leaf: Any) -> Any:
        found.append(leaf)
        return leaf

    # What frameworks return in tuples of their own kinds are results, too.
    Leaves(note).of(tuple(value) if isinstance(value, tuple) and not _is_named_tuple(type(value)) else value)
    return found


def in_order(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the leaves of all arguments, positional ones first. Raises `NotRepeatableError`."""
    found = leaves([list(args), dict(kwargs)])
    for leaf in found:
        if callable(leaf) and not isinstance(leaf, type) and not hasattr(leaf, "shape"):
            raise NotRepeatableError(tr("it is given a function"))
        if isinstance(leaf, Iterator):
            raise NotRepeatableError(tr("an argument can be read but once"))
    return found
