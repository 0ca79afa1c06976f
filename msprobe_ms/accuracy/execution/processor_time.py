"""What Linux tells of the processor time of another process; elsewhere none has used any, and none waits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

#: Of the fields of ``/proc/<id>/stat`` behind the name, which may hold anything: state, and time of user and system.
_STATE, _TIMES = 0, slice(11, 13)


def processor_seconds(process: int) -> float:
    """Return how long a process has run on a processor; 0 where that is not known."""
    return sum(map(int, next(_fields(Path(f"/proc/{process}")), [])[_TIMES])) / os.sysconf("SC_CLK_TCK")


def waits_for_processor(process: int) -> bool:
    """Return whether any thread of a process runs, or would if it had a processor."""
    return any(fields[_STATE] == "R" for thread in _threads(process) for fields in _fields(thread))


def _threads(process: int) -> Iterator[Path]:
    try:
        yield from Path(f"/proc/{process}/task").iterdir()
    except OSError:  # it has ended
        return


def _fields(place: Path) -> Iterator[list[str]]:
    try:
        yield (place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return
