"""TLS on both sides: 1.3, each shows a certificate that the common authority has signed, and the server its name."""

from __future__ import annotations

import ssl
from pathlib import Path

from msprobe_ms.remote.addresses import CA, CLIENT, SERVER
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr


def server_context(folder: str) -> ssl.SSLContext | None:
    """Return what a server listens with; None for no certificates. Raises UsageError: they cannot be used."""
    return _context(ssl.PROTOCOL_TLS_SERVER, folder, SERVER) if folder else None


def client_context(folder: str) -> ssl.SSLContext | None:
    """Return what a client connects with; None for no certificates. Raises UsageError: they cannot be used."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, folder, CLIENT) if folder else None


def _context(protocol: int, folder: str, side: str) -> ssl.SSLContext:
    authority, certificate, key = (Path(folder, name) for name in (CA, f"{side}.crt", f"{side}.key"))
    context = ssl.SSLContext(protocol)  # of a client it checks the server's name
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        if key.stat().st_mode & 0o077:
            logger.warning(tr("{key}: others than its owner may read this key; chmod 600 keeps it secret", key=key))
        context.load_verify_locations(authority)
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise UsageError(
            tr(
                "{folder}: {ca}, {side}.crt and {side}.key cannot be used: {reason}",
                folder=folder,
                ca=CA,
                side=side,
                reason=reason,
            )
        ) from error
    return context


def _no_password() -> str:
    raise ValueError(tr("the key has a password, which nobody can be asked for"))
