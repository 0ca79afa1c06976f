"""Writing arrays as .npy so that a full disk is told as one."""

from __future__ import annotations

import io
from typing import BinaryIO

import numpy as np


def write_npy(file: BinaryIO, array: np.ndarray) -> None:
    """What ``numpy.save`` writes; its own way to a file loses the reason when the disk refuses.

    Raises OSError with its number, ValueError for arrays of Python objects.
    """
    header = io.BytesIO()
    np.save(header, np.lib.stride_tricks.as_strided(array, shape=array.shape[:0]), allow_pickle=False)
