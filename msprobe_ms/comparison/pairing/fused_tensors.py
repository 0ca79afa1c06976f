"""Join the tensors of several modules as the fused module of the other side has them.

Fused weights lie in one of a few ways: one part behind another, in some order, or interleaved, a group of heads of each
part after the other (Megatron's ``query_key_value``). Which it is, is seen from the rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.statistics import contradiction, element_count
from msprobe_ms.dump.model import Dump, Item, Tensors
from msprobe_ms.support.errors import ContradictionError, DumpFormatError, MissingTensorError, MsprobeError
from msprobe_ms.support.translation import tr

#: Parts up to which every order is tried, and groups that they may be interleaved in.
_ORDERS, _GROUPS = 4, 256
#: How near the marks of two rows are that are one row, in standard deviations of all marks; and how many must be near
#: each other, as a share of all and beyond it: parts may be wrong, and of unrelated rows some are by chance.
_NEAR, _SHARE, _BEYOND = 0.02, 0.1, 3

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.float64]


class Arrangement(NamedTuple):
    """The order of the parts, and the number of groups in which they alternate."""

    order: tuple[int, ...]
    groups: int

    def join(self, parts: Sequence[Array], axis: int) -> Array:
        split = [
            part.reshape(*part.shape[:axis], self.groups, part.shape[axis] // self.groups, *part.shape[axis + 1 :])
            for part in parts
        ]
        joined = np.concatenate([split[place] for place in self.order], axis + 1)
        length = joined.shape[axis] * joined.shape[axis + 1]
        return joined.reshape(*joined.shape[:axis], length, *joined.shape[axis + 2 :])


class Layout:
    """How one fused module has its parts, found when it is first asked for."""

    def __init__(self, parts: Tensors, whole: Tensors) -> None:
        self._parts, self._whole = parts, whole
        self._sample: tuple[Sequence[Item], Item, int] | None = None
        self._size = 0
        self._known: Arrangement | None = None
        self._asked = False

    def learn(self, parts: Sequence[Item], whole: Item, axis: int) -> None:
        """A tensor it may be seen from: the largest weight, else what was computed first."""
        size = element_count(whole)
        known = self._size if whole.state == "parameters" else 0
        if whole.data_name is not None and (size > known if whole.state == "parameters" else self._sample is None):
            self._sample = parts, whole, axis
            self._size = size if whole.state == "parameters" else 0

    def known(self) -> Arrangement | None:
        """None where no arrangement brings rows beside their like."""
        if not self._asked:
            self._asked = True
            self._known = self._seen(*self._sample) if self._sample is not None else None
        return self._known

    def __getstate__(self) -> dict[str, Any]:
        """Found once, before it goes to other processes."""
        self.known()
        return self.__dict__

    def _seen(self, parts: Sequence[Item], whole: Item, axis: int) -> Arrangement | None:
        try:
            arrays = [_as_recorded(item, self._parts.load(item)) for item in parts]
            return arrangement(arrays, _as_recorded(whole, self._whole.load(whole)), axis)
        except (MsprobeError, OSError):
            return None


class Recipe(NamedTuple):
    """The tensor made of those of ``parts``: one behind another along ``axis``, or, without one, their sum."""

    parts: Sequence[Item]
    axis: int | None = None
    layout: Layout | None = None


class Sections(NamedTuple):
    """The parts of a joined tensor and the places of each along ``axis``."""

    axis: int
    parts: list[tuple[Item, npt.NDArray[np.intp]]]


class JoinedTensors:
    """The tensors of a dump and of the entries made of several of its own."""

    def __init__(self, source: Tensors) -> None:
        self._source = source
        self._recipes: dict[str, Recipe] = {}

    def add(self, item: Item, recipe: Recipe) -> None:
        self._recipes[item.name] = recipe

    def parts(self, item: Item) -> Sequence[Item]:
        """What an item was joined of; () of one that was not."""
        recipe = self._recipes.get(item.name)
        return recipe.parts if recipe is not None else ()

    def load(self, item: Item) -> np.ndarray:
        """As ``Tensors.load``, of a joined item that of its parts put together.

        :raises MissingTensorError: as well where nobody knows how parts are put together
        :raises ContradictionError: the file of a part holds something else than was recorded
        """
        recipe = self._recipes.get(item.name)
        if recipe is None:
            return self._source.load(item)
        arrays = [self._part(part) for part in recipe.parts]
        if recipe.axis is None:
            if len({array.shape for array in arrays}) > 1:
                shapes = ", ".join(str(list(array.shape)) for array in arrays)
                raise DumpFormatError(
                    tr("{name}: parts of the shapes {shapes} have no sum", name=item.name, shapes=shapes)
                )
            return _sum(arrays)
        arrangement = recipe.layout.known() if recipe.layout else None
        if arrangement is None:
            raise MissingTensorError(
                tr("{name}: nothing tells in which order the other side has these rows", name=item.name)
            )
        return arrangement.join(arrays, recipe.axis)

    def _part(self, item: Item) -> Array:
        array = self._source.load(item)
        if said := contradiction(item, array):
            raise ContradictionError(tr("{where}: {said}", where=self._source.where(item), said=said))
        return _as_recorded(item, array)

    def sections(self, item: Item) -> Sections | None:
        """Where its parts lie in a joined tensor; None where it is none, or nobody knows."""
        recipe = self._recipes.get(item.name)
        arrangement = recipe.layout.known() if recipe is not None and recipe.layout is not None else None
        if recipe is None or recipe.axis is None or arrangement is None:
            return None
        lengths = [part.shape[recipe.axis] for part in recipe.parts if isinstance(part.shape, tuple)]
        owners = arrangement.join([np.full(length, place) for place, length in enumerate(lengths)], 0)
        places = [np.flatnonzero(owners == place) for place in range(len(lengths))]
        return Sections(recipe.axis, list(zip(recipe.parts, places, strict=True)))

    def where(self, item: Item) -> str:
        recipe = self._recipes.get(item.name)
        files = [self._source.where(part) for part in recipe.parts] if recipe else [self._source.where(item)]
        return ", ".join(filter(None, files))


def holds_joined(dump: Dump) -> bool:
    """Whether items of a dump were joined of others."""
    return isinstance(dump.tensors, JoinedTensors)


def parts_of(dump: Dump, item: Item) -> Sequence[Item]:
    """What an item of a dump was joined of; () of one that was not."""
    return dump.tensors.parts(item) if isinstance(dump.tensors, JoinedTensors) else ()


def _sum(arrays: Sequence[Array]) -> Array:
    """The sum, in full precision on the way; in the arrays' dtype where that has numbers for all of it."""
    dtype = np.result_type(*arrays)
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.asarray(np.sum(arrays, axis=0, dtype=np.result_type(np.float64, dtype)))
        narrow = total.astype(dtype) if dtype.kind in "fc" else total
    return narrow if np.array_equal(np.isfinite(narrow), np.isfinite(total)) else total


