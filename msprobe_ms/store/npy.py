"""Writing arrays as .npy so that a full disk is told as one."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np


def write_npy(file: BinaryIO, array: np.ndarray) -> None:
    """What ``numpy.save`` writes; its own way to a file loses the reason when the disk refuses.

    Raises OSError with its number, ValueError for arrays of Python objects.
    """
    if array.dtype.hasobject:
        raise ValueError(f"an array of {array.dtype} holds Python objects, which are never written")
    array = np.asarray(array, order="C")
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.reshape(-1).view(np.uint8))
