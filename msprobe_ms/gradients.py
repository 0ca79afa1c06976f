"""Which tensors of a call's arguments or results to watch, and where their gradients belong in the record.

Containers keep their shape in the record (``output.1.0`` is the gradient of ``input.1.0``), values that are no tensors
are left out, tensors no gradient flows through are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

#: A plan: lists and dictionaries of positions in the watched tensors; None for a tensor that is not watched.
Plan = int | None | list["Plan"] | dict[str, "Plan"]

#: Twins waiting for the places of the tensor with this id, last place first.
Twins = dict[int, list[Any]]

#: Marks what takes no part in a plan.
_SKIP: Any = object()

#: Containers nested deeper are left alone; a cycle must end somewhere.
_DEEPEST = 16


class Watch:
    """Finds the tensors worth watching in nested values, swaps them, and undoes what it did to mutable containers."""

    def __init__(self, is_tensor: Callable[[Any], bool], can_watch: Callable[[Any], bool]) -> None:
        self._is_tensor = is_tensor
        self._can_watch = can_watch
        #: The watched tensors, in the order their gradients will come in.
        self.tensors: list[Any] = []
        self._undo: list[tuple[Any, Any, Any, Any]] = []

    def plan(self, values: Iterable[Any]) -> list[Plan]:
        """Walk ``values`` and remember the tensors to watch."""
        plans = [self._plan(value, 0) for value in values]
        return [plan for plan in plans if plan is not _SKIP]

    def _plan(self, value: Any, depth: int) -> Plan:
        if self._is_tensor(value):
            if not self._can_watch(value):
                return None
            self.tensors.append(value)
            return len(self.tensors) - 1
        if depth > _DEEPEST:
            return _SKIP
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            value = dict(zip(value._fields, value, strict=False))
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
        """``values`` with each watched tensor replaced by its twin.

        Tuples are rebuilt; lists and dictionaries are written into, because the call may keep or change them, until
        ``restore`` puts the originals back.
        """
        twins: Twins = {}
        for tensor, twin in zip(reversed(self.tensors), reversed(replacements), strict=True):
            twins.setdefault(id(tensor), []).append(twin)
        return [self._swap(value, twins, 0) for value in values]

    def _swap(self, value: Any, twins: Twins, depth: int) -> Any:
        if self._is_tensor(value):
            # A tensor given twice has a twin for each place, in order.
            waiting = twins.get(id(value))
            return waiting.pop() if waiting else value
        if depth > _DEEPEST:
            return value
        if isinstance(value, tuple):
            members = [self._swap(member, twins, depth + 1) for member in value]
            if all(new is old for new, old in zip(members, value, strict=True)):
                return value
            return value._make(members) if hasattr(value, "_make") else tuple(members)
        if isinstance(value, list):
            self._swap_members(value, list(enumerate(value)), twins, depth)
        elif isinstance(value, dict):
            self._swap_members(value, list(value.items()), twins, depth)
        return value

    def _swap_members(self, container: Any, members: list[tuple[Any, Any]], twins: Twins, depth: int) -> None:
        for key, member in members:
            twin = self._swap(member, twins, depth + 1)
            if twin is not member:
                container[key] = twin
                self._undo.append((container, key, member, twin))

    def restore(self) -> None:
        """Put the caller's tensors back into its lists and dictionaries, where the call left the twins."""
        for container, key, original, twin in self._undo:
            held = container.get(key) if isinstance(container, dict) else container[key : key + 1]
            if held is twin or (isinstance(held, list) and held and held[0] is twin):
                container[key] = original
        self._undo.clear()


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
