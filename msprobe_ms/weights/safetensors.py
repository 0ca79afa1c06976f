"""``.safetensors``: eight bytes of length, a JSON header of that length, numbers.

The library of that name is not used: its numpy loader knows neither bfloat16 nor float8 (0.8), and refuses a file as a
whole where one tensor is cut off.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from msprobe_ms.arrays.npy import item_size, read_array
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr
from msprobe_ms.weights.model import LARGEST_SIZE, MOST_DIMENSIONS, Checkpoint, Weight, clean

#: Longest header, in bytes: the bound of the format's own library.
LONGEST_HEADER = 100_000_000

_DTYPES = {
    "BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


def looks_like(head: bytes) -> bool:
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= LONGEST_HEADER


def read(path: Path, file: BinaryIO) -> Checkpoint:
    """Read the tensors of one file, in the order of their numbers.

    :raises DumpFormatError: the header is damaged, or two tensors overlap
    """
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if length > min(LONGEST_HEADER, size - 8):
        raise DumpFormatError(
            tr(
                "{path}: its header takes {length} bytes, the file {size}; it is cut off or damaged",
                path=path,
                length=length,
                size=size,
            )
        )
    try:
        header = json.loads(file.read(length), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise DumpFormatError(
            tr("{path}: the header is damaged: {error}", path=path, error=str(error)[:200])
        ) from error
    if not isinstance(header, dict):
        raise DumpFormatError(tr("{path}: the header holds no object", path=path))
    header.pop("__metadata__", None)
    found: list[tuple[int, int, Weight]] = []
    for written, description in header.items():
        name = clean(written)
        begin, end, dtype, shape = _described(path, name, description)
        parts = [(8 + length + begin, end - begin)]
        load = partial(read_array, path, name, dtype, shape, parts)
        found.append((begin, end, Weight(name, dtype, shape, load)))
    found.sort(key=lambda place: place[:2])
    checkpoint = Checkpoint(path, "safetensors")
    for _, _, weight in found:
        checkpoint.add(weight)
    for (_, end, one), (begin, _, other) in itertools.pairwise(found):
        if begin < end:
            raise DumpFormatError(
                tr(
                    "{path}: the header is damaged: {name} and {name2} overlap",
                    path=path,
                    name=one.name[:200],
                    name2=other.name[:200],
                )
            )
    return checkpoint


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(tr("a name stands in it twice"))
    return found


def _described(path: Path, name: str, description: Any) -> tuple[int, int, str, tuple[int, ...]]:
    try:
        written, shape = description["dtype"], tuple(description["shape"])
        begin, end = description["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, name, tr("dtype, shape and data_offsets are expected")) from error
    numbers = (begin, end, *shape)
    if type(written) is not str or not all(type(number) is int and number >= 0 for number in numbers) or begin > end:
        raise _damaged(
            path,
            name,
            tr(
                "dtype {written:.50}, shape {shape:.100}, data_offsets {begin:.30}, {end:.30}",
                written=repr(written),
                shape=repr(shape),
                begin=repr(begin),
                end=repr(end),
            ),
        )
    dtype = _DTYPES.get(written, written)
    width = item_size(dtype)
    # The product of a shape that no array has may take hours; such a weight is refused by itself.
    possible = len(shape) <= MOST_DIMENSIONS and max(shape, default=0) <= LARGEST_SIZE
    if width is not None and possible and math.prod(shape) * width != end - begin:
        raise _damaged(
            path,
            name,
            tr(
                "{end} bytes, which no {dtype} of shape {shape:.100} takes",
                end=end - begin,
                dtype=dtype,
                shape=repr(shape),
            ),
        )
    return begin, end, dtype, shape


def _damaged(path: Path, name: str, what: str) -> DumpFormatError:
    return DumpFormatError(tr("{path}: the header is damaged: {name}: {what}", path=path, name=name[:200], what=what))
