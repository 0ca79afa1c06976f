"""Files that are whole or absent: written beside their place, then moved into it."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msprobe_ms.support.permissions import DEFAULT, Permissions


@contextlib.contextmanager
def replacing(path: Path, permissions: Permissions = DEFAULT) -> Iterator[BinaryIO]:
    """Open a temporary file in ``path``'s folder; on success it becomes ``path``, on any error it is removed."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with permissions.create(temporary) as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong first is what counts
            temporary.unlink(missing_ok=True)
        raise
