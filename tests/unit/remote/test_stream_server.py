"""Real sockets and real TLS: what good clients send arrives once, and what others send is refused and harms nothing."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import ssl
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from remote_calls import Host, hello, record_step, until

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.certificates import make_certificates
from msprobe_ms.remote.frames import head, read_text
from msprobe_ms.remote.links import Closed
from msprobe_ms.remote.messages import End, Received, Refused, Welcome, from_server, text_of
from msprobe_ms.remote.sender import Sender
from msprobe_ms.remote.sending import Sending
from msprobe_ms.remote.spool import Progress, Spool

HERE = Address("", "127.0.0.1", 0)
ALL = [f"step{step}.Functional.relu.{call}" for step in (1, 2) for call in range(3)]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder / "ours", ["localhost"])
    make_certificates(folder / "others", ["localhost"])
    return folder


def sender(folder: Path, address: Address, client: str = "rank0-a", rank: int = 0) -> Sender:
    """What sends two steps of a training that is over."""
    spool = Spool(folder)
    spool.make()
    for number in (1, 2):
        record_step(spool, number)
    spool.tell(Progress(2, 2, ended=True))
    return Sender(spool, Sending(address, client, rank, patience=5, speaks=False), os.getppid())


async def connect(
    address: Address, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    name = None if context is None else "localhost"
    return await asyncio.open_connection("127.0.0.1", address.port, ssl=context, server_hostname=name)


async def answers_to(address: Address, raw: bytes, context: ssl.SSLContext | None = None) -> list[object]:
    """All that the server answers to some bytes until it closes, with TLS its first answer; nothing where it closes
    without a word."""
    found: list[object] = []
    with suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await connect(address, context)
        writer.write(raw)
        with suppress(OSError, NotImplementedError):
            if context is None:
                writer.write_eof()
        while not (context and found) and (text := await asyncio.wait_for(read_text(reader), 10)) is not None:
            found.append(from_server(text))
        writer.close()
    return found


def hostile(folder: Path) -> Iterator[bytes]:
    """Bytes that are no message, or not one that is taken now."""
    greeting = head(text_of(hello("rank0-evil")))
    size = (
        b'{"kind":"call","number":1,"name":"x","framework":"","entries":{},"tensors":[{"dtype":"int8","shape":[%d]}]}'
    )
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield pickle.dumps(os.getcwd)
    yield os.urandom(4096)
    yield b"MSP1" + b"\xff" * 4
    yield head(pickle.dumps({"kind": "hello"}))
    yield head(text_of(End(count=1)))
    yield greeting + greeting
    yield greeting + head(size % (1 << 60)) + b"x"
    yield greeting + head(size % (1 << 33)) + b"cut"
    yield greeting + head(size % 4) + b"four" + b"????"
    yield greeting + head(b"[" * 100_000)
    yield greeting + head(b'{"kind":"call","number":1,"entries":' + b'{"a":' * 200 + b"1" + b"}" * 201)
    yield greeting + head(pickle.dumps(folder))


def test_good_clients_are_served_after_all_that_hostile_ones_send(tmp_path: Path) -> None:
    async def run() -> None:
        host = Host(tmp_path / "in")
        address = await host.listen(HERE)
        for raw in hostile(tmp_path):
            answers = await answers_to(address, raw)
            assert not [each for each in answers if isinstance(each, Received)], raw[:200]
        assert [*host.dumps()] == []
        refused = await answers_to(address, b"GET / HTTP/1.1\r\n\r\n")
        assert refused == [Refused(reason="does not begin as a message of msprobe_ms does", later=True)]
        await asyncio.gather(*(sender(tmp_path / f"{rank}", address, f"rank{rank}-a", rank).run() for rank in (0, 1)))
        assert sorted(host.names) == sorted(2 * ALL)
        ends = {name: client.end for name, client in host.inbox.clients.items()}
        assert [name for name, end in ends.items() if end is not None and end.count == 6] == ["rank0-a", "rank1-a"]
        await host.stop()

    asyncio.run(run())


def test_ranks_that_are_not_asked_for_are_refused_for_good(tmp_path: Path) -> None:
    async def run() -> None:
        host = Host(tmp_path / "in", ranks=(0, 2))
        address = await host.listen(HERE)
        (refused,) = await answers_to(address, head(text_of(hello("rank1-a", 1))))
        assert isinstance(refused, Refused) and not refused.later and "0, 2" in refused.reason
        with pytest.raises(Closed, match="rank 1 is none of those"):
            await sender(tmp_path / "1", address, "rank1-a", 1).run()
        await host.stop()

    asyncio.run(run())


def test_what_was_not_acknowledged_when_the_host_died_is_sent_again_and_nothing_is_there_twice(tmp_path: Path) -> None:
    async def run() -> None:
        first = Host(tmp_path / "in", most=500)
        address = await first.listen(HERE)
        sending = asyncio.create_task(sender(tmp_path / "0", address).run())
        await until(lambda: len(first.names) >= 1)
        await asyncio.sleep(0.05)
        assert len(first.names) < len(ALL), "it has room for some alone"
        await first.stop()
        second = Host(tmp_path / "in")
        assert await second.listen(address) == address
        await until(sending.done)
        assert sorted(second.names) == ALL
        await second.stop()

    asyncio.run(run())


def test_a_client_that_connects_anew_ends_its_connection_of_before(tmp_path: Path) -> None:
    async def run() -> None:
        host = Host(tmp_path / "in")
        address = await host.listen(HERE)
        before, _ = await connect(address)
        _.write(head(text_of(hello())))
        assert from_server(await read_text(before) or b"") == Welcome(received=0)
        await sender(tmp_path / "0", address).run()
        assert await asyncio.wait_for(before.read(), 10) == b"" and host.names == ALL
        await host.stop()

    asyncio.run(run())


def client_context(certificates: Path, own: str | None = "ours", authority: str = "ours") -> ssl.SSLContext:
    """A client's context that trusts one authority and shows a certificate of another, or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificates / authority / "ca.crt")
    if own is not None:
        context.load_cert_chain(certificates / own / "client.crt", certificates / own / "client.key")
    return context


