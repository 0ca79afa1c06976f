"""Layouts of Ascend's tensors: which order the axes have in memory, and which of them are cut into padded blocks.

A plain layout is named by its axes (NCHW, NDHWC, …). A blocked one pads an axis X to whole blocks and splits it into X1
(which block) and X0 (which element of it): NC1HWC0, NDC1HWC0, FRACTAL_Z of a convolution's weight and FRACTAL_NZ of a
matrix, as CANN's page "Data Layout Formats" defines them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr, tr_list

Shape = tuple[int, ...]

#: Rows of a fractal, a block that the matrix unit takes at once; its columns are C0.
FRACTAL = 16
#: Bytes of one row of a block.
_ROW = 32

PLAIN = ("NCHW", "NHWC", "HWCN", "CHWN", "NCDHW", "NDHWC", "DHWCN", "ND")


@dataclass(frozen=True)
class _Blocked:
    """``axes`` before blocks are cut, and ``stored`` behind; ``blocks`` are the axes cut, the last of them by C0."""

    axes: str
    stored: tuple[str, ...]
    blocks: str


#: Of FRACTAL_NZ B stands for all axes before the last two, M and K.
_BLOCKED = {
    "NC1HWC0": _Blocked("NCHW", ("N", "C1", "H", "W", "C0"), "C"),
    "NDC1HWC0": _Blocked("NCDHW", ("N", "D", "C1", "H", "W", "C0"), "C"),
    "FRACTAL_Z": _Blocked("NCHW", ("C1", "H", "W", "N1", "N0", "C0"), "NC"),
    "FRACTAL_NZ": _Blocked("BMK", ("B", "K1", "M1", "M0", "K0"), "MK"),
}
BLOCKED = tuple(_BLOCKED)
LAYOUTS = (*PLAIN, *BLOCKED)


def convert_layout(
    array: np.ndarray, source: str, target: str, shape: Shape | None = None, width: int | None = None
) -> np.ndarray:
    """Return ``array``, stored as ``source``, in the layout ``target``.

    ``shape`` is the tensor's own, in the order of the target's axes; without it what is padded stays so. ``width`` is
    that of the blocks to cut, as in ``pack``.

    :raises DumpFormatError: no such conversion is defined, or the shape and what is stored contradict each other
    """
    _check(source, target)
    if source == target:
        return array if source in BLOCKED or shape is None else _fitting(array, shape, source)
    try:
        if source in BLOCKED:
            return _unpacked(array, source, target, shape)
        if target in BLOCKED:
            return pack(array, source, target, width)
    except (ValueError, MemoryError) as error:  # lengths that no array has, one of them 0, or whose padding is too much
        raise DumpFormatError(
            tr(
                "{source} of {text} cannot become {target}: {error}",
                source=source,
                text=_text(array.shape),
                target=target,
                error=error,
            )
        ) from error
    # ND is the same axes without their meaning.
    result = _transposed(array, source, source if target == "ND" else target)
    return result if shape is None else _fitting(result, shape, target)


def pack(array: np.ndarray, source: str, target: str, width: int | None = None) -> np.ndarray:
    """Cut ``array`` of a plain layout into blocks of ``width`` (C0; by default what 32 bytes hold), padded by zeros.

    :raises DumpFormatError: the layouts have different axes
    """
    _check(source, target)
    blocked = _BLOCKED[target]
    lead: Shape = ()
    if target == "FRACTAL_NZ":
        if array.ndim < 2:
            raise DumpFormatError(
                tr("FRACTAL_NZ has two axes or more, {text} has {ndim}", text=_text(array.shape), ndim=array.ndim)
            )
        lead = array.shape[:-2]
        plain = array.reshape(prod(lead), *array.shape[-2:])
    else:
        plain = _transposed(array, source, blocked.axes)
    sizes = _sizes(blocked, plain.shape, width or max(1, _ROW // array.itemsize))
    padded = np.zeros([_padded(sizes, axis) for axis in blocked.axes], array.dtype)
    padded[tuple(slice(length) for length in plain.shape)] = plain
    split = _split(blocked)
    parts = padded.reshape([sizes[part] for part in split])
    stored = np.ascontiguousarray(parts.transpose([split.index(part) for part in blocked.stored]))
    return stored.reshape(_stored_shape(target, sizes, lead))


def _unpacked(array: np.ndarray, source: str, target: str, shape: Shape | None) -> np.ndarray:
    blocked = _BLOCKED[source]
    if array.ndim < 4:
        raise DumpFormatError(
            tr("{source} has four axes or more, what is stored is {text}", source=source, text=_text(array.shape))
        )
    if shape is None:
        shape = _whole_shape(array.shape, source, target)
    lead = shape[:-2] if source == "FRACTAL_NZ" else ()
    order = "BMK" if source == "FRACTAL_NZ" else _named(target, blocked)
    lengths = (prod(lead), *shape[-2:]) if source == "FRACTAL_NZ" else shape
    if len(lengths) != len(order) or len(shape) < 2:
        raise DumpFormatError(
            tr(
                "{text} is no shape of {target}, into which {source} is to be converted",
                text=_text(shape),
                target=target,
                source=source,
            )
        )
    by_axis = dict(zip(order, lengths, strict=True))
    plain_shape = tuple(by_axis[axis] for axis in blocked.axes)
    sizes = _sizes(blocked, plain_shape, array.shape[-1])
    if array.shape not in (_stored_shape(source, sizes, lead), tuple(sizes[part] for part in blocked.stored)):
        needed = _text(_stored_shape(source, sizes, lead))
        raise DumpFormatError(
            tr(
                "{target} of {text} is {needed} in {source}, stored is {text2}",
                target=target,
                text=_text(shape),
                needed=needed,
                source=source,
                text2=_text(array.shape),
            )
        )
    split = _split(blocked)
    parts = array.reshape([sizes[part] for part in blocked.stored])
    parts = parts.transpose([blocked.stored.index(part) for part in split])
    padded = parts.reshape([_padded(sizes, axis) for axis in blocked.axes])
    plain = padded[tuple(slice(length) for length in plain_shape)]
    if source == "FRACTAL_NZ":
        return np.ascontiguousarray(plain).reshape(shape)
    return np.ascontiguousarray(_transposed(plain, blocked.axes, order))


def _whole_shape(stored: Shape, source: str, target: str) -> Shape:
    """The shape with all padding, in the order of the target's axes, where what is stored tells it."""
    if source == "FRACTAL_NZ":
        *lead, columns, rows, high, wide = stored
        return (*lead, rows * high, columns * wide)
    names = _BLOCKED[source].stored
    if len(stored) != len(names):
        raise DumpFormatError(
            tr("{source} of {text} does not tell the tensor's own shape; say it", source=source, text=_text(stored))
        )
    sizes = dict(zip(names, stored, strict=True))
    return tuple(_padded(sizes, axis) for axis in _named(target, _BLOCKED[source]))


