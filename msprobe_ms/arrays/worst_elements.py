"""Two tensors element by element: which are furthest apart, how error is spread, where it sits, what it is like."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from msprobe_ms.arrays.metrics import Array
from msprobe_ms.support.translation import tr

#: Elements a block: memory beyond the two tensors stays at some megabytes.
_BLOCK = 1 << 16
#: Elements told by absolute error, and by relative error.
_LARGEST, _LARGEST_RELATIVE = 8, 3
#: Share of an error's square that one simple cause must leave unexplained at most to be named as the cause.
_EXPLAINED = 1e-4
#: Slices in which error is said to sit: so many times fewer than all, or one with this share of it.
_CONCENTRATED, _HALF = 3, 0.5
#: Decade of an error of 0, and of one that has no size because one side alone is not finite.
EQUAL, NON_FINITE = -10_000, 10_000


@dataclass(frozen=True, slots=True)
class Element:
    """One place of both tensors. ``relative`` is absolute / |golden|, inf over a golden 0."""

    index: tuple[int, ...]
    target: complex
    golden: complex
    absolute: float
    relative: float


@dataclass(frozen=True, slots=True)
class AxisShare:
    """How error is spread over the slices of one axis.

    ``place`` the slice with the largest share of the squared error, ``share`` that share (0…1), ``holding`` how many
    slices, largest first, hold nine tenths of it.
    """

    axis: int
    size: int
    place: int
    share: float
    holding: int

    @property
    def is_concentrated(self) -> bool:
        """Whether error sits in few slices: three times fewer than all hold nine tenths of it, or one holds half.

        Random error of few slices is uneven too.
        """
        return self.holding * _CONCENTRATED <= self.size or (self.size > 2 and self.share >= _HALF)


@dataclass(slots=True)
class Study:
    """What the elements tell. Equal NaN or infinities count as equal; where one side alone is not finite error is inf.

    ``absolute``/``relative``: decade → elements: key k counts errors in [10^k, 10^(k+1)); ``EQUAL`` and ``NON_FINITE``.
    ``likeness``: the one simple thing that explains the error, such as "the target is 0.5 × the golden"; "" if none.
    """

    size: int
    largest: list[Element] = field(default_factory=list)
    largest_relative: list[Element] = field(default_factory=list)
    absolute: Counter[int] = field(default_factory=Counter)
    relative: Counter[int] = field(default_factory=Counter)
    axes: list[AxisShare] = field(default_factory=list)
    likeness: str = ""

    @property
    def differing(self) -> int:
        return self.size - self.absolute[EQUAL]


def study(target: Array, golden: Array, *, causes: bool = True) -> Study:
    """Study every element of two arrays of one shape, in blocks; the arrays are not changed.

    Without ``causes`` it says where they differ absolutely, not relatively, and not what explains it: half of the work.
    """
    found = Study(golden.size)
    axes = _Axes(golden.shape)
    fit = _Fit()
    for start, mine, theirs in _blocks(target, golden):
        error, relative = _errors(mine, theirs)
        columns = mine, theirs, error, relative
        _count(found.absolute, error)
        axes.add(start, error)
        _keep(found.largest, _LARGEST, error, start, golden.shape, columns)
        if causes:
            _count(found.relative, relative)
            fit.add(mine, theirs, error)
            _keep(found.largest_relative, _LARGEST_RELATIVE, relative, start, golden.shape, columns)
    found.largest.sort(key=lambda each: -each.absolute)
    found.largest_relative.sort(key=lambda each: -each.relative)
    found.axes = axes.shares()
    if causes and found.differing:
        found.likeness = fit.cause(golden.size) or rearranged(target, golden)
    return found


def cause_of(target: Array, golden: Array) -> str:
    """Return ``Study.likeness`` alone, of two arrays that differ: a quarter of the work."""
    if target.shape != golden.shape:
        return rearranged(target, golden)
    fit = _Fit()
    for _, mine, theirs in _blocks(target, golden):
        fit.add(mine, theirs, _errors(mine, theirs)[0])
    return fit.cause(golden.size) or rearranged(target, golden)


def rearranged(target: Array, golden: Array) -> str:
    """Say how to rearrange the golden's elements to get the target's to the last bit; "" where that is not it."""
    if target.size != golden.size or target.size < 2 or target.dtype.kind != golden.dtype.kind:
        return ""
    if target.ndim == golden.ndim == 2 and target.shape == golden.shape[::-1] and _same(target, golden.T):
        return tr("equal when transposed")
    if target.ndim > 2 and target.ndim == golden.ndim:
        for one in range(target.ndim):
            for other in range(one + 1, target.ndim):
                swapped = golden.swapaxes(one, other)
                if swapped.shape == target.shape and _same(target, swapped):
                    return tr("equal when axes {one} and {other} are swapped", one=one, other=other)
    if target.shape != golden.shape and _same(target.reshape(-1), golden.reshape(-1)):
        return tr("equal but for the shape")
    return ""


def _same(target: Array, golden: Array) -> bool:
    # One row first: most tensors differ there already.
    if not np.array_equal(target[:1], golden[:1], equal_nan=target.dtype.kind in "fc"):
        return False
    return bool(np.array_equal(target, golden, equal_nan=target.dtype.kind in "fc"))


def _blocks(target: Array, golden: Array) -> Iterator[tuple[int, Array, Array]]:
    wide = np.complex128 if "c" in (target.dtype.kind, golden.dtype.kind) else np.float64
    mine, theirs = target.reshape(-1), golden.reshape(-1)
    for start in range(0, theirs.size, _BLOCK):
        yield start, mine[start : start + _BLOCK].astype(wide), theirs[start : start + _BLOCK].astype(wide)


def _errors(mine: Array, theirs: Array) -> tuple[Array, Array]:
    """Absolute and relative error of each element; neither is ever NaN."""
    with np.errstate(all="ignore"):
        error = np.abs(mine - theirs)
        relative = error / np.abs(theirs)
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    for errors in (error, relative):
        errors[np.isnan(errors)] = np.inf
        errors[same] = 0.0
    non_finite = ~(np.isfinite(mine) & np.isfinite(theirs)) & ~same
    relative[non_finite] = np.inf
    return error, relative


def _count(bins: Counter[int], error: Array) -> None:
    ordinary = error[(error > 0) & np.isfinite(error)]
    decades = np.floor(np.log10(ordinary)).astype(int)
    first = decades.min(initial=0)
    counts = np.bincount(decades - first)
    bins.update({int(first + place): int(counts[place]) for place in np.flatnonzero(counts)})
    bins[EQUAL] += int(np.count_nonzero(error == 0))
    bins[NON_FINITE] += int(np.count_nonzero(np.isinf(error)))


def _keep(
    kept: list[Element], most: int, key: Array, start: int, shape: tuple[int, ...], columns: tuple[Array, ...]
) -> None:
    """Put the block's largest by ``key`` among the ``most`` largest so far; equal elements are not told."""
    places = np.argpartition(key, -most)[-most:] if key.size > most else np.arange(key.size)
    by_key = "absolute" if key is columns[2] else "relative"
    for place in places[key[places] > 0]:
        index = tuple(int(part) for part in np.unravel_index(start + int(place), shape))
        kept.append(Element(index, *(column[place].item() for column in columns)))
    kept.sort(key=lambda each: -getattr(each, by_key))
    del kept[most:]


