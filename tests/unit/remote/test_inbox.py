"""What a host keeps: all that it acknowledged, whatever becomes of it."""

from __future__ import annotations

import asyncio
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from remote_calls import MIB, hello, until

from msprobe_ms.accuracy.calls import RecordedTensor, read_calls
from msprobe_ms.remote.frames import FileSource, read_text, with_tensors
from msprobe_ms.remote.inbox import Client, Inbox, NoRoom
from msprobe_ms.remote.messages import Call, Dropped, End, MessageError, from_client, text_of

ENTRY = "Functional.relu.0.forward"


def call(number: int, value: float = 1.0) -> bytes:
    """The frame of a call."""
    array = np.full((2, 3), value, np.float32)
    leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "data_name": "0"}
    message = Call.model_validate(
        {"number": number, "name": f"step0.call{number}", "framework": "pytorch",
         "entries": {ENTRY: {"input_args": [leaf], "output": [{**leaf, "data_name": "../../x.npy"}]}},
         "tensors": [{"dtype": "float32", "shape": [2, 3]}]}
    )  # fmt: skip
    return b"".join(map(bytes, with_tensors(text_of(message), [memoryview(array.tobytes())])))


async def take(inbox: Inbox, client: Client, raw: bytes) -> None:
    source = FileSource(io.BytesIO(raw))
    text = await read_text(source)
    assert text is not None
    message = from_client(text)
    assert isinstance(message, (Call, Dropped))
    await inbox.receive(client, message, text, source)


def numbers(inbox: Inbox) -> list[int]:
    return [kept.number for kept in inbox.waiting(100)]


def test_what_came_is_there_after_the_host_was_killed(tmp_path: Path) -> None:
    async def run() -> None:
        inbox = Inbox(tmp_path / "in", (), MIB)
        client = inbox.welcome(hello())
        for number in (2, 1, 2, 4):
            await take(inbox, client, call(number))
        assert client.received.all_up_to == 2 and numbers(inbox) == [2, 1, 4]
        cut = call(3)
        with pytest.raises(asyncio.IncompleteReadError):
            await take(inbox, client, cut[:-1])
        with pytest.raises(MessageError, match="damaged"):
            await take(inbox, client, cut[:-1] + b"x")
        shutil.copytree(tmp_path / "in" / "rank0-a" / "4", tmp_path / "in" / "rank0-a" / "3.part")

        again = Inbox(tmp_path / "in", [("rank0-a", 7), ("rank0-a", 1), ("rank9-z", 1)], MIB)
        client = again.clients["rank0-a"]
        assert sorted(numbers(again)) == [2, 4], "what was judged is not judged again"
        assert client.received.all_up_to == 2 and list(client.received.missing(7)) == [range(3, 4), range(5, 7)]
        assert not list((tmp_path / "in").rglob("*.part"))
        again.end(client, End(count=7))
        assert Inbox(tmp_path / "in", (), MIB).clients["rank0-a"].end == End(count=7)

    asyncio.run(run())


def test_a_call_is_a_dump_whose_files_the_client_does_not_name(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, (), MIB)
    asyncio.run(take(inbox, inbox.welcome(hello()), call(1, 2.5)))
    (kept,) = inbox.waiting(10)
    calls = read_calls(kept.folder / "dump.json")
    assert calls.envelope["name"] == "step0.call1" and calls.has_tensors and calls.framework == "pytorch"
    arguments = calls.apis["Functional.relu.0"].arguments
    assert arguments is not None
    (tensor,) = arguments.positional
    assert isinstance(tensor, RecordedTensor) and tensor.data_name == "0.npy"
    np.testing.assert_array_equal(np.load(kept.folder / "dump_tensor_data" / "0.npy"), np.full((2, 3), 2.5, np.float32))
    (output,) = calls.apis["Functional.relu.0"].outputs or ()
    assert isinstance(output, RecordedTensor) and output.data_name is None
    inbox.judged("rank0-a", 1)
    assert not kept.folder.exists() and inbox.waiting(10) == []


def test_with_too_much_waiting_clients_wait_until_something_is_judged(tmp_path: Path) -> None:
    async def run() -> None:
        inbox = Inbox(tmp_path, (), 100)
        client = inbox.welcome(hello())
        await take(inbox, client, call(1))
        second = asyncio.create_task(take(inbox, client, call(2)))
        await asyncio.sleep(0.05)
        assert not second.done() and numbers(inbox) == [1]
        inbox.judged("rank0-a", 1)
        await until(second.done)
        assert numbers(inbox) == [2]

    asyncio.run(run())


def test_a_disk_that_takes_nothing_is_no_mistake_of_the_client(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, (), MIB)
    client = inbox.welcome(hello())
    shutil.rmtree(tmp_path / "rank0-a")
    (tmp_path / "rank0-a").write_text("no folder")
    with pytest.raises(NoRoom, match=r"directory|exists"):
        asyncio.run(take(inbox, client, call(1)))
    assert 1 not in client.received and inbox.waiting(1) == []
    (tmp_path / "rank0-a").unlink()
    asyncio.run(take(inbox, client, call(1)))
    assert client.received.all_up_to == 1


def test_a_client_does_not_change_its_rank(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, (), MIB)
    first = inbox.welcome(hello())
    assert inbox.welcome(hello()) is first
    with pytest.raises(MessageError, match="rank"):
        inbox.welcome(hello(rank=1))
