"""Numbers at known places of a file → an array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from msprobe_ms.arrays import narrow_floats
from msprobe_ms.arrays.npy import PLAIN_DTYPES
from msprobe_ms.support.errors import DumpFormatError


def item_size(dtype: str) -> int | None:
    """Bytes of one element; None for a dtype that cannot be read."""
    return np.dtype(dtype).itemsize if dtype in PLAIN_DTYPES else narrow_floats.bytes_of(dtype)


def read_array(
    path: Path, name: str, dtype: str, shape: tuple[int, ...], parts: Sequence[tuple[int, int]]
) -> np.ndarray:
    """The array whose bytes are the ``parts`` (offset, length) of a file, one after the other; narrow floats widened.

    :raises DumpFormatError: they are not the bytes of such an array, or are not there
    """
    width = item_size(dtype)
    if width is None:
        raise DumpFormatError(f"{path}: {name}: dtype {dtype[:100]} cannot be read")
    length = sum(size for _, size in parts)
    if math.prod(shape) * width != length:
        raise DumpFormatError(f"{path}: {name}: {length} bytes, which no {dtype} of shape {shape} takes")
    try:
        with open(path, "rb") as file:
            end = file.seek(0, 2)
            if any(offset + size > end for offset, size in parts):
                raise DumpFormatError(f"{path}: {name}: cut off: it reaches to byte {sum(parts[-1])}, {end} are there")
            buffer = np.empty(length, np.uint8)
            place = 0
            for offset, size in parts:
                file.seek(offset)
                if file.readinto(buffer[place : place + size].data) != size:
                    raise DumpFormatError(f"{path}: {name}: cut off")
                place += size
    except OSError as error:
        raise DumpFormatError(f"{path}: {name}: cannot be read: {error.strerror or error}") from error
    try:
        if dtype in PLAIN_DTYPES:
            return buffer.view(np.dtype(dtype).newbyteorder("<")).reshape(shape)
        return narrow_floats.widen(buffer.view(f"<u{width}"), dtype).reshape(shape)
    except (ValueError, OverflowError) as error:  # more dimensions than numpy has
        raise DumpFormatError(f"{path}: {name}: shape {str(shape)[:100]} is impossible: {error}") from error
