"""Claim a timestamp for the reports of one run, which no other run in the same folder has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msprobe_ms.support.files import DEFAULT


@contextmanager
def claimed_timestamp(folder: Path, prefix: str = "compare_") -> Iterator[str]:
    """Now as ``YYYYmmddHHMMSS``, or the next second of which ``folder`` has no ``{prefix}…`` and nobody writes one.

    So a report is never overwritten. A hidden file says until the end that the second is taken. The folder is made,
    and removed again when nothing was written; one that cannot be written is left to those who write to it.
    """
    made = not folder.exists()
    moment, claim = time.time(), None
    with suppress(OSError):
        DEFAULT.make_folder(folder)
    while True:
        stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(moment))
        moment += 1
        try:
            claim = folder / f".{prefix}{stamp}.claim"
            DEFAULT.create(claim).close()
        except FileExistsError:
            continue
        except OSError:
            claim = None
        if not any(folder.glob(f"{prefix}*{stamp}*")):  # whoever claimed it before has written by now
            break
        _remove(claim)
    try:
        yield stamp
    finally:
        _remove(claim)
        if made:
            with suppress(OSError):  # it holds reports
                folder.rmdir()


def _remove(claim: Path | None) -> None:
    if claim is not None:
        with suppress(OSError):
            claim.unlink()
