"""Rebuild the JSON files of dumps whose process died before it could export them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msprobe_ms.dump.writing.export import export
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.support.errors import DumpFormatError, MsprobeError


class Recovered(NamedTuple):
    """One rebuilt dump, or why it could not be."""

    folder: Path
    entries: int
    problem: str = ""


def recover(path: Path) -> Iterator[Recovered]:
    """Export every journal in or below ``path``; journals stay where they are, so doing it twice does no harm.

    Raises DumpFormatError when ``path`` does not exist or holds no journal.
    """
    if not path.is_dir():
        raise DumpFormatError(f"{path}: not a folder; give a dump folder, one of its steps, or a rank of a step")
    journals = sorted(path.rglob(JOURNAL_NAME))
    if not journals:
        raise DumpFormatError(
            f"{path}: nothing to recover here or below: no {JOURNAL_NAME}. A dump that ended in good order has none; "
            "its dump.json is complete"
        )
    for journal in journals:
        try:
            yield Recovered(journal.parent, export(journal.parent, recovered=True))
        except (MsprobeError, OSError) as error:
            yield Recovered(journal.parent, 0, str(error))
