"""A shared folder: half-written files are not read, ranks do not mix, what is damaged or missing is known."""

from __future__ import annotations

import asyncio
import os
import pickle
from pathlib import Path

import pytest
from remote_calls import Host, hello, record_step, until

from msprobe_ms.remote import folder_server
from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.folder_layout import put
from msprobe_ms.remote.frames import head
from msprobe_ms.remote.messages import Dropped, End, Hello, text_of
from msprobe_ms.remote.sender import Sender
from msprobe_ms.remote.sending import Sending
from msprobe_ms.remote.spool import Progress, Spool


def dropped(number: int) -> bytes:
    return head(text_of(Dropped(number=number, name=f"step{number}", reason="no room")))


def test_two_ranks_with_equal_names_do_not_mix_and_the_host_may_come_later(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()

    async def run() -> None:
        for rank in (0, 1):
            spool = Spool(tmp_path / f"spool{rank}")
            spool.make()
            record_step(spool, rank + 1, step="step0")
            spool.tell(Progress(1, 1, ended=True))
            sending = Sending(Address(str(shared)), f"rank{rank}-a", rank, speaks=False)
            await Sender(spool, sending, os.getppid()).run()
        assert sorted(path.name for path in (shared / "rank0-a").iterdir()) == [
            "00000001.item", "00000002.item", "00000003.item", "end", "hello",
        ]  # fmt: skip
        host = Host(tmp_path / "in")
        await host.listen(Address(str(shared)))
        await until(lambda: not [*shared.iterdir()])
        assert sorted(host.names) == sorted(2 * [f"step0.Functional.relu.{call}" for call in range(3)])
        clients = [(name, each.hello.rank, each.received.all_up_to) for name, each in host.inbox.clients.items()]
        assert clients == [("rank0-a", 0, 3), ("rank1-a", 1, 3)]
        assert all(each.end is not None and each.end.count == 3 for each in host.inbox.clients.values())
        await host.stop()

    asyncio.run(run())


def test_what_is_half_written_damaged_or_hostile_is_not_taken_and_missing_numbers_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_server, "_GRACE", 0.3)
    mine = tmp_path / "shared" / "rank0-a"
    evil = tmp_path / "shared" / "rank0-evil"
    for folder in (mine, evil):
        folder.mkdir(parents=True)
    (tmp_path / "shared" / "linked").symlink_to(tmp_path)

    async def run() -> None:
        host = Host(tmp_path / "in")
        await host.listen(Address(str(tmp_path / "shared")))
        (mine / "00000001.part").write_bytes(dropped(1)[:20])
        put(evil, "hello", [pickle.dumps(os.getcwd)])
        put(mine, "00000002.item", [dropped(2)])
        await asyncio.sleep(0.3)
        assert host.names == [], "nobody has said hello"
        (mine / "00000001.item").symlink_to("/dev/zero")
        put(mine, "hello", [head(text_of(hello()))])
        put(mine, "00000003.item", [pickle.dumps({"kind": "dropped"})])
        put(mine, "00000005.item", [dropped(5)[:-1]])
        await until(lambda: host.names == ["step2"])
        put(mine, "00000004.item", [dropped(4)])
        await until(lambda: host.names == ["step2", "step4"])
        put(mine, "00000001.item", [dropped(1)])
        await until(lambda: host.names == ["step2", "step4", "step1"])
        put(mine, "end", [head(text_of(End(count=6)))])
        await until(lambda: not mine.exists())
        client = host.inbox.clients["rank0-a"]
        assert client.end is not None and list(client.received.missing(client.end.count)) == [
            range(3, 4), range(5, 7),
        ]  # fmt: skip
        assert list(host.inbox.clients) == ["rank0-a"] and evil.exists()
        await host.stop()

    asyncio.run(run())


@pytest.mark.parametrize("name", ["hello", "end"])
def test_what_one_client_left_cut_keeps_no_other_waiting(tmp_path: Path, name: str) -> None:
    cut, whole = tmp_path / "shared" / "rank0-a", tmp_path / "shared" / "rank1-b"
    for rank, folder in enumerate((cut, whole)):
        folder.mkdir(parents=True)
        put(folder, "hello", [head(text_of(Hello(client=folder.name, rank=rank)))])
    text = (cut / "hello").read_bytes() if name == "hello" else head(text_of(End(count=1)))
    put(cut, name, [text[:-2]])

    async def run() -> None:
        host = Host(tmp_path / "in")
        await host.listen(Address(str(tmp_path / "shared")))
        await asyncio.sleep(0.3)
        put(whole, "00000001.item", [dropped(1)])
        await until(lambda: host.names == ["step1"])
        put(cut, name, [text])  # it is seen whole in the end
        put(cut, "00000001.item", [dropped(1)])
        await until(lambda: host.names == ["step1", "step1"])
        await host.stop()

    asyncio.run(run())


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    def fails() -> object:
        yield b"half"
        raise OSError(28, "full")

    with pytest.raises(OSError, match="full"):
        put(tmp_path, "1.item", fails())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
