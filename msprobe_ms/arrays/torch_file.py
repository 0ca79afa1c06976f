"""Tensors out of ``torch.save`` files, without torch and without unpickling: a zip archive read as numbers.

The archive holds ``{name}/data.pkl`` (a description of the tensor, see ``torch_pickle``), ``{name}/byteorder`` and the
numbers themselves in ``{name}/data/{key}``. Records are never compressed, so no record is larger than its file.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from msprobe_ms.arrays.dtypes import narrow_width, widen
from msprobe_ms.arrays.torch_pickle import LONGEST_PICKLE, Refused, TensorRecord, describe
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr

#: What an expanded tensor (stride 0) may take when spread out, in bytes: the format's own limit for tensor files.
LARGEST_EXPANDED = 10 << 30
#: Dimensions a numpy 1.x array can have; torch allows 64.
_MOST_DIMENSIONS = 32

_ZIP_MAGIC = b"PK\x03\x04"
#: The pickled magic number that opens files of torch before 1.6.
_LEGACY_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"


def load_tensor(path: Path) -> np.ndarray:
    """Load the tensor saved by ``torch.save(tensor, path)`` or ``torch.save(parameter, path)``, with its shape.

    bfloat16 and float8 become float32, complex32 becomes complex64; the device it was saved from does not matter. The
    array may be a read-only, strided view: no more is allocated than the file's own numbers take (widened).

    :raises DumpFormatError: the file is missing, damaged, of the format before torch 1.6, or holds anything but a
        plain dense tensor; nothing in it is executed
    """
    return read_tensor(path)[0]


def read_tensor(path: Path) -> tuple[np.ndarray, str]:
    """As ``load_tensor``, with the dtype that the file holds, in numpy's spelling."""
    return _read(path, as_stored=False)


def read_stored(path: Path) -> tuple[np.ndarray, str]:
    """As ``read_tensor``, but of bfloat16 and float8 the codes (uint16, uint8) that the file holds."""
    return _read(path, as_stored=True)


def _read(path: Path, *, as_stored: bool) -> tuple[np.ndarray, str]:
    try:
        with open(path, "rb") as file:
            return _load(path, file, as_stored=as_stored)
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error


def _load(path: Path, file: BinaryIO, *, as_stored: bool) -> tuple[np.ndarray, str]:
    head = file.read(32)
    refuse_legacy(path, head)
    if not head.startswith(_ZIP_MAGIC):
        raise DumpFormatError(tr("{path}: not a file of torch.save: it does not begin as a zip archive", path=path))
    archive = Archive(path, file)
    try:
        tensor = describe(archive.read("data.pkl", LONGEST_PICKLE))
    except Refused as error:
        raise DumpFormatError(
            tr("{path}: record data.pkl: {error}; accepted: one dense tensor", path=path, error=error)
        ) from error
    order = archive.byte_order()
    record = f"data/{tensor.storage.key}"
    width = narrow_width(tensor.dtype) if as_stored else None
    shown = tensor if width is None else replace(tensor, dtype=f"uint{8 * width}")
    try:
        return view_of(shown, archive.read(record), order), tensor.dtype
    except Refused as error:
        raise DumpFormatError(
            tr("{path}: record {record}: {error}", path=path, record=repr(record[:200]), error=error)
        ) from error


def refuse_legacy(path: Path, head: bytes) -> None:
    """Refuse a file, by its first bytes, that torch before 1.6 wrote: raises DumpFormatError."""
    if _LEGACY_MAGIC in head:
        raise DumpFormatError(
            tr(
                "{path}: saved in the format of torch before 1.6, which is not read; load it with torch and "
                "save it again",
                path=path,
            )
        )


