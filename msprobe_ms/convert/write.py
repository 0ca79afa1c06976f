"""Arrays as ``.npy``, ``.txt`` and ``.csv``."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import BinaryIO

import numpy as np

from msprobe_ms.store.npy import write_npy

#: Rows turned into text at a time.
_ROWS = 4096


def write_text(file: BinaryIO, array: np.ndarray, dtype: str) -> None:
    """Shape and dtype in a comment, then one line a row of the last axis; ``numpy.loadtxt(path).reshape(shape)`` reads
    it back. Of more than two axes a comment with its index comes before each block of rows."""
    file.write(f"# shape {tuple(array.shape)} dtype {dtype}\n".encode())
    if array.ndim <= 2:
        _write_rows(file, _rows_of(array), " ")
        return
    for index in np.ndindex(array.shape[:-2]):
        file.write(f"# [{', '.join(map(str, index))}]\n".encode())
        _write_rows(file, array[index], " ")


def write_csv(file: BinaryIO, array: np.ndarray, dtype: str) -> None:
    """One line a row of the last axis, all others one after the other; of one axis or none a number a line."""
    _write_rows(file, _rows_of(array), ",")


def _write_npy(file: BinaryIO, array: np.ndarray, dtype: str) -> None:
    write_npy(file, array)


WRITERS: Mapping[str, Callable[[BinaryIO, np.ndarray, str], None]] = {
    "npy": _write_npy,
    "txt": write_text,
    "csv": write_csv,
}


def _rows_of(array: np.ndarray) -> np.ndarray:
    if array.ndim < 2:
        return array.reshape(-1, 1)
    return array.reshape(-1, array.shape[-1]) if array.size else array.reshape(0, 1)


def _write_rows(file: BinaryIO, rows: np.ndarray, delimiter: str) -> None:
    if not rows.size:
        return
    for start in range(0, len(rows), _ROWS):
        text = io.StringIO()
        block = rows[start : start + _ROWS]
        if block.dtype.kind == "c":
            text.writelines(delimiter.join(map(_complex, row)) + "\n" for row in block.tolist())
        else:
            # The text of a float is the shortest that reads back as the same number.
            np.savetxt(text, block, "%s" if block.dtype.kind == "f" else "%d", delimiter)
        file.write(text.getvalue().encode("ascii"))


def _complex(number: complex) -> str:
    return f"{number.real:.17g}{number.imag:+.17g}j"
