"""Frames: what is cut, damaged or none at all is told, and nothing is allocated for it."""

from __future__ import annotations

import asyncio
import io
import tracemalloc

import pytest

from msprobe_ms.remote.frames import BLOCK, Body, FileSource, head, read_text, with_tensors
from msprobe_ms.remote.messages import MessageError


def read(raw: bytes, sizes: tuple[int, ...] = ()) -> tuple[bytes | None, list[bytes]]:
    """The text of a frame and its tensors, checked."""

    async def run() -> tuple[bytes | None, list[bytes]]:
        source = FileSource(io.BytesIO(raw))
        text = await read_text(source)
        if text is None:
            return None, []
        body = Body(text, source)
        tensors = []
        for size in sizes:
            tensors.append(b"".join([block async for block in body.blocks(size)]))
        if sizes:
            await body.check()
        return text, tensors

    return asyncio.run(run())


def test_a_frame_comes_as_it_went() -> None:
    tensors = [b"x" * (2 * BLOCK + 5), b"", b"abc"]
    blocks = [bytes(block) for block in with_tensors(b'{"a": 1}', map(memoryview, tensors))]
    assert max(map(len, blocks)) == BLOCK
    assert read(b"".join(blocks), tuple(map(len, tensors))) == (b'{"a": 1}', tensors)
    assert read(b"") == (None, [])


def test_a_frame_that_is_cut_or_damaged_anywhere_is_told() -> None:
    whole = b"".join(bytes(block) for block in with_tensors(b'{"a": 1}', [memoryview(b"abcd")]))
    for length in range(1, len(whole)):
        with pytest.raises((asyncio.IncompleteReadError, MessageError)):
            read(whole[:length], (4,))
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        with pytest.raises((asyncio.IncompleteReadError, MessageError)):
            read(bytes(damaged), (4,))


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"MSP1\xff\xff\xff\xff",
        b"MSP1\x00\x00\x00\x00",
        b"\x10\x00\x00\x00\x00\x00\x00\x00",
    ],
)
def test_what_is_no_frame_is_refused_before_anything_is_allocated(raw: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(MessageError):
        read(raw)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(MessageError, match="accepted"):
        head(b" " * (4 << 20 | 1))