class _Axes:
    """Sums of squared error by slice of each axis; where there are one-sided NaN or infinities, their number."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._axes = [
            (axis, size, math.prod(shape[axis + 1 :]), np.zeros(size), np.zeros(size))
            for axis, size in enumerate(shape)
            if size > 1
        ]

    def add(self, start: int, error: Array) -> None:
        non_finite = np.isinf(error)
        squares = np.where(non_finite, 0.0, error) ** 2
        if not (squares.any() or non_finite.any()):
            return
        places = np.arange(start, start + error.size)
        for axis, size, stride, sums, non_finite_counts in self._axes:
            slices = places if stride == 1 else places // stride
            if axis:
                slices = slices % size
            sums += np.bincount(slices, squares, size)
            if non_finite.any():
                non_finite_counts += np.bincount(slices, non_finite, size)

    def shares(self) -> list[AxisShare]:
        found = []
        for axis, size, _, squares, non_finite_counts in self._axes:
            sums = non_finite_counts if non_finite_counts.any() else squares
            whole = float(sums.sum())
            if not 0 < whole < math.inf:
                continue
            falling = np.sort(sums)[::-1].cumsum()
            holding = int(np.searchsorted(falling, 0.9 * whole)) + 1
            place = int(sums.argmax())
            found.append(AxisShare(axis, size, place, float(sums[place]) / whole, min(holding, size)))
        return found


@dataclass(slots=True)
class _Fit:
    """Sums for the two simplest causes: t = c·g (least squares, c = t·g / g·g) and t = g + b (b = mean difference)."""

    dot: float = 0.0
    target: float = 0.0
    golden: float = 0.0
    error: float = 0.0
    offset: float = 0.0
    unmeasurable: bool = False

    def add(self, mine: Array, theirs: Array, error: Array) -> None:
        if mine.dtype.kind == "c" or not np.isfinite(error).all():
            self.unmeasurable = True
            return
        finite = np.isfinite(mine)
        mine, theirs, error = mine[finite], theirs[finite], error[finite]
        self.dot += float(np.dot(mine, theirs))
        self.target += float(np.dot(mine, mine))
        self.golden += float(np.dot(theirs, theirs))
        self.error += float(np.dot(error, error))
        self.offset += float((mine - theirs).sum())

    def cause(self, size: int) -> str:
        """The cause in words, where it explains all but ``_EXPLAINED`` of the squared error; "" otherwise."""
        # Differences of few roundings are no constant of anything, and two elements always fit.
        if self.unmeasurable or size < 3 or self.error <= 1e-12 * self.golden:
            return ""
        if self.target == 0:
            return tr("the target is all zeros")
        scale = self.dot / self.golden if self.golden else 0.0
        if self.golden and self.target - self.dot * scale <= _EXPLAINED * self.error:
            return tr("the target is {scale:.6g} × the golden", scale=scale)
        offset = self.offset / size
        if self.error - size * offset * offset <= _EXPLAINED * self.error:
            return tr(
                "the target is the golden {value} {offset:.6g} everywhere",
                value="+" if offset > 0 else "−",
                offset=abs(offset),
            )
        return "" if self.golden else tr("the golden is all zeros")
