"""Dump files as Ascend's devices write them, built field by field from CANN's ``dump_data.proto``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: Role → the numbers of its fields: of the message in DumpData, then size and original shape in it.
_NUMBERS = {"input": (4, 5, 6), "output": (3, 6, 7), "l1buffer": (5, 3, 0), "space": (8, 3, 0)}


class Tensor(NamedTuple):
    """``data_type`` and ``format`` as the schema numbers them."""

    role: str
    content: bytes
    data_type: int = 1
    format: int = 2
    shape: Sequence[int] = ()
    original: Sequence[int] = ()


def varint(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape(lengths: Sequence[int]) -> bytes:
    return field(1, b"".join(map(varint, lengths)))


def header(tensors: Sequence[Tensor]) -> bytes:
    message = field(1, b"2.0") + field(2, 1_700_000_000_000_000)
    for tensor in tensors:
        number, size, original = _NUMBERS[tensor.role]
        told = field(size, len(tensor.content))
        if original:
            told += field(1, tensor.data_type) + field(2, tensor.format) + field(3, shape(tensor.shape))
            told += field(original, shape(tensor.original)) if tensor.original else b""
        message += field(number, told)
    return message + field(6, b"Add")


def device_file(*tensors: Tensor) -> bytes:
    """The file of these tensors: their bytes follow by role, inputs first."""
    message = header(tensors)
    parts = [tensor.content for role in _NUMBERS for tensor in tensors if tensor.role == role]
    return len(message).to_bytes(8, "little") + message + b"".join(parts)


def of(role: str, array: np.ndarray, data_type: int, layout: int = 2, original: Sequence[int] = ()) -> Tensor:
    return Tensor(role, array.tobytes(), data_type, layout, array.shape, original)
