"""Which tensors of a call's arguments or results to watch, and where their gradients belong in the record.

Containers keep their shape in the record (``output.1.0`` is the gradient of ``input.1.0``), values that are no tensors
are left out, tensors no gradient flows through are null.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

#: A plan: lists and dictionaries of positions in the watched tensors; None for a tensor that is not watched.
Plan = int | None | list["Plan"] | dict[str, "Plan"]

#: Marks what takes no part in a plan.
_SKIP: Any = object()

#: Containers nested deeper are left alone; a cycle must end somewhere.
_DEEPEST = 16


class Watch:
    """Finds the tensors worth watching in nested values, swaps them, and undoes what it did to mutable containers."""

    def __init__(self, is_tensor: Callable[[Any], bool], can_watch: Callable[[Any], bool]) -> None:
        self._is_tensor = is_tensor
        self._can_watch = can_watch
        #: The watched tensors, in the order their gradients will come in; one given twice is watched once.
        self.tensors: list[Any] = []
        self._positions: dict[int, int] = {}
        #: The containers written into, and by a replacement's id the tensor it stands for.
        self._written: list[Any] = []
        self._originals: dict[int, Any] = {}

    def plan(self, values: Iterable[Any]) -> list[Plan]:
        """Walk ``values`` and remember the tensors to watch."""
        plans = [self._plan(value, 0) for value in values]
        return [plan for plan in plans if plan is not _SKIP]

    def _plan(self, value: Any, depth: int) -> Plan:
        if self._is_tensor(value):
            if not self._can_watch(value):
                return None
            position = self._positions.setdefault(id(value), len(self.tensors))
            if position == len(self.tensors):
                self.tensors.append(value)
            return position
        if depth > _DEEPEST:
            return _SKIP
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            value = dict(zip(value._fields, value, strict=False))
        elif _is_dataclass(value):
            value = _fields(value)
        if isinstance(value, (list, tuple)):
            members = [self._plan(member, depth + 1) for member in value]
            members = [member for member in members if member is not _SKIP]
            return members or _SKIP
        if isinstance(value, dict):
            named = {str(key): self._plan(member, depth + 1) for key, member in value.items()}
            named = {key: member for key, member in named.items() if member is not _SKIP}
            return named or _SKIP
        return _SKIP

    def swap(self, values: Sequence[Any], replacements: Sequence[Any]) -> list[Any]:
        """``values`` with each watched tensor replaced.

        Tuples are rebuilt; lists, dictionaries and dataclass instances are written into, because the call may keep
        or change them, until ``restore`` puts the originals back.
        """
        pairs = [(old, new) for old, new in zip(self.tensors, replacements, strict=True) if new is not old]
        self._originals = {id(new): old for old, new in pairs}
        return self._exchange(values, {id(old): new for old, new in pairs}) if pairs else list(values)

    def _exchange(self, values: Sequence[Any], others: dict[int, Any]) -> list[Any]:
        return [self._other(value, others, 0) for value in values]

    def _other(self, value: Any, others: dict[int, Any], depth: int) -> Any:
        if self._is_tensor(value):
            return others.get(id(value), value)
        if depth > _DEEPEST:
            return value
        if isinstance(value, tuple):
            members = [self._other(member, others, depth + 1) for member in value]
            if all(new is old for new, old in zip(members, value, strict=True)):
                return value
            return value._make(members) if hasattr(value, "_make") else tuple(members)
        if isinstance(value, (list, dict)):
            for key, member in list(value.items() if isinstance(value, dict) else enumerate(value)):
                other = self._other(member, others, depth + 1)
                if other is not member:
                    value[key] = other
                    self._written.append(value)
        elif _is_dataclass(value):
            for key, member in _fields(value).items():
                other = self._other(member, others, depth + 1)
                if other is not member:
                    object.__setattr__(value, key, other)  # a frozen one as well: its value stays equal
                    self._written.append(value)
        return value

    def restore(self) -> None:
        """Put the caller's tensors back into its lists and dictionaries, wherever the call left the replacements."""
        written, self._written = self._written, []
        for container in written:
            self._other(container, self._originals, 0)
        self._written = []


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, (type, dict))


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}


def fill(plans: Sequence[Plan], make: Callable[[int, tuple[str, ...]], Any]) -> list[Any]:
    """The plans with ``make(position, path)`` in place of each watched tensor."""
    return [_fill(plan, (str(index),), make) for index, plan in enumerate(plans)]


def _fill(plan: Plan, path: tuple[str, ...], make: Callable[[int, tuple[str, ...]], Any]) -> Any:
    if plan is None:
        return None
    if isinstance(plan, int):
        return make(plan, path)
    if isinstance(plan, list):
        return [_fill(member, (*path, str(index)), make) for index, member in enumerate(plan)]
    return {key: _fill(member, (*path, key), make) for key, member in plan.items()}
