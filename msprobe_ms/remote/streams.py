"""What both ends of a connection do alike."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

from msprobe_ms.remote.frames import head
from msprobe_ms.remote.messages import Call, Dropped, End, Ended, Hello, Received, Refused, Welcome, text_of

#: Seconds of silence after which the other machine is asked whether it is there, from one question to the next, and how
#: many may have no answer.
_IDLE, _BETWEEN, _QUESTIONS = 30, 10, 3


async def send(
    writer: asyncio.StreamWriter, message: Hello | Call | Dropped | End | Welcome | Received | Refused | Ended
) -> None:
    """Write a message without tensors."""
    writer.write(head(text_of(message)))
    await writer.drain()


def keep_alive(connection: Any) -> None:
    """Have the system notice when the other machine is gone without a word."""
    with suppress(OSError, AttributeError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _BETWEEN)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _QUESTIONS)
