"""Recorded steps that are sent, and what a host that listens needs, for tests of calls on their way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.folder_server import FolderServer
from msprobe_ms.remote.inbox import Inbox
from msprobe_ms.remote.messages import Ended, Hello
from msprobe_ms.remote.receiver import Receiver
from msprobe_ms.remote.spool import Spool
from msprobe_ms.remote.stream_server import StreamServer

MIB = 1 << 20


def leaf(name: str, array: np.ndarray, dtype: str | None = None) -> dict[str, Any]:
    """What dump.json says of a tensor whose file is ``name``."""
    dtype = dtype or f"torch.{array.dtype.name}"
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(array.shape), "Max": None, "data_name": name}


def record_step(spool: Spool, number: int, calls: int = 3, step: str | None = None) -> None:
    """Hand over a step with so many calls of relu, of four elements each; the k-th takes in 10 * number + k."""
    dump = spool.folder / f"step{number}" / "proc1"
    (dump / "dump_tensor_data").mkdir(parents=True)
    data = {}
    for call in range(calls):
        entry = f"Functional.relu.{call}.forward"
        array = np.full((2, 2), 10 * number + call, np.float32)
        for place in ("input.0", "output.0"):
            np.save(dump / "dump_tensor_data" / f"{entry}.{place}.npy", array)
        data[entry] = {
            "input_args": [leaf(f"{entry}.input.0.npy", array)],
            "input_kwargs": {},
            "output": [leaf(f"{entry}.output.0.npy", array)],
        }
    content = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (dump / "dump.json").write_text(json.dumps(content))
    spool.hand_over(dump, number, step or f"step{number}")


def hello(client: str = "rank0-a", rank: int = 0) -> Hello:
    return Hello(client=client, rank=rank)


class Host:
    """What listens, without what judges: calls that come stay in the inbox."""

    def __init__(self, folder: Path, *, ranks: tuple[int, ...] = (), most: int = 64 * MIB) -> None:
        self.inbox = Inbox(folder, (), most)
        self._receiver = lambda: Receiver(self.inbox, ranks, lambda client: Ended(judged=len(client.received)))
        self._servers: list[Any] = []

    async def listen(self, address: Address) -> Address:
        """Listen at an address; port 0 stands for a free one. Returns where."""
        kind: Callable[..., Any] = FolderServer if address.folder else StreamServer
        server = kind(address, self._receiver)
        await server.start()
        self._servers.append(server)
        return Address("", address.host, server.port, address.tls) if not address.folder else address

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers))

    @property
    def names(self) -> list[str]:
        """The names of the calls that came, in the order in which they did."""
        return [dump["name"] for dump in self.dumps()]

    def dumps(self) -> Iterator[dict[str, Any]]:
        for kept in self.inbox.waiting(10_000):
            yield json.loads((kept.folder / "dump.json").read_text())


async def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait until a condition holds; fail where it does not in time."""
    for _ in range(int(seconds * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")
