"""``.ckpt`` of MindSpore: a protobuf message, walked past its numbers.

::

    Checkpoint  {repeated Value value = 1}
    Value       {string tag = 1; TensorProto tensor = 2; MapTensorProto maptensor = 3}
    TensorProto {repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3}

A tensor beyond 512 MB is several values with one tag; with ``crc_check`` the text ``crc_num`` and ten bytes follow. The
protobuf library would hold the whole file in memory, and takes no message beyond 2 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from msprobe_ms.arrays.npy import read_array
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr
from msprobe_ms.weights.model import Checkpoint, Weight, clean

FORMAT = "MindSpore checkpoint"

#: An encrypted file begins with one of these, by cipher (MindSpore's crypto.cc: 0x7F3A5ED8 and the next).
_CIPHERS = tuple(bytes([first]) + b"\x5e\x3a\x7f" for first in (0xD8, 0xD9, 0xDA, 0xDB))
_CRC, _CRC_LENGTH = b"crc_num", 17
#: Longest name or dtype; most dimensions.
_LONGEST_TEXT, _MOST_DIMENSIONS = 4096, 64
_VARINT, _LENGTH, _EIGHT, _FOUR = 0, 2, 1, 5

_DTYPES = {"float8e4m3fn": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}


def looks_like(head: bytes) -> bool:
    return head[:1] == b"\x0a"


def is_encrypted(head: bytes) -> bool:
    return head.startswith(_CIPHERS)


class _Damaged(ValueError):
    """The message is none; the text says what and where."""


@dataclass(slots=True)
class _Value:
    tag: str = ""
    dtype: str = ""
    shape: list[int] = field(default_factory=list)
    parts: list[tuple[int, int]] = field(default_factory=list)
    is_map: bool = False


def read(path: Path, file: BinaryIO) -> Checkpoint:
    """Read the tensors of one file in their order. What comes behind a damaged place is lost, which ``problems`` say.

    :raises DumpFormatError: not one value can be read
    """
    found = Checkpoint(path, FORMAT)
    end = _end(file)
    last: _Value | None = None
    try:
        for value in _values(file, end):
            if last is not None and last.tag == value.tag and not value.is_map:
                last.parts += value.parts
                continue
            _add(found, path, last)
            last = value
    except _Damaged as error:
        if last is None:
            raise DumpFormatError(
                tr("{path}: not a checkpoint of MindSpore: {error}", path=path, error=error)
            ) from error
        found.problems.append(tr("{path}: damaged at {error}: nothing behind it was compared", path=path, error=error))
    _add(found, path, last)
    if last is not None and any(offset + size > end for offset, size in last.parts):
        found.problems.append(tr("{path}: cut off at byte {end}: nothing behind it was compared", path=path, end=end))
    return found


def _add(found: Checkpoint, path: Path, value: _Value | None) -> None:
    if value is None:
        return
    if value.is_map or value.dtype == "str" or not value.dtype:
        found.skip(tr("map parameters") if value.is_map else tr("texts"))
        return
    dtype = _DTYPES.get(value.dtype.lower(), value.dtype.lower())
    # A scalar has no dimensions, in some versions one of 0.
    shape = () if value.shape == [0] and any(size for _, size in value.parts) else tuple(value.shape)
    name = clean(value.tag)
    found.add(Weight(name, dtype, shape, partial(read_array, path, name, dtype, shape, value.parts)))


def _end(file: BinaryIO) -> int:
    """Where the message ends: before the checksum, if there is one."""
    end = file.seek(0, 2)
    if end > _CRC_LENGTH:
        file.seek(end - _CRC_LENGTH)
        if file.read(len(_CRC)) == _CRC:
            end -= _CRC_LENGTH
    file.seek(0)
    return end


def _values(file: BinaryIO, end: int) -> Iterator[_Value]:
    while file.tell() < end:
        start = file.tell()
        number, wire, value_end = _field(file, None)
        if number != 1 or wire != _LENGTH or value_end is None:
            raise _Damaged(f"byte {start}")
        value = _Value()
        for inner, inner_end in _fields(file, value_end):
            if inner == 1:
                value.tag = _text(file, inner_end)
            elif inner == 2:
                _read_tensor(file, inner_end, value)
            elif inner == 3:
                value.is_map = True
        yield value
        file.seek(value_end)


def _read_tensor(file: BinaryIO, end: int, value: _Value) -> None:
    for number, part_end in _fields(file, end, value.shape):
        start = file.tell()
        if number == 1:  # packed
            while file.tell() < part_end and len(value.shape) <= _MOST_DIMENSIONS:
                value.shape.append(_varint(file))
        elif number == 2:
            value.dtype = _text(file, part_end)
        elif number == 3:
            value.parts.append((start, part_end - start))
        if len(value.shape) > _MOST_DIMENSIONS:
            raise _Damaged(f"byte {start}")


def _fields(file: BinaryIO, end: int, dims: list[int] | None = None) -> Iterator[tuple[int, int]]:
    """Number and end of each length-delimited field up to ``end``, the file at its begin; field 1 that is a number is
    one of ``dims``."""
    while file.tell() < end:
        start = file.tell()
        number, _wire, part_end = _field(file, dims)
        if part_end is not None:
            # Numbers that are cut off cost their own tensor alone, which is told when it is read.
            if part_end > end:
                raise _Damaged(f"byte {start}")
            yield number, part_end
            file.seek(part_end)


def _field(file: BinaryIO, dims: list[int] | None) -> tuple[int, int, int | None]:
    start = file.tell()
    key = _varint(file)
    number, wire = key >> 3, key & 7
    if wire == _LENGTH:
        length = _varint(file)
        return number, wire, file.tell() + length
    if wire == _VARINT:
        content = _varint(file)
        if number == 1 and dims is not None:
            dims.append(content)
    elif wire in (_EIGHT, _FOUR):
        file.seek(8 if wire == _EIGHT else 4, 1)
    else:
        raise _Damaged(f"byte {start}")
    return number, wire, None


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise _Damaged(f"byte {file.tell()}")


def _text(file: BinaryIO, end: int) -> str:
    start = file.tell()
    if end - start > _LONGEST_TEXT:
        raise _Damaged(f"byte {start}")
    return file.read(end - start).decode("utf-8", "replace")
