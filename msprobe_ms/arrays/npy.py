"""Arrays in files: ``.npy``, ``.bin`` and bytes at known places of others read without trust, ``.npy`` written."""

from __future__ import annotations

import io
import math
import os
import stat
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from msprobe_ms.arrays.bytes_writer import BytesWriter
from msprobe_ms.arrays.dtypes import narrow_width, widen
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError
from msprobe_ms.support.translation import tr

#: dtypes that a ``.bin`` may be of, by name in lower case: what numpy has, little-endian.
PLAIN_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip

#: How MindSpore's kernel dump writes bfloat16, which numpy does not know.
_BFLOAT16 = b"'<E2'"
_LONGEST_HEADER = 10_000
#: Kinds of dtypes that are numbers to numpy.
_NUMBERS = "fiubc"
#: Bytes with the version and the length of a header, in either version of the format.
_FIXED = 12


def load_array(path: Path, dtype: str | None, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Load the array of one file in its saved shape; ``dtype`` and ``shape`` are what the dump says of it.

    Of ``.npy`` the dtype is asked only where items have a size and no type; bfloat16 and float8 come as float32.
    ``.bin`` without a shape is 1-D.

    :raises MissingTensorError: there is no such file
    :raises DumpFormatError: it is damaged, not a regular file, or nothing tells its dtype
    """
    check_regular(path)
    return _load_bin(path, dtype, shape) if path.suffix == ".bin" else _load_npy(path, dtype)


def array_header(path: Path, dtype: str | None) -> tuple[tuple[int, ...], np.dtype]:
    """Read shape and stored dtype from the header of a ``.npy``; the array behind it may be cut off.

    Raises as ``load_array``.
    """
    check_regular(path)
    try:
        with open(path, "rb") as file:
            shape, _, stored = read_header(path, file, dtype)
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    return shape, stored


def check_regular(path: Path) -> None:
    """Check that a file is regular, as a pipe would wait for ever. Raises MissingTensorError and DumpFormatError."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise DumpFormatError(tr("{path}: not a regular file", path=path))
    except FileNotFoundError as error:
        raise MissingTensorError(tr("{path}: no such file", path=path)) from error
    except (OSError, ValueError) as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=getattr(error, "strerror", None) or error)
        ) from error


def _load_npy(path: Path, dtype: str | None) -> np.ndarray:
    """The array of one ``.npy`` file; ``dtype`` is the item's, to tell what two-byte items without a type mean."""
    shape: tuple[int, ...] = ()
    try:
        with open(path, "rb") as file:
            shape, column_major, stored = read_header(path, file, dtype)
            room = os.fstat(file.fileno()).st_size - file.tell()
            count = math.prod(shape)
            if count * stored.itemsize > room:
                raise DumpFormatError(
                    tr(
                        "{path}: shape {shape} of {stored} takes {count} bytes, {room} are there",
                        path=path,
                        shape=shape,
                        stored=stored,
                        count=count * stored.itemsize,
                        room=room,
                    )
                )
            array = np.fromfile(file, stored, count).reshape(shape, order="F" if column_major else "C")
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    except (ValueError, OverflowError) as error:  # more or larger dimensions than numpy has, though without elements
        raise DumpFormatError(
            tr("{path}: shape {shape} is impossible: {error}", path=path, shape=str(shape)[:100], error=error)
        ) from error
    if stored.kind == "V":
        return widen(array.view(f"<u{stored.itemsize}"), dtype or "")
    return array


def read_header(path: Path, file: BinaryIO, dtype: str | None) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read a header: shape, whether columns come first, and dtype, which is one of plain numbers or a narrow float."""
    try:
        shape, column_major, stored = _parsed(_header(file))
    except OSError:
        raise
    except Exception as error:  # numpy evaluates the header as a literal, which can fail in any way
        raise DumpFormatError(
            tr("{path}: the .npy header is damaged: {error}", path=path, error=str(error)[:200])
        ) from error
    if any(type(size) is not int or size < 0 for size in shape):
        raise DumpFormatError(tr("{path}: the .npy header is damaged: shape {shape}", path=path, shape=shape))
    narrow = narrow_width(dtype) if dtype else None
    if stored.subdtype or (stored.kind not in "biufc" and not (stored.kind == "V" and stored.itemsize == narrow)):
        shown = tr("dtype {stored}, and {dtype} in the dump", stored=str(stored)[:100], dtype=dtype)
        raise DumpFormatError(tr("{path}: {shown}; accepted are numbers", path=path, shown=shown))
    return shape, column_major, stored


def _header(file: BinaryIO) -> bytes:
    """What stands before the numbers: magic, version, the length of a literal, the literal."""
    head = file.read(_FIXED)
    end = 10 + int.from_bytes(head[8:10], "little") if head[6:7] == b"\1" else 12 + int.from_bytes(head[8:12], "little")
    return head + file.read(max(0, min(end, _LONGEST_HEADER) - _FIXED))


@lru_cache(maxsize=256)
def _parsed(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """What a header says. A dump has few different ones, and numpy takes longer for one than to read its array."""
    npy: Any = np.lib.format
    file = io.BytesIO(header)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
    start = file.tell()
    try:
        found: tuple[tuple[int, ...], bool, np.dtype] = read(file)
    except ValueError:
        if _BFLOAT16 not in header:
            raise
        found = read(io.BytesIO(header[start:].replace(_BFLOAT16, b"'|V2'")))
    return found


def _load_bin(path: Path, dtype: str | None, shape: tuple[int, ...] | None) -> np.ndarray:
    """Bytes alone: only the dump says what they are."""
    width = narrow_width(dtype) if dtype else None
    stored = np.dtype(f"<u{width}") if width else PLAIN_DTYPES.get((dtype or "").lower())
    if stored is None:
        known = tr("dtype {dtype} is none of numpy's", dtype=dtype[:100]) if dtype else tr("no dtype is known")
        raise DumpFormatError(
            tr("{path}: {known}, and a .bin file holds bytes alone: it cannot be read", path=path, known=known)
        )
    try:
        size = path.stat().st_size
        if size % stored.itemsize or (shape is not None and math.prod(shape) * stored.itemsize != size):
            raise DumpFormatError(
                tr(
                    "{path}: {size} bytes, which no {dtype} of shape {shape} takes",
                    path=path,
                    size=size,
                    dtype=dtype,
                    shape=shape or "(n,)",
                )
            )
        array = np.fromfile(path, stored)
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    try:
        array = array if shape is None else array.reshape(shape)
    except ValueError as error:
        raise DumpFormatError(
            tr("{path}: shape {shape} is impossible: {error}", path=path, shape=str(shape)[:100], error=error)
        ) from error
    return widen(array, dtype or "") if width else array


class _Stream:
    """Only `write`: to a real file numpy writes in a way of its own, which loses the reason when the disk refuses."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write


