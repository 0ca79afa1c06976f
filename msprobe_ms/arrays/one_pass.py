"""Figures of the elements of a tensor in one pass over its memory, where the extension in C is built.

`statistics` and `sketch` define the figures and compute them with numpy where it is not; both are as near as
docs/format.md, "Statistics", says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import GetSetDescriptorType
from typing import Any, NamedTuple

import numpy as np
import orjson

from msprobe_ms.arrays import sketch_map
from msprobe_ms.arrays.dtypes import float8_values, narrow_width, parse_dtype
from msprobe_ms.arrays.sketch_map import BLOCK, LENGTH, ROW, SETS
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

_figures: Callable[..., tuple[float, float, float, float, bytes | None]] | None
_leaf: Callable[..., bytes]
#: What `leaf_texts` calls, with the tables in the place of ``sketch``: leaves(values, places, frames, tables, numbers,
#: orjson.dumps).
leaves: Callable[..., list[bytes | None] | None]
try:
    from msprobe_ms.arrays._one_pass import figures as _figures
    from msprobe_ms.arrays._one_pass import leaf as _leaf
    from msprobe_ms.arrays._one_pass import leaves
except ImportError:  # it was installed without a compiler
    _figures = None

#: What an element is, by the names that frameworks have in common: the numbers of the extension's kinds.
KINDS = {
    name: ord(kind)
    for name, kind in {
        "bool": "?", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i",
        "uint64": "Q", "int64": "q", "float16": "e", "bfloat16": "E", "float32": "f", "float64": "d",
    }.items()
}  # fmt: skip

#: Kinds whose figures are no numbers, and whose sketches are of float64.
BOOLEAN = KINDS["bool"]
EXACT = frozenset(kind for name, kind in KINDS.items() if "int" in name or name == "float64")

#: The kind of bytes that stand for numbers of a table, as those of float8 do.
TABLE = ord("t")

#: Bytes of an element by its kind.
_SIZES = {kind: 2 if name == "bfloat16" else np.dtype(name).itemsize for name, kind in KINDS.items()} | {TABLE: 1}

#: Those of arrays in this machine's order of bytes; others are for numpy.
_OF_ARRAYS = {np.dtype(name): kind for name, kind in KINDS.items() if name != "bfloat16"}

_VECTORS = 3


class Sums(NamedTuple):
    """Of numbers: the largest, the smallest, the sum, the sum of squares; and the sketch, sixteen doubles, or None."""

    maximum: float
    minimum: float
    total: float
    squares: float
    sketch: bytes | None


class Kind(NamedTuple):
    """Of a dtype: its kind, the bytes of an element, of `TABLE` the 256 float32 that its bytes stand for; its text."""

    kind: int
    itemsize: int
    values: bytes | None = None
    dtype: str = ""


class Elements(NamedTuple):
    """Where the elements of a tensor lie that has some; whoever made this holds the tensor while they are read.

    ``kind`` is one of `KINDS`, or `TABLE` with the 256 float32 ``values`` that its bytes stand for. ``strides`` are in
    bytes; None where the elements lie one behind the other in C order. ``dtype`` is the text of a framework's dtype.
    """

    address: int
    kind: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    values: bytes | None = None
    dtype: str = ""


#: What tells something of a tensor.
Told = Callable[[Any], Any] | GetSetDescriptorType


class Places(NamedTuple):
    """How a framework tells where the elements of its tensors lie, for `leaf_texts`: what `Elements` says, in parts.

    Each is a function of a tensor, or an attribute of its class that is written in C, but for these: ``types`` are the
    classes of tensors that are asked at all, of those without attributes of their own, or with none of the names
    ``instead``; ``expected`` pairs of a function and what it gives of such a tensor; ``kinds`` gives the `Kind` of a
    dtype; ``begin`` and ``held`` take what ``storage`` gave, and give its address and how many bytes are there. Strides
    and the offset into the storage are in elements.
    """

    types: frozenset[type]
    instead: frozenset[str] | None
    expected: tuple[tuple[Told, Any], ...]
    dtype: Told
    kinds: dict[Any, Kind]
    storage: Told
    begin: Told | None
    held: Told
    offset: Told
    is_contiguous: Told
    shape: Told
    strides: Told
    address: Told
    requires_grad: Told | None = None


def is_built() -> bool:
    """Whether the extension is there."""
    return _figures is not None


@lru_cache(maxsize=1)
def say_if_missing() -> None:
    """Tell the user, once a process, that recording takes longer here than it would with a compiler."""
    if _figures is None:
        logger.info(
            tr("numpy computes the figures of tensors, which takes longer: this was installed without a C compiler")
        )


def sums(elements: Elements, *, sketch: bool, first: int = 0) -> Sums:
    """Read ``elements``, of which there is at least one; ``first`` of the same tensor, whole blocks, lie before them.

    No sketch where there are NaN or infinities, or where a sum overflows.
    """
    address, kind, shape, strides, values, _ = elements
    assert _figures is not None
    return Sums(*_figures(address, kind, shape, strides, tables() if sketch else None, values, first))


def leaf_text(elements: Elements, frame: tuple[bytes, ...], *, sketch: bool) -> bytes:
    """Return the leaf of a tensor as `json_text.value_text` gives it, from the parts that `json_text.leaf_frame` gives.

    Its figures are those of `statistics.summary_of`.
    """
    address, kind, shape, strides, values, _ = elements
    return _leaf(address, kind, shape, strides, tables() if sketch else None, values, frame, orjson.dumps)


def leaf_texts(
    values: Sequence[Any],
    places: Places,
    frames: Mapping[tuple[str, tuple[int, ...], bool | None], tuple[bytes, ...]],
    numbers: tuple[bytes, ...],
    *,
    sketch: bool,
) -> list[bytes | None] | None:
    """Return the leaves of tensors and numbers, those of tensors as `leaf_text` gives them, all in one call.

    ``frames`` gives what `json_text.leaf_frame` does, ``numbers`` is what `json_text.number_frame` gives. None stands
    for a tensor that Python has to look at. None for all of them where there is anything else among them. What a
    framework raises is raised.
    """
    return leaves(values, places, frames, tables() if sketch else None, numbers, orjson.dumps)


def elements_of(array: np.ndarray) -> Elements | None:
    """Return where the elements of an array lie; None where numpy has to read them."""
    if _figures is None or (kind := _OF_ARRAYS.get(array.dtype)) is None or not array.size:
        return None
    return Elements(_address(array), kind, array.shape, None if array.flags.c_contiguous else array.strides)


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def elements_at(address: int, dtype: Kind, shape: tuple[int, ...], strides: Sequence[int] | None) -> Elements | None:
    """Return where the elements of a framework's tensor lie, whose ``strides`` are in elements.

    None where it has none, and of large ones that are not contiguous, whose order in memory numpy looks at first.
    """
    if not address or (shape and min(shape) <= 0):  # or its shape is not known
        return None
    if strides is not None:
        if math.prod(shape) > BLOCK:
            return None
        strides = tuple(stride * dtype.itemsize for stride in strides)
    return Elements(address, dtype.kind, shape, strides, dtype.values, dtype.dtype)


def kind_of(dtype: str) -> Kind | None:
    """Return how the elements of a framework's dtype are read, of its text (``torch.bfloat16``); None for others."""
    name = parse_dtype(dtype).name
    if (kind := KINDS.get(name)) is not None:
        return Kind(kind, _SIZES[kind], None, dtype)
    return Kind(TABLE, 1, float8_values(dtype).tobytes(), dtype) if narrow_width(dtype) == 1 else None


@lru_cache(maxsize=1)
def tables() -> bytes:
    """Return the map of `sketch_map` as the extension reads it: its struct ``Tables``, member by member."""
    rows = sketch_map.row_folding()[:, 1:, :LENGTH]  # (128, 3, 16): of each product one number, and its sign
    rest = sketch_map.rest_folding().reshape(LENGTH, LENGTH, LENGTH).sum(axis=2)
    length = np.abs(sketch_map.rest_vectors(8)).max()  # the extension multiplies by signs, and then by this
    vectors = sketch_map.vectors(4)[..., 1:].transpose(0, 2, 1)
    assert rows.shape == (BLOCK // ROW, _VECTORS, LENGTH) and vectors.shape == (SETS, _VECTORS, ROW)
    return b"".join(
        (
            np.abs(rows).max().tobytes(),
            np.sign(rows.sum(axis=2)).tobytes(),
            (rest * length).tobytes(),
            np.ascontiguousarray(vectors).tobytes(),
            np.sign(sketch_map.rest_vectors(4)).tobytes(),
            np.abs(rows).argmax(axis=2).astype(np.uint8).tobytes(),
        )
    )
