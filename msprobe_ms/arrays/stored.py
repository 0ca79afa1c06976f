"""The numbers of a tensor file as they are stored: narrow floats (bfloat16, float8) stay codes, nothing is widened."""

from __future__ import annotations

import math
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from msprobe_ms.arrays.dtypes import narrow_width, parse_dtype
from msprobe_ms.arrays.npy import PLAIN_DTYPES, check_regular, load_array, read_header
from msprobe_ms.arrays.torch_file import read_stored
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr


class StoredTensor(NamedTuple):
    """``dtype`` in numpy's spelling, ``codes`` little-endian in C order: unsigned integers where ``dtype`` is a narrow
    float."""

    dtype: str
    codes: np.ndarray

    @property
    def content(self) -> memoryview:
        """Its bytes."""
        flat = np.ascontiguousarray(self.codes).reshape(-1)
        return memoryview(flat.view(np.uint8).data) if flat.size else memoryview(b"")


def load_stored(path: Path, dtype: str) -> StoredTensor:
    """Load ``.npy``, ``.pt`` or ``.bin``; ``dtype`` is what the dump says of it. ``.npy`` stays on the disk.

    :raises MissingTensorError: there is no such file
    :raises DumpFormatError: it is damaged, or of a dtype that is not sent
    """
    if path.suffix == ".pt":
        check_regular(path)
        codes, dtype = read_stored(path)
    elif path.suffix == ".bin":
        codes = load_array(path, None if narrow_width(dtype) else dtype)
    else:
        codes = _mapped(path, dtype)
    name = parse_dtype(dtype).name if narrow_width(dtype) else codes.dtype.name
    if name not in PLAIN_DTYPES and not narrow_width(name):
        raise DumpFormatError(tr("{path}: dtype {name} is not sent", path=path, name=name))
    return StoredTensor(name, codes.astype(codes.dtype.newbyteorder("<"), copy=False))


def _mapped(path: Path, dtype: str) -> np.ndarray:
    check_regular(path)
    try:
        with open(path, "rb") as file:
            shape, column_major, stored = read_header(path, file, dtype)
            size, room = math.prod(shape) * stored.itemsize, path.stat().st_size - file.tell()
            if size > room:
                raise DumpFormatError(
                    tr("{path}: cut off: {room} of {size} bytes are there", path=path, room=room, size=size)
                )
            if not size:
                return np.empty(shape, stored)
            found = np.memmap(file, stored, "r", file.tell(), shape, "F" if column_major else "C")
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    except (ValueError, OverflowError) as error:
        raise DumpFormatError(
            tr("{path}: shape {shape} is impossible: {error}", path=path, shape=str(shape)[:100], error=error)
        ) from error
    return found.view(f"<u{stored.itemsize}") if stored.kind == "V" else found


def write_npy_header(file: BinaryIO, dtype: str, shape: tuple[int, ...]) -> None:
    """Write what stands before the numbers of a ``.npy``: they may follow in any blocks, as ``load_stored`` gives them.

    Raises OSError.
    """
    width = narrow_width(dtype)
    described = f"|V{width}" if width else PLAIN_DTYPES[dtype].str
    np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})  # type: ignore[no-untyped-call]