def write_npy(file: BinaryIO, array: np.ndarray) -> None:
    """Write an array of any shape as ``numpy.save`` does, in C order whatever its own, as frameworks' own files are.

    Raises OSError with its number, ValueError for arrays of Python objects.
    """
    array = array if array.flags.c_contiguous else array.copy(order="C")
    if array.dtype.kind in _NUMBERS:  # without a copy of its bytes, which is half of what numpy takes
        npy_writer(array.dtype.str, array.shape)(file, array.reshape(-1).view(np.uint8).data)
    else:
        stream: Any = _Stream(file)
        np.save(stream, array, allow_pickle=False)


@lru_cache(maxsize=1024)
def npy_writer(dtype: str, shape: tuple[int, ...]) -> BytesWriter:
    """Return what writes an array from its elements, of numpy's ``dtype`` and in C order.

    A training has few different ones. The writer raises OSError.
    """
    npy: Any = np.lib.format  # untyped
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    head = file.getvalue()
    return BytesWriter(len(head), 0, lambda _: (head, b""))


def write_npy_in_parts(file: BinaryIO, shape: tuple[int, ...], parts: Iterable[np.ndarray]) -> None:
    """Write an array of ``shape`` that comes in parts, one or more, in the order of its elements."""
    for number, part in enumerate(parts):
        if not number:
            numpy_format: Any = np.lib.format  # untyped
            header = {"descr": part.dtype.str, "fortran_order": False, "shape": shape}
            numpy_format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)


def item_size(dtype: str) -> int | None:
    """Return the bytes of one element; None for a dtype that cannot be read."""
    return np.dtype(dtype).itemsize if dtype in PLAIN_DTYPES else narrow_width(dtype)


def read_array(
    path: Path, name: str, dtype: str, shape: tuple[int, ...], parts: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Read the array of ``shape`` whose bytes are the ``parts`` (offset, length) of a file; narrow floats are widened.

    :raises DumpFormatError: they are not the bytes of such an array, or are not there
    """
    width = item_size(dtype)
    if width is None:
        raise DumpFormatError(
            tr("{path}: {name}: dtype {dtype} cannot be read", path=path, name=name, dtype=dtype[:100])
        )
    length = sum(size for _, size in parts)
    if math.prod(shape) * width != length:
        raise DumpFormatError(
            tr(
                "{path}: {name}: {length} bytes, which no {dtype} of shape {shape} takes",
                path=path,
                name=name,
                length=length,
                dtype=dtype,
                shape=shape,
            )
        )
    try:
        with open(path, "rb") as file:
            end = file.seek(0, 2)
            if any(offset + size > end for offset, size in parts):
                raise DumpFormatError(
                    tr(
                        "{path}: {name}: cut off: it reaches to byte {last}, {end} are there",
                        path=path,
                        name=name,
                        last=sum(parts[-1]),
                        end=end,
                    )
                )
            buffer = np.empty(length, np.uint8)
            place = 0
            for offset, size in parts:
                file.seek(offset)
                if file.readinto(buffer[place : place + size].data) != size:
                    raise DumpFormatError(tr("{path}: {name}: cut off", path=path, name=name))
                place += size
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: {name}: cannot be read: {strerror}", path=path, name=name, strerror=error.strerror or error)
        ) from error
    try:
        if dtype in PLAIN_DTYPES:
            return buffer.view(np.dtype(dtype).newbyteorder("<")).reshape(shape)
        return widen(buffer.view(f"<u{width}"), dtype).reshape(shape)
    except (ValueError, OverflowError) as error:  # more dimensions than numpy has
        raise DumpFormatError(
            tr(
                "{path}: {name}: shape {shape} is impossible: {error}",
                path=path,
                name=name,
                shape=str(shape)[:100],
                error=error,
            )
        ) from error
