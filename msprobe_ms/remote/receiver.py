"""The server's side of one client's messages, however they travel."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msprobe_ms.remote.frames import Source
from msprobe_ms.remote.inbox import Client, Inbox
from msprobe_ms.remote.messages import (
    PROTOCOL,
    Call,
    Dropped,
    End,
    Ended,
    Hello,
    MessageError,
    Received,
    Refused,
    from_client,
)
from msprobe_ms.support.translation import tr, tr_list

Answer = Received | Ended


class Refusal(Exception):
    """A client that is not taken; ``message`` tells it why."""

    def __init__(self, reason: str, *, later: bool = False) -> None:
        super().__init__(reason)
        self.message = Refused(reason=reason[:2000], later=later)


class Receiver:
    """Takes the messages of one client in the order in which they come, and gives the answers."""

    def __init__(self, inbox: Inbox, ranks: Collection[int], ended: Callable[[Client], Ended]) -> None:
        """``ranks``: those that are taken, all where there are none. ``ended``: what a client is told at its end."""
        self._inbox, self._ranks, self._ended = inbox, ranks, ended
        self.client: Client | None = None

    def greet(self, text: bytes) -> Client:
        """Take the first message; who it is. Raises Refusal, MessageError and NoRoom."""
        hello = from_client(text)
        if not isinstance(hello, Hello):
            raise MessageError(tr("says no hello"))
        if hello.protocol != PROTOCOL:
            raise Refusal(
                tr(
                    "speaks version {protocol} of the protocol, here is version {protocol2}",
                    protocol=hello.protocol,
                    protocol2=PROTOCOL,
                )
            )
        if self._ranks and hello.rank not in self._ranks:
            taken = tr_list(map(str, sorted(self._ranks)[:20]))
            raise Refusal(
                tr("rank {rank} is none of those that are checked (rank_list): {taken}", rank=hello.rank, taken=taken)
            )
        self.client = self._inbox.welcome(hello)
        return self.client

    async def take(self, text: bytes, source: Source) -> Answer:
        """Take a further message; the bytes of its tensors come next from ``source``. Raises MessageError, NoRoom."""
        client = self.client
        assert client is not None
        message = from_client(text)
        if isinstance(message, (Call, Dropped)):
            await self._inbox.receive(client, message, text, source)
            return Received(number=client.received.all_up_to)
        if isinstance(message, End):
            return self.end(message)
        raise MessageError(tr("says hello twice"))

    def end(self, message: End) -> Ended:
        """No more comes. Raises NoRoom."""
        assert self.client is not None
        self._inbox.end(self.client, message)
        return self._ended(self.client)
