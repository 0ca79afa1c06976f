"""How messages lie in a stream or a file: their length, their JSON, the bytes of their tensors, a checksum.

A frame is ``b"MSP1" | length (4 bytes, big-endian) | JSON``. Behind that of a call come the bytes of its tensors, one
after the other, and the CRC-32 (4 bytes) of JSON and tensors. Lengths are checked before anything is allocated, and
bytes of tensors pass in blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import BinaryIO, Protocol

from isal import isal_zlib

from msprobe_ms.remote.messages import LONGEST, MessageError
from msprobe_ms.support.translation import tr

MAGIC = b"MSP1"
#: Bytes of a tensor that are held at a time.
BLOCK = 1 << 20


class Source(Protocol):
    """What bytes come from: a stream, or a file."""

    async def readexactly(self, n: int) -> bytes:
        """Read ``n`` bytes. Raises asyncio.IncompleteReadError where there are fewer."""


class FileSource:
    """A file as a source."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    async def readexactly(self, n: int) -> bytes:
        found = self._file.read(n)
        if len(found) < n:
            raise asyncio.IncompleteReadError(found, n)
        return found


def head(text: bytes) -> bytes:
    """Return the frame of a message without tensors. Raises MessageError: it is too long."""
    if len(text) > LONGEST:
        raise MessageError(
            tr("{count} bytes beside its tensors; accepted are {longest}", count=len(text), longest=LONGEST)
        )
    return MAGIC + len(text).to_bytes(4, "big") + text


def with_tensors(text: bytes, tensors: Iterable[memoryview]) -> Iterator[bytes | memoryview]:
    """Yield the frame of a call in blocks. Raises MessageError: what stands beside its tensors is too long."""
    yield head(text)
    checksum = isal_zlib.crc32(text)
    for tensor in tensors:
        for start in range(0, len(tensor), BLOCK):
            block = tensor[start : start + BLOCK]
            checksum = isal_zlib.crc32(block, checksum)
            yield block
    yield checksum.to_bytes(4, "big")


async def read_text(source: Source) -> bytes | None:
    """Read the JSON of the frame that comes next; None where the source is at its end.

    :raises MessageError: it is no frame, or longer than accepted
    :raises asyncio.IncompleteReadError: it is cut
    """
    try:
        start = await source.readexactly(8)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    length = int.from_bytes(start[4:], "big")
    if start[:4] != MAGIC:
        raise MessageError(tr("does not begin as a message of msprobe_ms does"))
    if not 2 <= length <= LONGEST:
        raise MessageError(tr("a message of {length} bytes; accepted are {longest}", length=length, longest=LONGEST))
    return await source.readexactly(length)


class Body:
    """The bytes of tensors behind a call's JSON."""

    def __init__(self, text: bytes, source: Source) -> None:
        self._source = source
        self._checksum = isal_zlib.crc32(text)

    async def blocks(self, size: int) -> AsyncIterator[bytes]:
        """Yield the next ``size`` bytes in blocks."""
        while size:
            block = await self._source.readexactly(min(size, BLOCK))
            self._checksum = isal_zlib.crc32(block, self._checksum)
            size -= len(block)
            yield block

    async def check(self) -> None:
        """Compare the checksum, when all bytes were read. Raises MessageError."""
        if int.from_bytes(await self._source.readexactly(4), "big") != self._checksum:
            raise MessageError(tr("damaged on its way: the checksum does not fit"))