def _as_recorded(item: Item, array: Array) -> Array:
    """The array in the recorded shape, from which axes of length 1 may be away in a file."""
    if not isinstance(item.shape, tuple) or item.shape == array.shape:
        return array
    if math.prod(item.shape) != array.size:
        raise ContradictionError(
            tr(
                "{name}: has shape {shape}, recorded is {other_shape}",
                name=item.name,
                shape=list(array.shape),
                other_shape=list(item.shape),
            )
        )
    return array.reshape(item.shape)


def arrangement(parts: Sequence[Array], whole: Array, axis: int) -> Arrangement | None:
    """Find how the whole has its parts; None where no arrangement brings rows beside their like."""
    numbers = [_numbers(array) for array in (*parts, whole)]
    largest = max((float(np.abs(each).max()) for each in numbers if each.size), default=0.0) or 1.0
    *marks, wanted = (_marks(each / largest, axis) for each in numbers)
    if sum(map(len, marks)) != len(wanted):
        return None
    near = _NEAR * float(np.std(wanted)) if wanted.size else 0.0
    alike = {each: np.count_nonzero(np.abs(each.join(marks, 0) - wanted) <= near) for each in _arrangements(marks)}
    best = max(alike, key=alike.__getitem__)  # of equals the plainest
    return best if alike[best] >= min(len(wanted), _SHARE * len(wanted) + _BEYOND) else None


def joining_axis(parts: Sequence[object], whole: object) -> int | None:
    """Return the axis along which shapes add up to the whole's, all others being equal; None without one."""
    if not isinstance(whole, tuple):
        return None
    shapes = [part for part in parts if isinstance(part, tuple) and len(part) == len(whole)]
    axes = [axis for axis, length in enumerate(whole) if any(shape[axis] != length for shape in shapes)]
    if len(shapes) != len(parts) or len(axes) != 1 or sum(shape[axes[0]] for shape in shapes) != whole[axes[0]]:
        return None
    return axes[0]


def _numbers(array: Array) -> Rows:
    """Finite numbers to tell rows by: of complex elements how large they are, of those that are not finite 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        real = np.abs(array) if array.dtype.kind == "c" else array
        return np.nan_to_num(real.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _marks(array: Rows, axis: int) -> Rows:
    """One number for each row along the axis, which tells it from the others."""
    others = math.prod(array.shape[:axis]) * math.prod(array.shape[axis + 1 :])
    rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], others)
    return rows @ np.cos(np.arange(rows.shape[1], dtype=np.float64))


def _arrangements(parts: Sequence[Rows]) -> Iterator[Arrangement]:
    """The plainest first."""
    natural = tuple(range(len(parts)))
    common = math.gcd(*map(len, parts)) or 1
    for groups in (number for number in range(1, min(common, _GROUPS) + 1) if common % number == 0):
        for order in permutations(natural) if len(parts) <= _ORDERS else (natural,):
            yield Arrangement(order, groups)
