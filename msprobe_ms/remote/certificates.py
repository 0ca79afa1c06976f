"""Certificates for one server and its clients, signed by an authority of their own that nobody keeps the key of."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from msprobe_ms.remote.addresses import CA, CLIENT, SERVER
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.files import Permissions
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_KEYS, _CERTIFICATES = Permissions.of_files(0o600), Permissions.of_files(0o644)
#: The server answers to these names in any case.
_HERE = ("localhost", "127.0.0.1", "::1")


def make_certificates(folder: Path, hosts: Sequence[str], days: int = 365) -> list[Path]:
    """Write ``ca.crt``, ``server.crt``, ``server.key``, ``client.crt`` and ``client.key``; return their paths.

    ``hosts`` are the names and addresses under which clients reach the server. Raises UsageError: cryptography is not
    installed, one of the files is there already, or cannot be written.
    """
    try:
        import cryptography  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError(
            tr(
                "certificates: needs the package cryptography: pip install 'msprobe-ms[certificates]'; "
                "docs/online_check.md has the commands of openssl that make the same"
            )
        ) from None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return list(_Maker(folder, days).all(hosts))
    except FileExistsError as error:
        raise UsageError(
            tr("{filename}: is there already; name another folder, or remove it", filename=error.filename)
        ) from error
    except OSError as error:
        raise UsageError(
            tr("{folder}: cannot be written: {strerror}", folder=folder, strerror=error.strerror or error)
        ) from error


class _Maker:
    def __init__(self, folder: Path, days: int) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._folder = folder
        self._begin = datetime.now(timezone.utc) - timedelta(minutes=5)  # clocks differ
        self._end = self._begin + timedelta(days=days)
        self._authority_key = ec.generate_private_key(ec.SECP256R1())
        self._authority = self._certificate("msprobe_ms authority", self._authority_key, None, ())

    def all(self, hosts: Sequence[str]) -> Sequence[Path]:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

        names = x509.SubjectAlternativeName([_name(host) for host in dict.fromkeys((*hosts, *_HERE))])
        paths = [self._write(CA, self._pem(self._authority), _CERTIFICATES)]
        for side, extensions in (
            (SERVER, (names, x509.ExtendedKeyUsage([Usage.SERVER_AUTH]))),
            (CLIENT, (x509.ExtendedKeyUsage([Usage.CLIENT_AUTH]),)),
        ):
            key = ec.generate_private_key(ec.SECP256R1())
            certificate = self._certificate(f"msprobe_ms {side}", key, self._authority.subject, extensions)
            paths.append(self._write(f"{side}.key", _key_pem(key), _KEYS))
            paths.append(self._write(f"{side}.crt", self._pem(certificate), _CERTIFICATES))
        return paths

    def _certificate(
        self,
        name: str,
        key: EllipticCurvePrivateKey,
        issuer: x509.Name | None,
        extensions: Sequence[x509.ExtensionType],
    ) -> x509.Certificate:
        """A certificate of ``key``; without an issuer, the authority's own."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        subject = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)])
        authority = self._authority_key.public_key()
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer or subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._begin)
            .not_valid_after(self._end)
            .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=0 if issuer is None else None), True)
            .add_extension(_usage(signs=issuer is None), True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), False)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, False)
        return builder.sign(self._authority_key, hashes.SHA256())

    @staticmethod
    def _pem(certificate: x509.Certificate) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding

        return certificate.public_bytes(Encoding.PEM)

    def _write(self, name: str, content: bytes, permissions: Permissions) -> Path:
        path = self._folder / name
        with permissions.create(path) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return path


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    others = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only",
         "decipher_only"), False,
    )  # fmt: skip
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **others)


def _name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise UsageError(tr("--host {host}: accepted are names and addresses of machines", host=host)) from error


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
