"""What a server has received and not judged yet: each call a dump of its own, on the disk before it is acknowledged.

``{folder}/{client}/{number}/dump.json`` with its tensors beside it; what has another name is not whole. Numbers that
were judged are in the journal of the results: both together are what was received.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from msprobe_ms.arrays.stored import write_npy_header
from msprobe_ms.dump.reading.items import TENSOR_FOLDER
from msprobe_ms.remote.frames import Body, Source
from msprobe_ms.remote.messages import Call, Dropped, End, Hello, MessageError, from_client, text_of
from msprobe_ms.remote.numbers import Numbers
from msprobe_ms.support.files import DEFAULT, open_regular, replacing
from msprobe_ms.support.translation import tr

#: Keys of a kept dump.json beside those of the format: the call's name; why it is not judged, "" where it is.
NAME, REASON = "name", "not_received"
_HELLO, _END, _LARGEST = "hello", "end", 1 << 26
#: Clients that one server knows.
_MOST_CLIENTS = 10_000


class NoRoom(Exception):
    """The disk does not take what comes; the text says why."""


class Kept(NamedTuple):
    """A call that is to be judged: ``number`` of ``client``; ``folder`` holds its dump."""

    client: str
    number: int
    folder: Path


class Client:
    """A training as the server knows it. ``order``: the how-manieth of all; ``received``: the numbers that came."""

    def __init__(self, hello: Hello, order: int) -> None:
        self.hello, self.order = hello, order
        self.received = Numbers()
        self.end: End | None = None


class Inbox:
    """All that came from all clients. Calls of it do not overlap: they are made in one thread."""

    def __init__(self, folder: Path, judged: Iterable[tuple[str, int]], most: int) -> None:
        """Find what an earlier process has left. ``judged``: client and number of what has its row; ``most``: bytes
        that may wait to be judged. Raises OSError.
        """
        DEFAULT.make_folder(folder)
        self._folder, self._most = folder, most
        self.clients: dict[str, Client] = {}
        self._waiting: dict[tuple[str, int], Kept] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._bytes = 0
        self._changed = asyncio.Event()
        self._heard = time.monotonic()
        for place in sorted(folder.iterdir(), key=lambda each: each.name):
            self._find(place)
        for client, number in judged:
            if client in self.clients:
                self.clients[client].received.add(number)
                self.judged(client, number)

    def _find(self, place: Path) -> None:
        try:
            with open_regular(place / _HELLO) as file:
                content = json.loads(file.read(_LARGEST))
            hello = from_client(json.dumps(content["hello"]).encode())
        except (OSError, ValueError, KeyError, TypeError, MessageError):
            return
        if not isinstance(hello, Hello):
            return
        client = self.clients[hello.client] = Client(hello, int(content["order"]))
        with suppress(OSError, MessageError), open_regular(place / _END) as file:
            end = from_client(file.read(_LARGEST))
            client.end = end if isinstance(end, End) else None
        for folder in place.iterdir():
            if folder.name.isdecimal():
                client.received.add(int(folder.name))
                size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
                self._keep(Kept(hello.client, int(folder.name), folder), size)
            elif folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)

    # -- what comes ------------------------------------------------------------------------------------------------

    def welcome(self, hello: Hello) -> Client:
        """Know a client, from now on or again. Raises NoRoom, and MessageError: it is another than it was."""
        self._heard = time.monotonic()
        client = self.clients.get(hello.client)
        if client is None:
            if len(self.clients) >= _MOST_CLIENTS:
                raise MessageError(
                    tr("{most_clients} trainings are known, no more are taken", most_clients=_MOST_CLIENTS)
                )
            client = Client(hello, len(self.clients))
            content = {"order": client.order, "hello": hello.model_dump()}
            with _room():
                DEFAULT.make_folder(self._folder / hello.client)
                with replacing(self._folder / hello.client / _HELLO) as file:
                    file.write(json.dumps(content).encode())
            self.clients[hello.client] = client
        elif client.hello.rank != hello.rank:
            raise MessageError(
                tr(
                    "{client} was rank {rank} before, and is rank {rank2} now",
                    client=hello.client,
                    rank=client.hello.rank,
                    rank2=hello.rank,
                )
            )
        return client

    async def receive(self, client: Client, message: Call | Dropped, text: bytes, source: Source) -> None:
        """Keep what a client sent, the tensors that follow ``message`` included; what is there already is dropped.

        :raises MessageError: damaged on its way
        :raises NoRoom: the disk does not take it
        """
        self._heard = time.monotonic()
        size = message.size if isinstance(message, Call) else 0
        if message.number in client.received:
            if isinstance(message, Call):
                async for _ in (body := Body(text, source)).blocks(size):
                    pass
                await body.check()
            return
        await self._wait_for_room()
        place = self._folder / client.hello.client
        part, whole = place / f"{message.number}.part", place / str(message.number)
        try:
            with _room():
                shutil.rmtree(part, ignore_errors=True)
                DEFAULT.make_folder(part / TENSOR_FOLDER)
                (part / "dump.json").write_text(json.dumps(_dump(message)))
            if isinstance(message, Call):
                await _write_tensors(message, Body(text, source), part / TENSOR_FOLDER)
            with _room():
                part.rename(whole)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        client.received.add(message.number)
        self._keep(Kept(client.hello.client, message.number, whole), size + len(text))

    def silent(self) -> float:
        """Seconds since something came."""
        return time.monotonic() - self._heard

    def end(self, client: Client, end: End) -> None:
        """A client says that no more comes. Raises NoRoom."""
        self._heard = time.monotonic()
        with _room(), replacing(self._folder / client.hello.client / _END) as file:
            file.write(text_of(end))
        client.end = end
        self._changed.set()

    async def _wait_for_room(self) -> None:
        """Wait until something was judged, where more waits than may."""
        while self._bytes > self._most:
            self._changed.clear()
            await self._changed.wait()

    def _keep(self, kept: Kept, size: int) -> None:
        self._waiting[kept.client, kept.number] = kept
        self._sizes[kept.client, kept.number] = size
        self._bytes += size
        self._changed.set()

    # -- what goes -------------------------------------------------------------------------------------------------

    def waiting(self, most: int) -> list[Kept]:
        """Return calls that are to be judged, those that came first, ``most`` at most."""
        return [kept for kept, _ in zip(self._waiting.values(), range(most), strict=False)]

    def judged(self, client: str, number: int) -> None:
        """A call has its row: forget and delete it."""
        kept = self._waiting.pop((client, number), None)
        self._bytes -= self._sizes.pop((client, number), 0)
        if kept is not None:
            shutil.rmtree(kept.folder, ignore_errors=True)
        self._changed.set()

    async def changed(self, seconds: float) -> None:
        """Wait until something comes or goes, so long at most."""
        self._changed.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    def discard(self) -> None:
        """Delete all."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _dump(message: Call | Dropped) -> dict[str, Any]:
    """A dump of one call, as the pre-check reads it."""
    call = message if isinstance(message, Call) else None
    return {
        "task": "tensor",
        "level": "L1",
        "framework": call.framework if call else "",
        "dump_data_dir": None,
        NAME: message.name,
        REASON: message.reason if isinstance(message, Dropped) else "",
        "data": {} if call is None else {entry: _named(value) for entry, value in call.entries.items()},
    }


def _named(value: Any) -> Any:
    """A value of an entry with the names that its tensors' files have here: no name of the client's is used."""
    if isinstance(value, dict):
        found = {key: _named(member) for key, member in value.items()}
        if "data_name" in found:
            place = found["data_name"]
            found["data_name"] = f"{place}.npy" if isinstance(place, str) and place.isdecimal() else None
        return found
    return [_named(member) for member in value] if isinstance(value, list) else value


async def _write_tensors(call: Call, body: Body, folder: Path) -> None:
    for place, tensor in enumerate(call.tensors):
        with _room():
            file = DEFAULT.create(folder / f"{place}.npy")
        try:
            with _room():
                write_npy_header(file, tensor.dtype, tuple(tensor.shape))
            async for block in body.blocks(tensor.size):
                with _room():
                    file.write(block)
        finally:
            with _room():
                file.close()
    await body.check()


@contextmanager
def _room() -> Iterator[None]:
    """What the disk refuses is no mistake of the client's."""
    try:
        yield
    except OSError as error:
        raise NoRoom(error.strerror or str(error)) from error
