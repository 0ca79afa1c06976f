"""How a client's messages travel: over a connection, or by files of a shared folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.folder_layout import END, HELLO, ITEM, items, put
from msprobe_ms.remote.frames import BLOCK, head, read_text
from msprobe_ms.remote.messages import End, Ended, Hello, MessageError, Received, Refused, Welcome, from_server, text_of
from msprobe_ms.remote.streams import keep_alive, send
from msprobe_ms.remote.tls import client_context
from msprobe_ms.support.translation import tr

#: Seconds for a connection and for its first answer; bytes of one client that may lie in a shared folder.
_PROMPT, MOST_IN_FOLDER = 20.0, 4 << 30
_PAUSE = 0.2
#: Bytes that are written at once.
_TOGETHER = 1 << 16

Acknowledge = Callable[[int], None]


class Closed(Exception):
    """The server closed the connection; the text says why. ``later``: it may be otherwise after a while."""

    def __init__(self, why: str, *, later: bool = True) -> None:
        super().__init__(why)
        self.later = later


class Link(Protocol):
    """A way to the server; what breaks raises OSError, asyncio.IncompleteReadError, MessageError or Closed."""

    async def open(self, hello: Hello) -> int:
        """Connect; up to which number all is there already."""

    async def send(self, number: int, blocks: Iterator[bytes | memoryview]) -> None:
        """Send a call."""

    async def end(self, message: End) -> Ended | None:
        """Say that no more comes, once all is acknowledged; what the server says, where it does."""

    async def close(self) -> None:
        """Let go of it."""


def link_to(address: Address, acknowledge: Acknowledge) -> Link:
    """Return the way to an address. ``acknowledge`` is called with the number up to which the server has all."""
    return FolderLink(address, acknowledge) if address.folder else StreamLink(address, acknowledge)


class StreamLink:
    """A TCP connection. Answers are read while calls are written, so that neither side waits for the other."""

    def __init__(self, address: Address, acknowledge: Acknowledge) -> None:
        self._address, self._acknowledge = address, acknowledge
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._answers: asyncio.Task[Ended] | None = None

    async def open(self, hello: Hello) -> int:
        context = client_context(self._address.tls)
        name = None if context is None else self._address.host
        opening = asyncio.open_connection(
            self._address.host, self._address.port, ssl=context, server_hostname=name, limit=BLOCK
        )
        reader, writer = self._streams = await asyncio.wait_for(opening, _PROMPT)
        keep_alive(writer.get_extra_info("socket"))
        await send(writer, hello)
        welcome = await asyncio.wait_for(_answer(reader), _PROMPT)
        if not isinstance(welcome, Welcome):
            raise MessageError(tr("answers {kind} to hello", kind=welcome.kind))
        self._answers = asyncio.create_task(self._read(reader))
        return welcome.received

    async def send(self, number: int, blocks: Iterator[bytes | memoryview]) -> None:
        assert self._streams is not None
        writer, gathered = self._streams[1], bytearray()
        for block in blocks:
            gathered += block  # small ones go together
            if len(gathered) >= _TOGETHER:
                writer.write(gathered)
                gathered = bytearray()
                await self._drained()
        writer.write(gathered)
        await self._check()
        if writer.transport.get_write_buffer_size() > BLOCK:
            await self._drained()

    async def _drained(self) -> None:
        """Wait until the connection takes more, or the server says why it does not."""
        assert self._streams is not None and self._answers is not None
        draining = asyncio.ensure_future(self._streams[1].drain())
        await asyncio.wait({draining, self._answers}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            draining.cancel()
        await self._check()
        await draining

    async def _check(self) -> None:
        """Raise what ended the answers."""
        if self._answers is not None and self._answers.done():
            self._answers.result()

    async def end(self, message: End) -> Ended | None:
        assert self._streams is not None and self._answers is not None
        await send(self._streams[1], message)
        return await self._answers

    async def close(self) -> None:
        if self._answers is not None:
            self._answers.cancel()
            await asyncio.gather(self._answers, return_exceptions=True)
        if self._streams is not None:
            self._streams[1].close()
            with suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(self._streams[1].wait_closed(), 1)

    async def _read(self, reader: asyncio.StreamReader) -> Ended:
        while True:
            answer = await _answer(reader)
            if isinstance(answer, Ended):
                return answer
            if isinstance(answer, Received):
                self._acknowledge(answer.number)


async def _answer(reader: asyncio.StreamReader) -> Welcome | Received | Ended:
    text = await read_text(reader)
    if text is None:
        raise Closed(tr("closed the connection"))
    answer = from_server(text)
    if isinstance(answer, Refused):
        raise Closed(f"refuses: {answer.reason}", later=answer.later)
    return answer


class FolderLink:
    """A folder that both sides reach. What is written there whole is as good as received."""

    def __init__(self, address: Address, acknowledge: Acknowledge) -> None:
        self._root, self._acknowledge = Path(address.folder), acknowledge
        self._folder = self._root
        #: Calls until the folder is looked at again.
        self._unlooked = 0

    async def open(self, hello: Hello) -> int:
        self._folder = self._root / hello.client
        self._folder.mkdir(mode=0o770, exist_ok=True)
        if not (self._folder / HELLO).exists():
            put(self._folder, HELLO, [head(text_of(hello))])
        return 0

    async def send(self, number: int, blocks: Iterator[bytes | memoryview]) -> None:
        await self._wait_for_room()
        put(self._folder, f"{number:08}{ITEM}", blocks)
        self._acknowledge(number)

    async def _wait_for_room(self) -> None:
        """Wait while more lies there than may; looked at now and then, as it may be another machine's disk."""
        if self._unlooked:
            self._unlooked -= 1
            return
        while (size := self._size()) > MOST_IN_FOLDER:
            await asyncio.sleep(_PAUSE)
        self._unlooked = 0 if size > MOST_IN_FOLDER >> 1 else 100

    def _size(self) -> int:
        size = 0
        for _, path in items(self._folder):
            with suppress(OSError):  # the server has taken it meanwhile
                size += path.stat().st_size
        return size

    async def end(self, message: End) -> Ended | None:
        put(self._folder, END, [head(text_of(message))])
        return None

    async def close(self) -> None:
        return None
