"""Arrays as ``.npy``, ``.txt`` and ``.csv``."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import BinaryIO

import numpy as np

from msprobe_ms.arrays.npy import write_npy

#: Elements turned into text at a time.
_ELEMENTS = 1 << 16


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
    height, width = max(1, _ELEMENTS // rows.shape[1]), rows.shape[1]
    for top in range(0, len(rows), height):
        # Of more than one row at a time the width is below the bound: there is one part then.
        for left in range(0, width, _ELEMENTS):
            block = rows[top : top + height, left : left + _ELEMENTS]
            end = "\n" if left + _ELEMENTS >= width else delimiter
            file.write(_text_of(block, delimiter, end).encode("ascii"))


def _text_of(block: np.ndarray, delimiter: str, end: str) -> str:
    if block.dtype.kind == "c":
        return "".join(delimiter.join(map(_complex, row)) + end for row in block.tolist())
    text = io.StringIO()
    # The text of a float is the shortest that reads back as the same number.
    np.savetxt(text, block, "%s" if block.dtype.kind == "f" else "%d", delimiter, end)
    return text.getvalue()


def _complex(number: complex) -> str:
    return f"{number.real:.17g}{number.imag:+.17g}j"
