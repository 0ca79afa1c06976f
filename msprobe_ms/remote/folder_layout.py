"""The shared folder: each client has one of its own there, named as it is.

``hello`` comes first, then ``17.item`` for number 17, one a call, and ``end``, which holds how many there are. Each is
written under the name ``….part`` and renamed when it is whole; only whole ones are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msprobe_ms.support.files import DEFAULT

HELLO, END, ITEM, PART = "hello", "end", ".item", ".part"


def put(folder: Path, name: str, blocks: Iterable[bytes | memoryview]) -> None:
    """Write a file of a client's folder, whole or not at all. Raises OSError."""
    part = folder / f"{Path(name).stem}{PART}"
    with suppress(FileNotFoundError):
        part.unlink()
    try:
        with DEFAULT.create(part) as file:
            for block in blocks:
                file.write(block)
        os.replace(part, folder / name)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def items(folder: Path) -> list[tuple[int, Path]]:
    """Return the whole calls of a client's folder by number. Raises OSError."""
    found = (Path(entry) for entry in folder.iterdir())
    return sorted((int(path.stem), path) for path in found if path.suffix == ITEM and path.stem.isdecimal())