def _named(target: str, blocked: _Blocked) -> str:
    """The axes of a plain layout; ND has those that what becomes it has."""
    return blocked.axes if target == "ND" else target


def _sizes(blocked: _Blocked, shape: Shape, width: int) -> dict[str, int]:
    """The length of every stored axis."""
    sizes = {}
    for axis, length in zip(blocked.axes, shape, strict=True):
        if axis in blocked.blocks:
            block = width if axis == blocked.blocks[-1] else FRACTAL
            if not block:
                raise DumpFormatError(tr("a block of no elements holds nothing"))
            sizes[f"{axis}1"], sizes[f"{axis}0"] = -(-length // block), block
        else:
            sizes[axis] = length
    return sizes


def _stored_shape(layout: str, sizes: dict[str, int], lead: Shape) -> Shape:
    """The shape as headers have it: FRACTAL_Z with its first three axes as one, FRACTAL_NZ with all leading ones."""
    if layout == "FRACTAL_Z":
        return sizes["C1"] * sizes["H"] * sizes["W"], sizes["N1"], sizes["N0"], sizes["C0"]
    if layout == "FRACTAL_NZ":
        return (*lead, sizes["K1"], sizes["M1"], sizes["M0"], sizes["K0"])
    return tuple(sizes[part] for part in _BLOCKED[layout].stored)


def _split(blocked: _Blocked) -> list[str]:
    """The axes before blocks are cut, those that will be as their two parts."""
    return [part for axis in blocked.axes for part in ((f"{axis}1", f"{axis}0") if axis in blocked.blocks else axis)]


def _padded(sizes: dict[str, int], axis: str) -> int:
    return sizes[axis] if axis in sizes else sizes[f"{axis}1"] * sizes[f"{axis}0"]


def _transposed(array: np.ndarray, source: str, target: str) -> np.ndarray:
    if array.ndim != len(source):
        raise DumpFormatError(
            tr(
                "{source} has {count} axes, {text} has {ndim}",
                source=source,
                count=len(source),
                text=_text(array.shape),
                ndim=array.ndim,
            )
        )
    return array.transpose([source.index(axis) for axis in target])


def _fitting(array: np.ndarray, shape: Shape, layout: str) -> np.ndarray:
    if array.shape != shape:
        raise DumpFormatError(
            tr(
                "the tensor is {text} in {layout}, not {text2}",
                text=_text(array.shape),
                layout=layout,
                text2=_text(shape),
            )
        )
    return array


def _check(source: str, target: str) -> None:
    for layout in (source, target):
        if layout not in LAYOUTS:
            raise DumpFormatError(
                tr(
                    "{layout} is no layout that is read; accepted are {layouts}",
                    layout=layout,
                    layouts=tr_list(LAYOUTS),
                )
            )
    if not is_defined(source, target):
        raise DumpFormatError(
            tr(
                "{source} cannot become {target}: from {source} {targets}",
                source=source,
                target=target,
                targets=tr_list(targets(source)),
            )
        )


def targets(source: str) -> list[str]:
    """Return the layouts into which one can be converted."""
    return [target for target in LAYOUTS if is_defined(source, target)]


def is_defined(source: str, target: str) -> bool:
    """Whether a conversion is defined: both have the same axes; a matrix in fractals is ND whatever its axes mean."""
    if source == target:
        return True
    if "FRACTAL_NZ" in (source, target):
        other = target if source == "FRACTAL_NZ" else source
        return other in ("ND", "NCHW", "NHWC")
    if source in BLOCKED and target in BLOCKED:
        return False
    if "ND" in (source, target):  # axes lose their meaning, and none is given to them
        return target == "ND" and source in (*PLAIN, "NDC1HWC0")
    one, other = (_BLOCKED[each].axes if each in BLOCKED else each for each in (source, target))
    return set(one) == set(other)


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "()"
