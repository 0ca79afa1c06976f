"""Pair kernels where one of two dumps, or both, are of compiled graphs.

A compiled graph launches kernels in an order of its own, so that the n-th of an operator may be another one. Between
two of them a kernel's path in the graph says which it is. In a dynamic graph there is no path: kernels pair inside of
one Cell's call, k-th of an operator with k-th, where both ran it equally often on tensors of the same shapes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from msprobe_ms.dump.dialects import KERNEL
from msprobe_ms.dump.model import Dump, Entry

#: Operators that compiling turns into others.
_SYNONYMS: Mapping[str, str] = MappingProxyType({"Sum": "ReduceSum", "Mean": "ReduceMean", "AddN": "Add"})
#: Endings of operators that stand for a form of their arguments: ``AddExt``, ``Muls``.
_FORM = re.compile(r"(?<=[a-z])(Ext|V2)$|(?<=Mul|Div|Add|Sub)s$")

Key = TypeVar("Key", bound=Hashable)
#: Place and shape of each tensor that is no scalar.
Shapes = tuple[tuple[str, object], ...]


def is_compiled(dump: Dump) -> bool:
    """Return whether a dump holds kernels of a compiled graph."""
    return any(entry.scope for entry in dump.entries.values())


def is_kernel(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.prefix == KERNEL


def pair_kernels(target: Dump, golden: Dump) -> dict[str, str]:
    """Return target entry → golden entry of kernels alone; {} when neither dump is of a compiled graph."""
    compiled = (is_compiled(target), is_compiled(golden))
    if not any(compiled):
        return {}
    ours, theirs = ([entry for entry in dump.entries.values() if is_kernel(entry)] for dump in (target, golden))
    pairs: dict[str, str] = {}
    if all(compiled):
        pairs = _by_path(ours, theirs)
        claimed = set(pairs.values())
        ours = [entry for entry in ours if entry.name not in pairs]
        theirs = [entry for entry in theirs if entry.name not in claimed]
    return pairs | _by_cell(ours, theirs)


def _by_path(ours: Iterable[Entry], theirs: Iterable[Entry]) -> dict[str, str]:
    groups, others = _grouped(ours, _path), _grouped(theirs, _path)
    return {
        entry.name: other.name
        for key, entries in groups.items()
        for entry, other in zip(entries, others.get(key, ()), strict=False)
    }


def _path(entry: Entry) -> str:
    return entry.scope.replace("/", "_")


def _by_cell(ours: list[Entry], theirs: list[Entry]) -> dict[str, str]:
    both = {entry.parent for entry in ours} & {entry.parent for entry in theirs}

    def place(entry: Entry) -> tuple[str | None, str, str, Shapes]:
        assert entry.parsed is not None
        parent = entry.parent if entry.parent in both else None
        return parent, _operator(entry.parsed.name), entry.parsed.direction, _shapes(entry)

    pairs: dict[str, str] = {}
    groups, others = _grouped(ours, place), _grouped(theirs, place)
    for key, entries in groups.items():
        counterparts = others.get(key, [])
        # Outside of Cells too little tells one from another.
        if key[0] is not None and len(entries) == len(counterparts):
            pairs |= {entry.name: counterpart.name for entry, counterpart in zip(entries, counterparts, strict=True)}
    return pairs


def _grouped(entries: Iterable[Entry], key: Callable[[Entry], Key]) -> dict[Key, list[Entry]]:
    groups: dict[Key, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[key(entry)].append(entry)
    return groups


def _operator(name: str) -> str:
    """
    >>> _operator("AddExt"), _operator("SumExt"), _operator("Muls"), _operator("MatMul")
    ('Add', 'ReduceSum', 'Mul', 'MatMul')
    """
    name = _FORM.sub("", name)
    return _SYNONYMS.get(name, name)


def _shapes(entry: Entry) -> Shapes:
    """Shapes of what it takes in and gives out; scalars are left out, which one side may hold as plain values."""
    return tuple((item.suffix, item.shape) for item in entry.items if item.kind == "tensor" and item.shape)
