"""Write a tensor as a file that ``torch.load`` reads, from its bytes and without torch.

The file is the zip archive that ``torch.save`` makes of one dense tensor (`torch_file` reads both), less what only says
which torch wrote it. ``torch.save`` takes 400 us for 256 KB, of which writing the bytes is 80.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from operator import mul

import numpy as np
from isal import isal_zlib

from msprobe_ms.arrays.bytes_writer import BytesWriter

#: The dtypes that files name by a class of storages.
STORAGES = {
    "float16": "HalfStorage", "float32": "FloatStorage", "float64": "DoubleStorage", "bfloat16": "BFloat16Storage",
    "int8": "CharStorage", "int16": "ShortStorage", "int32": "IntStorage", "int64": "LongStorage",
    "uint8": "ByteStorage", "bool": "BoolStorage", "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}  # fmt: skip

#: The most bytes of elements: lengths and places in an archive without extensions of the format have 32 bits.
_LONGEST = (1 << 32) - (1 << 20)

#: What the elements begin at a multiple of, as in files of torch.save, so that they can be mapped.
_ALIGNMENT = 64

#: A record's head, its line in the directory, the archive's end and what fills the room before the elements.
_LOCAL, _LISTED = struct.Struct("<4sHHHIIIIHH"), struct.Struct("<4sHHHHIIIIHHHHHII")
_END, _EXTRA = struct.Struct("<4sHHHHIIH"), struct.Struct("<2sH")
#: Where the first two have a record's CRC-32.
_LOCAL_CRC, _LISTED_CRC = 14, 16
#: The version of the format that is needed, and the first day that there is.
_VERSION, _DATE = 20, 0x210000


@lru_cache(maxsize=1024)
def torch_writer(dtype: str, shape: tuple[int, ...]) -> BytesWriter | None:
    """Return what writes a tensor of ``shape`` into a file from its elements, of ``dtype`` and in C order.

    None where the dtype is none of `STORAGES`, or the tensor larger than an archive has room for. A training has few
    different ones. The writer raises OSError.
    """
    if dtype not in STORAGES or (size := math.prod(shape) * _size_of(dtype)) > _LONGEST:
        return None
    head, tail = _around(dtype, shape, size)

    def around(data: memoryview | bytes) -> tuple[bytes, bytes]:
        crc = isal_zlib.crc32(data).to_bytes(4, "little")
        return crc.join(head), crc.join(tail)

    before, after = (sum(map(len, parts)) + 4 for parts in (head, tail))  # of which four are the CRC-32
    return BytesWriter(before, after, around)


def _size_of(dtype: str) -> int:
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def _around(dtype: str, shape: tuple[int, ...], size: int) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """What stands before the elements and what behind, each in two parts between which their CRC-32 is."""
    records = (
        (b"archive/data.pkl", _pickled(STORAGES[dtype], shape)),
        (b"archive/byteorder", sys.byteorder.encode()),
        (b"archive/version", b"3\n"),
    )
    head = directory = b""
    for name, content in records:
        crc, length = isal_zlib.crc32(content), len(content)
        directory += _listed(name, length, crc, len(head))
        head += _local(name, length, crc) + content
    name, place = b"archive/data/0", len(head)
    room = -(place + _LOCAL.size + len(name) + _EXTRA.size) % _ALIGNMENT
    head += _local(name, size, 0, _EXTRA.pack(b"FB", room) + b"Z" * room)
    before, listed = place + _LOCAL_CRC, len(directory) + _LISTED_CRC
    directory += _listed(name, size, 0, place)
    count = len(records) + 1
    tail = directory + _END.pack(b"PK\5\6", 0, 0, count, count, len(directory), len(head) + size, 0)
    return (head[:before], head[before + 4 :]), (tail[:listed], tail[listed + 4 :])


def _local(name: bytes, size: int, crc: int, extra: bytes = b"") -> bytes:
    """The head of a record, which is not compressed."""
    return _LOCAL.pack(b"PK\3\4", _VERSION, 0, 0, _DATE, crc, size, size, len(name), len(extra)) + name + extra


def _listed(name: bytes, size: int, crc: int, place: int) -> bytes:
    """A record's line in the directory."""
    counts = len(name), 0, 0, 0, 0, 0, place
    return _LISTED.pack(b"PK\1\2", _VERSION, _VERSION, 0, 0, _DATE, crc, size, size, *counts) + name


def _pickled(storage: str, shape: tuple[int, ...]) -> bytes:
    """The pickle that describes the tensor, of protocol 2, as torch.save has it: what rebuilds it, and with what."""
    strides = tuple(accumulate((1, *(max(size, 1) for size in shape[:0:-1])), mul))[::-1] if shape else ()
    held = _text("storage") + _named("torch", storage) + _text("0") + _text("cpu") + _integer(math.prod(shape))
    hooks = _named("collections", "OrderedDict") + b")R"
    arguments = b"(" + held + b"tQ" + _integer(0) + _integers(shape) + _integers(strides) + b"\x89" + hooks
    return b"\x80\2" + _named("torch._utils", "_rebuild_tensor_v2") + b"(" + arguments + b"tR."


def _named(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _integers(numbers: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(_integer, numbers)) + b"t"


def _integer(number: int) -> bytes:
    if number < 1 << 31:
        return b"J" + struct.pack("<i", number)
    return b"\x8a\x08" + struct.pack("<q", number)