def older(certificates: Path, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = client_context(certificates)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = version
    return context


def as_client(context: ssl.SSLContext, certificates: Path, side: str) -> ssl.SSLContext:
    context.load_cert_chain(certificates / "ours" / f"{side}.crt", certificates / "ours" / f"{side}.key")
    return context


def test_tls_takes_clients_of_its_authority_alone_and_nothing_older(tmp_path: Path, certificates: Path) -> None:
    async def run() -> None:
        host = Host(tmp_path / "in")
        address = await host.listen(Address("", "127.0.0.1", 0, str(certificates / "ours")))
        greeting = head(text_of(hello("rank0-evil")))
        for name, context in {
            "plain text": None,
            "no certificate": client_context(certificates, None),
            "of another authority": client_context(certificates, "others"),
            "made for servers": as_client(client_context(certificates, None), certificates, "server"),
            "TLS 1.0": older(certificates, ssl.TLSVersion.TLSv1),
            "TLS 1.2": older(certificates, ssl.TLSVersion.TLSv1_2),
        }.items():
            assert await answers_to(address, greeting, context) == [], name
        with socket.create_connection(("127.0.0.1", address.port)) as garbage:
            garbage.sendall(os.urandom(1000))
        assert await answers_to(address, greeting, client_context(certificates)) == [Welcome(received=0)]
        await sender(tmp_path / "0", Address("", "localhost", address.port, address.tls)).run()
        assert host.names == ALL
        await host.stop()

    asyncio.run(run())


@pytest.mark.parametrize(("listening", "authority"), [("127.0.0.1", "others"), ("127.0.0.2", "ours")])
def test_a_client_says_no_word_to_a_server_of_another_authority_or_name(
    tmp_path: Path, certificates: Path, listening: str, authority: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(Sender, "_tell_broken", lambda self, error: told.append(str(error)))

    async def run() -> None:
        host = Host(tmp_path / "in")
        address = await host.listen(Address("", listening, 0, str(certificates / authority)))
        theirs = Address("", listening, address.port, str(certificates / "ours"))
        sending = asyncio.create_task(sender(tmp_path / "0", theirs).run())
        await until(lambda: told)
        assert "certificate verify failed" in told[0] and not host.inbox.clients
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await host.stop()

    asyncio.run(run())


def test_a_host_that_stops_says_nothing_of_connections_that_are_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        host = Host(tmp_path / "in")
        reader, writer = await connect(await host.listen(HERE))
        writer.write(head(text_of(hello("rank0-a"))))
        assert isinstance(from_server(await read_text(reader) or ""), Welcome)
        await host.stop()
        await asyncio.sleep(0.05)
        writer.close()

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
