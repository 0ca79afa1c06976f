"""Where calls are sent: nothing leaves the machine unencrypted unless somebody says so."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from msprobe_ms.remote.addresses import CLIENT, SERVER, Address, address_of, configured
from msprobe_ms.remote.certificates import make_certificates
from msprobe_ms.remote.tls import client_context, server_context
from msprobe_ms.support.errors import UsageError


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_needs_no_certificates(host: str) -> None:
    assert Address("", host, 5).checked(CLIENT) == Address("", host, 5)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.7", "::", "checker.example.com", "127.0.0.1.example.com"])
@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_others_need_certificates_or_a_word(host: str, side: str) -> None:
    with pytest.raises(UsageError, match="msprobe certificates"):
        Address("", host, 5).checked(side)
    assert Address("", host, 5, unencrypted=True).checked(side).host == host


@pytest.mark.parametrize("address", [Address(), Address("", "", 5), Address("", "localhost", 0), Address("no_folder")])
def test_what_is_no_address_is_told(address: Address) -> None:
    with pytest.raises(UsageError, match="accepted is"):
        address.checked(CLIENT)


def test_addresses_of_the_command_line(tmp_path: Path) -> None:
    assert address_of("host:5", None, unencrypted=False) == Address("", "host", 5)
    assert address_of("[::1]:5", Path("tls"), unencrypted=True) == Address("", "::1", 5, "tls", True)
    for folder in ("/nfs/calls", "./calls:5", "calls"):
        assert address_of(folder, None, unencrypted=False) == Address(folder)


def test_certificates_of_the_working_folder_are_taken_where_none_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def tls(tls_path: str | None) -> str:
        keys = {"nfs_path": "", "host": "localhost", "port": 5, "unencrypted": False}
        return configured(**keys, tls_path=tls_path, side=CLIENT).checked(CLIENT).tls  # type: ignore[arg-type]

    assert tls(None) == ""
    make_certificates(tmp_path, [])
    assert (tls(None), tls("")) == (str(tmp_path), "")
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(UsageError, match=r"ca\.crt: no such file"):
        tls(None)


def test_certificates_are_kept_secret_and_never_overwritten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    paths = make_certificates(tmp_path / "new", ["checker.example.com", "10.0.0.7"])
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in paths} == {
        "ca.crt": "0o644", "server.key": "0o600", "server.crt": "0o644", "client.key": "0o600", "client.crt": "0o644",
    }  # fmt: skip
    with pytest.raises(UsageError, match="already"):
        make_certificates(tmp_path / "new", [])
    with pytest.raises(UsageError, match="names and addresses"):
        make_certificates(tmp_path / "other", ["bad name é"])
    for context in (server_context(str(tmp_path / "new")), client_context(str(tmp_path / "new"))):
        assert context is not None and context.verify_mode == ssl.CERT_REQUIRED
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert client_context("") is None and caplog.text == ""
    os.chmod(tmp_path / "new" / "client.key", 0o644)
    client_context(str(tmp_path / "new"))
    assert "chmod 600" in caplog.text
    (tmp_path / "new" / "server.key").write_bytes((tmp_path / "new" / "client.key").read_bytes())
    with pytest.raises(UsageError, match="cannot be used"):
        server_context(str(tmp_path / "new"))
