"""Parameters of one side alone that hold the very numbers of one that the other side has alone: the same, renamed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.weights.model import Weight
from msprobe_ms.weights.siblings import crosswise, pair_by_place


class _Content(NamedTuple):
    """The numbers that a parameter holds, and whether all are one."""

    digest: bytes
    shape: tuple[int, ...]
    constant: bool


def renamed(
    targets: Iterable[Weight], goldens: Iterable[Weight], pairs: Mapping[str, str] = MappingProxyType({})
) -> tuple[dict[str, str], dict[str, str]]:
    """Name in the target → name in the golden, of parameters of one side alone that hold the same numbers.

    And, of these, the pairs that contradict all others (``pairs``: those by name too) → the counterpart that fits.
    Of constants, and of numbers that several share, their place among the others tells whose they are. One parameter
    is in memory at a time.
    """
    targets, goldens = list(targets), list(goldens)
    shapes = {without_ones(each.shape) for each in targets} & {without_ones(each.shape) for each in goldens}
    ours, theirs = _contents(targets, shapes), _contents(goldens, shapes)
    found = _unique_pairs(ours, theirs)
    ours, theirs = _without_ones(ours, found), _without_ones(theirs, found.values())
    found |= _unique_pairs(ours, theirs)
    of_shape = {weight.name: without_ones(weight.shape) for weight in targets if weight.name in found}
    moved = crosswise({**pairs, **found}, of_shape)
    left = _without_ones(ours, found), _without_ones(theirs, found.values())
    return found | pair_by_place(*left, {**pairs, **found, **moved}), moved


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without axes of length 1, which the frameworks' layouts of a convolution differ in."""
    return tuple(size for size in shape if size != 1)


def _unique_pairs(ours: Mapping[str, _Content], theirs: Mapping[str, _Content]) -> dict[str, str]:
    """Pair numbers that one parameter alone has on either side, and that are no constant."""
    sides = []
    for side in (ours, theirs):
        names: dict[_Content, list[str]] = {}
        for name, content in side.items():
            if not content.constant:
                names.setdefault(content, []).append(name)
        sides.append({content: each[0] for content, each in names.items() if len(each) == 1})
    return {name: sides[1][content] for content, name in sides[0].items() if content in sides[1]}


def _contents(weights: Iterable[Weight], shapes: Container[tuple[int, ...]]) -> dict[str, _Content]:
    found = {}
    for weight in weights:
        if without_ones(weight.shape) not in shapes:
            continue
        try:
            array = weight.load()
        except (DumpFormatError, MemoryError):
            continue  # what cannot be read is told elsewhere
        if array.size:
            constant = not (array != array.flat[0]).any()
            found[weight.name] = _Content(_digest(array), array.shape, constant)
    return found


def _without_ones(contents: Mapping[str, _Content], taken: Container[str]) -> dict[str, _Content]:
    return {
        name: content._replace(shape=without_ones(content.shape))
        for name, content in contents.items()
        if name not in taken
    }


def _digest(array: np.ndarray) -> bytes:
    digest = blake2b(str(array.dtype).encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.digest()