class Archive:
    """The records of a torch archive, by their name below the archive's one folder."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._length = file.seek(0, 2)
        try:
            with zipfile.ZipFile(file) as directory:
                records = directory.infolist()
        except Exception as error:  # a hostile directory can make zipfile raise anything
            raise DumpFormatError(tr("{path}: damaged zip archive: {error}", path=path, error=error)) from error
        self._records = {name: info for info in records for _, found, name in [info.filename.partition("/")] if found}

    def has(self, name: str) -> bool:
        return name in self._records

    def byte_order(self) -> str:
        """``<`` or ``>``, of all numbers in it."""
        order = self.read("byteorder", 16) if self.has("byteorder") else b"little"
        if order not in (b"little", b"big"):
            raise DumpFormatError(tr("{path}: record byteorder: neither little nor big", path=self._path))
        return "<" if order == b"little" else ">"

    def read(self, name: str, most: int | None = None) -> bytes:
        """Read the bytes of one record, of which there may be ``most``."""
        info = self._records.get(name)
        if info is None:
            raise self._error(name, "missing")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise self._error(name, tr("compressed or encrypted, which torch.save never does"))
        if most is not None and info.file_size > most:
            raise self._error(
                name, tr("{file_size} bytes, of which {most} are accepted", file_size=info.file_size, most=most)
            )
        if info.file_size > self._length or info.header_offset < 0:
            raise self._error(
                name,
                tr("claims {file_size} bytes in a file of {length}", file_size=info.file_size, length=self._length),
            )
        self._file.seek(info.header_offset)
        header = self._file.read(30)
        if len(header) < 30 or not header.startswith(_ZIP_MAGIC):
            raise self._error(name, tr("its header is damaged"))
        self._file.seek(sum(struct.unpack_from("<HH", header, 26)), 1)
        data = self._file.read(info.file_size)
        if len(data) < info.file_size:
            raise self._error(
                name, tr("{count} of {file_size} bytes are there", count=len(data), file_size=info.file_size)
            )
        if info.CRC and zlib.crc32(data) != info.CRC:  # torch can be told to write no checksums: they are 0 then
            raise self._error(name, tr("damaged: its checksum does not fit"))
        return data

    def _error(self, name: str, what: str) -> DumpFormatError:
        return DumpFormatError(f"{self._path}: record {name[:200]!r}: {what}")


def view_of(tensor: TensorRecord, data: bytes, order: str) -> np.ndarray:
    """Return the tensor as a view of its storage's bytes, after every bound has been checked."""
    shape, strides = tensor.shape, tensor.strides
    if len(shape) != len(strides) or len(shape) > _MOST_DIMENSIONS or min(*shape, *strides, tensor.offset, 0) < 0:
        raise Refused(tr("its shape, strides and offset cannot be a tensor's"))
    itemsize, stored = _stored_dtype(tensor.dtype, order)
    held = len(data) // itemsize
    if 0 in shape:
        try:
            return _decode(np.empty(0, stored), tensor).reshape(shape)
        except (ValueError, OverflowError) as error:  # numpy bounds even empty arrays
            raise Refused(tr("its shape is impossible: {error}", error=error)) from error
    if math.prod(shape) * itemsize > max(len(data), LARGEST_EXPANDED):
        raise Refused(
            tr("its shape asks for more than {largest_expanded} GiB", largest_expanded=LARGEST_EXPANDED >> 30)
        )
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if tensor.offset + extent > held:
        raise Refused(
            tr("its elements reach to {offset}, the storage holds {held}", offset=tensor.offset + extent, held=held)
        )
    flat = _decode(np.frombuffer(data, stored, extent, tensor.offset * itemsize), tensor)
    steps = [stride * flat.itemsize if size > 1 else 0 for size, stride in zip(shape, strides, strict=True)]
    return np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False)


def _stored_dtype(dtype: str, order: str) -> tuple[int, np.dtype[Any]]:
    """Bytes of an element in the file and the numpy dtype that reads it."""
    if dtype == "complex32":
        return 4, np.dtype((order + "f2", (2,)))
    if width := narrow_width(dtype):
        return width, np.dtype(f"{order}u{width}")
    plain = np.dtype(f"{order}{np.dtype(dtype).str[1:]}")
    return plain.itemsize, plain


def _decode(flat: np.ndarray, tensor: TensorRecord) -> np.ndarray:
    """One-dimensional numbers as read → in the machine's byte order, in a dtype numpy has."""
    if tensor.dtype == "complex32":
        flat = flat.astype(np.float32).view(np.complex64).reshape(-1)
    elif narrow_width(tensor.dtype):
        flat = widen(flat, tensor.dtype)
    flat = flat.astype(flat.dtype.newbyteorder("="), copy=False)
    if tensor.conjugate:
        flat = np.conj(flat)
    if tensor.negative and flat.dtype != np.bool_:  # torch has no negative view of bool
        flat = np.negative(flat)
    return flat
