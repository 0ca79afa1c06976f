"""Collectives and messages between processes: what they were given, with the group, and what they wrote in the end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

#: Functions that write into none of their arguments.
_WRITE_NOTHING = frozenset({"barrier", "send"})

#: Messages under way: waiting for one before its counterpart was posted would wait for ever. They have no output.
_NOT_AWAITED = frozenset({"isend", "irecv", "batch_isend_irecv"})

#: Where results go, in functions where that is not the first argument.
_WRITTEN = {"gather": "gather_list"}


class CollectiveOperator:
    """An operator that exchanges tensors, or a graph of such; what it returns is what came of it."""

    has_backward = True

    def __init__(self, group: Any) -> None:
        self._group = group

    def recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as they are recorded: with the group."""
        return args, kwargs | {"group": self._group}

    def complete(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        """Its result; reading that waits until it is complete."""
        return output


class Communication:
    """What is to be known of one communication function."""

    has_backward = False

    def __init__(self, function: Callable[..., Any], name: str, group_of: Callable[[Any], Any]) -> None:
        """``group_of`` makes of the argument ``group`` (None where none was given) what is recorded in its place."""
        try:
            self._parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):  # not written in Python
            self._parameters = []
        self._written = None if name in _WRITE_NOTHING else _WRITTEN.get(name, next(iter(self._parameters), None))
        self._group_of = group_of
        self._awaited = name not in _NOT_AWAITED

    def recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as they are recorded: with the group in full, also where it was left out."""
        if "group" not in self._parameters:
            return args, kwargs
        place = self._parameters.index("group")
        if place < len(args):
            return (*args[:place], self._group_of(args[place]), *args[place + 1 :]), kwargs
        return args, kwargs | {"group": self._group_of(kwargs.get("group"))}

    def complete(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        """Wait until the call is complete; what it wrote, or what it returned where that is the result."""
        if not self._awaited:
            return ()
        results = output if isinstance(output, (list, tuple)) else (output,)
        handles = [result for result in results if callable(getattr(result, "wait", None))]
        for handle in handles:
            handle.wait()
        values = [result for result in results if result is not None and not any(result is each for each in handles)]
        if values:
            return values[0] if len(values) == 1 else tuple(values)
        if self._written is None:
            return ()
        place = self._parameters.index(self._written)
        return args[place] if place < len(args) else kwargs.get(self._written)
