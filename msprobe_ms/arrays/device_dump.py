"""Dump files of Ascend's devices: a length, a header in the wire format of protobuf, then the tensors' bytes.

The header is message ``DumpData`` of CANN's published ``dump_data.proto``. Behind it lie the bytes of all inputs, all
outputs, all buffers and all workspaces, in the header's order and without gaps. Nothing in a file is trusted: counts,
lengths and nesting have limits, and what a header says is held against the size of the file before it is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from msprobe_ms.arrays.dtypes import widen
from msprobe_ms.arrays.npy import check_regular
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr, tr_list

Shape = tuple[int, ...]

#: ``OutputDataType`` of the schema by the dtypes that are read; those widened to float32 are stored as codes.
DTYPES = {
    1: "float32", 2: "float16", 3: "int8", 4: "uint8", 5: "int16", 6: "uint16", 7: "int32", 8: "int64", 9: "uint32",
    10: "uint64", 11: "bool", 12: "float64", 16: "complex64", 17: "complex128", 27: "bfloat16", 34: "float8_e5m2",
    35: "float8_e4m3fn",
}  # fmt: skip
_CODES = {"bfloat16": "<u2", "float8_e5m2": "u1", "float8_e4m3fn": "u1", "bool": "u1"}

#: ``OutputFormat`` of the schema by the layouts that are known.
FORMATS = {
    0: "NCHW", 1: "NHWC", 2: "ND", 3: "NC1HWC0", 4: "FRACTAL_Z", 14: "CHWN", 16: "HWCN", 27: "NDHWC", 29: "FRACTAL_NZ",
    30: "NCDHW", 31: "DHWCN", 32: "NDC1HWC0",
}  # fmt: skip

_LONGEST_HEADER = 1 << 20
_MOST_TENSORS = 4096
_MOST_AXES = 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class StoredTensor:
    """One tensor's place in the file. ``role`` is input, output, l1buffer or space; the last two are bytes alone.

    ``data_type`` and ``format`` are the schema's numbers; ``original`` is the shape before blocks were cut.
    """

    role: str
    index: int
    offset: int
    size: int
    data_type: int = 0
    format: int = 0
    shape: Shape = ()
    original: Shape | None = None

    @property
    def name(self) -> str:
        return f"{self.role}.{self.index}"

    @property
    def is_typed(self) -> bool:
        return self.role in ("input", "output")

    @property
    def layout(self) -> str:
        return FORMATS.get(self.format, f"format {self.format}")


#: Role → its field in DumpData; in the order in which the bytes follow.
_ROLES = {"input": 4, "output": 3, "l1buffer": 5, "space": 8}
#: Role → fields of its message: data, size, original shape.
_FIELDS = {"input": (4, 5, 6), "output": (5, 6, 7), "l1buffer": (2, 3, None), "space": (2, 3, None)}


def read_tensors(path: Path) -> list[StoredTensor]:
    """Read what a dump file holds and where, in the order of the bytes.

    :raises DumpFormatError: it is missing, no dump file, or cut off
    """
    check_regular(path)
    try:
        with open(path, "rb") as file:
            return _read_tensors(file)
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    except ValueError as error:
        raise DumpFormatError(
            tr("{path}: no dump file of an Ascend device: {error}", path=path, error=error)
        ) from error


def read_bytes(path: Path, tensor: StoredTensor) -> bytes:
    """Read the bytes of one tensor. Raises DumpFormatError: they are not there."""
    try:
        with open(path, "rb") as file:
            file.seek(tensor.offset)
            content = file.read(tensor.size)
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    if len(content) != tensor.size:
        raise DumpFormatError(tr("{path}: {name} is cut off", path=path, name=tensor.name))
    return content


def read_array(path: Path, tensor: StoredTensor) -> tuple[np.ndarray, str]:
    """Read one tensor as it is stored, bfloat16 and float8 as float32, and the name of its dtype.

    :raises DumpFormatError: its dtype is not read, or its shape contradicts its size
    """
    dtype = DTYPES.get(tensor.data_type)
    if dtype is None:
        accepted = tr_list(f"{number} {name}" for number, name in DTYPES.items())
        raise DumpFormatError(
            tr(
                "{path}: {name} has data type {data_type}; read are {accepted}",
                path=path,
                name=tensor.name,
                data_type=tensor.data_type,
                accepted=accepted,
            )
        )
    stored = np.dtype(_CODES.get(dtype, dtype)).newbyteorder("<")
    if prod(tensor.shape) * stored.itemsize != tensor.size:
        raise DumpFormatError(
            tr(
                "{path}: {name} is {dtype} {shape} in its header, but has {size} bytes",
                path=path,
                name=tensor.name,
                dtype=dtype,
                shape=tensor.shape,
                size=tensor.size,
            )
        )
    try:
        codes = np.frombuffer(read_bytes(path, tensor), stored).reshape(tensor.shape)
    except ValueError as error:  # no elements, of lengths that no array has
        raise DumpFormatError(tr("{path}: {name}: {error}", path=path, name=tensor.name, error=error)) from error
    if dtype == "bool":
        return codes != 0, dtype
    return (widen(codes, dtype) if dtype in _CODES else codes), dtype


def _read_tensors(file: BinaryIO) -> list[StoredTensor]:
    total = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(total - 8, _LONGEST_HEADER):
        raise ValueError(
            tr(
                "its first 8 bytes say that its header has {length} bytes, of {total} in the file",
                length=length,
                total=total,
            )
        )
    messages: dict[str, list[bytes]] = {role: [] for role in _ROLES}
    by_field = {field: role for role, field in _ROLES.items()}
    for field, value in _fields(file.read(length)):
        if (role := by_field.get(field)) is not None:
            messages[role].append(_message(value))
    if sum(map(len, messages.values())) > _MOST_TENSORS:
        raise ValueError(tr("more than {most_tensors} tensors", most_tensors=_MOST_TENSORS))
    tensors, offset = [], 8 + length
    for role, found in messages.items():
        for index, message in enumerate(found):
            tensor = _tensor(message, role, index, offset)
            offset += tensor.size
            if offset > total:
                raise ValueError(
                    tr(
                        "{name} ends at byte {offset}, the file at {total}",
                        name=tensor.name,
                        offset=offset,
                        total=total,
                    )
                )
            tensors.append(tensor)
    return tensors


def _tensor(message: bytes, role: str, index: int, offset: int) -> StoredTensor:
    data_field, size_field, original_field = _FIELDS[role]
    numbers: dict[int, int] = {}
    shapes: dict[int, Shape] = {}
    for field, value in _fields(message):
        if field == data_field and value:
            raise ValueError(tr("{role}.{index} lies inside the header, which is not read", role=role, index=index))
        if field == size_field or (original_field and field in (1, 2)):
            numbers[field] = _number(value)
        elif original_field and field in (3, original_field):
            shapes[field] = _shape(_message(value))
    return StoredTensor(
        role, index, offset, numbers.get(size_field, 0),
        numbers.get(1, 0) if original_field else 0, numbers.get(2, 0) if original_field else 0,
        shapes.get(3, ()), shapes.get(original_field or 0) or None,
    )  # fmt: skip


def _shape(message: bytes) -> Shape:
    dims: list[int] = []
    for field, value in _fields(message):
        if field == 1:
            dims += [value] if isinstance(value, int) else islice(_varints(value), _MOST_AXES + 1)
        if len(dims) > _MOST_AXES:
            raise ValueError(tr("a shape of more than {most_axes} axes", most_axes=_MOST_AXES))
    return tuple(dims)


def _varints(content: bytes) -> Iterator[int]:
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        yield value


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of every field of a message; a varint as a number, all else as its bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(content, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(tr("wire type {kind} in its header", kind=kind))
        if size > len(content) - at:
            raise ValueError(tr("a field of its header ends behind it"))
        yield key >> 3, content[at : at + size]
        at += size


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(content[at : at + 10]):
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + place + 1
    raise ValueError(tr("a number of its header does not end"))


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError(tr("a field of its header is no number"))
    return value


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError(tr("a field of its header is no message"))
    return value
