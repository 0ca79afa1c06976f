"""Weights that are one parameter on one side and several on the other: of a ``qkv`` beside ``q``, ``k`` and ``v``.

A layer mapping says so (``q + k + v: qkv``). The parts are compared as the parameter that they are together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.pairing.fused_tensors import Arrangement, arrangement, joining_axis
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.names import JOINED
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr, tr_list
from msprobe_ms.weights.model import Weight
from msprobe_ms.weights.names import is_top, pair_names, without_wrappers

#: Name of what several parameters are together → their names, in the order of the rule.
Joined = dict[str, list[str]]


def pair_joined(
    ours: Sequence[str], theirs: Sequence[str], mappings: Mappings
) -> tuple[dict[str, tuple[str, str]], Joined, Joined]:
    """Pair names, the parts on both sides as one name where the other side has what they are together."""
    rules = [(parent, *rule) for parent, children in mappings.layer.items() for rule in children.items()]
    here = _joined(ours, [(parent, child) for parent, child, _ in rules if JOINED in child])
    there = _joined(theirs, [(parent, value) for parent, _, value in rules if JOINED in value])
    if here or there:
        pairs = pair_names(_names(ours, here), _names(theirs, there), mappings, warn=False)
        taken = {name for name, _ in pairs.values()}
        here = {name: parts for name, parts in here.items() if name in pairs}
        there = {name: parts for name, parts in there.items() if name in taken}
    return pair_names(_names(ours, here), _names(theirs, there), mappings), here, there


def joined_weight(name: str, parts: Sequence[Weight], whole: Weight | None) -> Weight:
    """Join the parts, rows in the order that ``whole`` has them."""
    shapes = [part.shape for part in parts]
    dtype = max((part.dtype for part in parts), key=lambda dtype: parse_dtype(dtype).epsilon)
    axis = joining_axis(shapes, whole.shape if whole is not None else None)
    rest = {shape[1:] for shape in shapes}
    if axis is not None and whole is not None:
        shape = whole.shape
    else:
        shape = (sum(each[0] for each in shapes), *rest.pop()) if len(rest) == 1 and all(shapes) else ()
    return Weight(name, dtype, shape, partial(_load, name, list(parts), whole, axis))


def order_of(parts: Sequence[Weight], whole: Weight) -> str:
    """Say how the whole has its parts; "" where one behind another as they are named."""
    axis = joining_axis([part.shape for part in parts], whole.shape)
    found = None if axis is None else arrangement([part.load() for part in parts], whole.load(), axis)
    if found is None or found == Arrangement(tuple(range(len(parts))), 1):
        return ""
    names = tr_list(parts[place].name for place in found.order)
    return tr("its rows are those of {names}", names=names) + (
        tr(", in {groups} groups of each", groups=found.groups) if found.groups > 1 else ""
    )


def _load(name: str, parts: Sequence[Weight], whole: Weight | None, axis: int | None) -> np.ndarray:
    arrays = [part.load() for part in parts]
    found = None if axis is None or whole is None else arrangement(arrays, whole.load(), axis)
    try:
        if found is not None and axis is not None:
            return found.join(arrays, axis)
        return np.concatenate(arrays, axis or 0)
    except ValueError as error:
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise DumpFormatError(
            tr("{name}: tensors of the shapes {shapes} cannot be put together", name=name, shapes=shapes)
        ) from error


def _joined(names: Sequence[str], rules: Iterable[tuple[str, str]]) -> Joined:
    """By every rule, wherever all of its parts have a parameter of one name; each is part of one at most."""
    found: Joined = {}
    taken: set[str] = set()
    for parent, rule in rules:
        parts = [tuple(part.split(".")) for part in rule.split(JOINED)]
        groups: dict[tuple[str, str], dict[int, str]] = {}
        for name in names:
            for above, place, below in _places(name, parts):
                if not (is_top(parent) and without_wrappers(above)):
                    groups.setdefault((above, below), {})[place] = name
        for (above, below), group in groups.items():
            if len(group) == len(parts) and taken.isdisjoint(group.values()):
                taken.update(group.values())
                found[".".join(filter(None, (above, rule, below)))] = [group[place] for place in range(len(parts))]
    return found


def _places(name: str, parts: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, int, str]]:
    """Where a part occurs in a name: what is above it, which part, what is below."""
    components = tuple(name.split("."))
    for number, part in enumerate(parts):
        for start in range(len(components) - len(part)):
            if components[start : start + len(part)] == part:
                yield ".".join(components[:start]), number, ".".join(components[start + len(part) :])


def _names(names: Sequence[str], joined: Mapping[str, Sequence[str]]) -> list[str]:
    """The names, those of joined parts as one where the first of them stood."""
    owner = {part: name for name, parts in joined.items() for part in parts}
    return list(dict.fromkeys(owner.get(name, name) for name in names))
