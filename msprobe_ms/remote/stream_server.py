"""Takes calls over TCP, with TLS or within this machine: one connection a client, one answer a message."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.frames import BLOCK, read_text
from msprobe_ms.remote.inbox import NoRoom
from msprobe_ms.remote.messages import MessageError, Refused, Welcome
from msprobe_ms.remote.receiver import Receiver, Refusal
from msprobe_ms.remote.streams import keep_alive, send
from msprobe_ms.remote.tls import server_context
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Seconds in which who connects has shown its certificate and said hello; connections at a time.
_PROMPT, _MOST_CONNECTIONS = 20.0, 4096
#: Refusals that are told of each kind.
_MOST_TOLD = 3


class StreamServer:
    """Listens at an address; each connection has a `Receiver`."""

    def __init__(self, address: Address, receiver: Callable[[], Receiver]) -> None:
        self._address, self._new_receiver = address, receiver
        self._server: asyncio.Server | None = None
        #: Client → the connection that it has now; every task of a connection.
        self._current: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: Counter[str] = Counter()

    async def start(self) -> None:
        """Listen. Raises UsageError: the address or the certificates cannot be used."""
        context = server_context(self._address.tls)
        handshake = {} if context is None else {"ssl_handshake_timeout": _PROMPT}
        try:
            self._server = await asyncio.start_server(
                self._connected, self._address.host, self._address.port, ssl=context, limit=BLOCK, **handshake
            )
        except OSError as error:
            raise UsageError(
                tr(
                    "{address}: cannot be listened at: {strerror}",
                    address=self._address,
                    strerror=error.strerror or error,
                )
            ) from error

    async def stop(self) -> None:
        """Listen no more, and close what is open."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        """The port that it listens at."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def connected(self) -> int:
        """Clients that are connected."""
        return len(self._current)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        keep_alive(writer.get_extra_info("socket"))
        receiver = self._new_receiver()
        try:
            if len(self._tasks) > _MOST_CONNECTIONS:
                raise Refusal(tr("too many connections"), later=True)
            await self._serve(receiver, reader, writer, task)
        except Refusal as refusal:
            await self._refuse(writer, refusal.message)
        except MessageError as error:
            await self._refuse(writer, Refused(reason=f"{error}"[:2000], later=True))
        except NoRoom as error:
            await self._refuse(
                writer, Refused(reason=tr("the disk of the server takes nothing: {error}", error=error), later=True)
            )
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ssl.SSLError):
            pass  # it is gone, and comes again if it wants to
        except asyncio.CancelledError:
            pass  # the server stops, or the client has another connection: asyncio would print a traceback
        finally:
            self._tasks.discard(task)
            client = receiver.client and receiver.client.hello.client
            if client and self._current.get(client) is task:
                del self._current[client]
            writer.close()

    async def _serve(
        self,
        receiver: Receiver,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        task: asyncio.Task[None],
    ) -> None:
        text = await asyncio.wait_for(read_text(reader), _PROMPT)
        if text is None:
            return
        client = receiver.greet(text)
        await self._replace(client.hello.client, task)
        # What came over the connection before is known only now.
        await send(writer, Welcome(received=client.received.all_up_to))
        while (text := await read_text(reader)) is not None:
            await send(writer, await receiver.take(text, reader))

    async def _replace(self, client: str, task: asyncio.Task[None]) -> None:
        """End the connection that a client had before; it may not know yet that it is broken."""
        before = self._current.get(client)
        self._current[client] = task
        if before is not None:
            before.cancel()
            await asyncio.gather(before, return_exceptions=True)

    async def _refuse(self, writer: asyncio.StreamWriter, message: Refused) -> None:
        kind = message.reason.partition(":")[0]
        self._told[kind] += 1
        if self._told[kind] <= _MOST_TOLD:
            peer = writer.get_extra_info("peername")
            logger.warning("refused %s: %s", peer[0] if peer else "a connection", message.reason)
        with suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(send(writer, message), _PROMPT)
