"""Writing arrays as .npy so that a full disk is told as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np


class _Stream:
    """Only `write`: to a real file numpy writes in a way of its own, which loses the reason when the disk refuses."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write


def write_npy(file: BinaryIO, array: np.ndarray) -> None:
    """What ``numpy.save`` writes, in C order whatever the array's, as frameworks' own files are.

    Raises OSError with its number, ValueError for arrays of Python objects.
    """
    stream: Any = _Stream(file)
    np.save(stream, array if array.flags.c_contiguous else array.copy(order="C"), allow_pickle=False)


def write_npy_in_parts(file: BinaryIO, shape: tuple[int, ...], parts: Iterable[np.ndarray]) -> None:
    """The same for an array of ``shape`` that comes in parts, one or more, in the order of its elements."""
    for number, part in enumerate(parts):
        if not number:
            numpy_format: Any = np.lib.format  # untyped
            header = {"descr": part.dtype.str, "fortran_order": False, "shape": shape}
            numpy_format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
