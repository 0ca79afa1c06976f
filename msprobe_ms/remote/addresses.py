"""Where calls are sent to or taken from: a port, encrypted or of this machine alone, or a shared folder."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

#: Files of a folder with certificates.
CA, SERVER, CLIENT = "ca.crt", "server", "client"
_HOW = tr("make them with: msprobe certificates -o DIR --host NAME")


@dataclass(frozen=True, slots=True)
class Address:
    """``folder``  a shared folder; "" for a port of ``host``
    ``tls``     the folder with certificates; "" for none: then the host is this machine, unless ``unencrypted``
    """

    folder: str = ""
    host: str = ""
    port: int = -1
    tls: str = ""
    unencrypted: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        return self.folder or f"{self.host}:{self.port}"

    def checked(self, side: str) -> Address:
        """Return it with absolute folders, for ``SERVER`` or ``CLIENT``. Raises UsageError: it cannot be used."""
        if self.folder:
            if not Path(self.folder).is_dir():
                raise UsageError(
                    tr("{folder}: no such folder; accepted is one that both sides reach", folder=self.folder)
                )
            return Address(folder=str(Path(self.folder).absolute()))
        if not self.host or not 1 <= self.port <= 65535:
            raise UsageError(
                tr("{address}: accepted is a host and a port from 1 to 65535, or a shared folder", address=self)
            )
        if self.tls:
            _check_certificates(Path(self.tls), side)
            return Address("", self.host, self.port, str(Path(self.tls).absolute()))
        if not (self.unencrypted or is_loopback(self.host)):
            raise UsageError(
                tr(
                    "{address}: without certificates (tls_path) calls travel within this machine alone, to "
                    '127.0.0.1; {how}, or say "unencrypted": true (--unencrypted) where nobody else is on the '
                    "network",
                    address=self,
                    how=_HOW,
                )
            )
        return Address("", self.host, self.port, "", self.unencrypted)


def is_loopback(host: str) -> bool:
    """Whether only this machine is reached under a name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_of(text: str, tls: Path | None, *, unencrypted: bool) -> Address:
    """Read ``HOST:PORT`` or a folder of the command line."""
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and len(port) <= 5 and "/" not in text:
        return Address("", host.strip("[]"), int(port), "" if tls is None else str(tls), unencrypted)
    return Address(folder=text)


def configured(*, nfs_path: str, host: str, port: int, tls_path: str | None, unencrypted: bool, side: str) -> Address:
    """Return the address that keys of a configuration give. Where they name no certificates, those of the working
    folder are taken, as msprobe does, if there are some.
    """
    if tls_path is None:
        tls_path = "." if Path(f"{side}.key").exists() else ""
    return Address(nfs_path, "" if nfs_path else host, -1 if nfs_path else port, tls_path, unencrypted)


def _check_certificates(folder: Path, side: str) -> None:
    for name in (CA, f"{side}.crt", f"{side}.key"):
        if not (folder / name).is_file():
            raise UsageError(tr("{folder}: no such file; {how}", folder=folder / name, how=_HOW))
