"""Writing arrays as .npy so that a full disk is told as one."""

from __future__ import annotations

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
