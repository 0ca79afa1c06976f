"""What a user points at → the dumps in it: a dump.json, a rank folder, a step folder, or a dump root of one step."""

from __future__ import annotations

import re
from pathlib import Path

from msprobe_ms.errors import DumpFormatError
from msprobe_ms.log import logger
from msprobe_ms.store.journal import JOURNAL_NAME

#: Files that hold a dump, the first that exists.
DUMP_FILES = ("dump.json", "debug.json")

_ACCEPTED = "accepted are a dump.json, a rank folder that holds one, a step folder of rank folders"
#: Folders between a dump root and its ranks: steps, and the halves of a mixed graph and PyNative run.
_INNER = re.compile(r"step\d+|graph|pynative")
#: Folder of a process without a rank.
_PROCESS = re.compile(r"proc\d+")


def find_dumps(path: Path) -> dict[str, Path]:
    """The dump files below ``path``: name of the rank folder → its dump.json (or debug.json), ranks in numeric order.

    A dump.json or a rank folder gives one; a step folder one for each rank. A folder above with a single step is
    followed down to it; of several processes without a rank, which are runs of a script one after another, the latest
    is taken. The log says so.

    :raises DumpFormatError: there is no dump, or more than one step to choose from
    """
    if path.is_file():
        return {path.absolute().parent.name: path}
    if not path.is_dir():
        raise DumpFormatError(f"{path}: no such file or folder; {_ACCEPTED}")
    if file := dump_file(path):
        return {path.absolute().name: file}
    folders = _latest_process(path, sorted(_subfolders(path), key=_numeric))
    if ranks := {folder.name: file for folder in folders if (file := dump_file(folder))}:
        return ranks
    inner = [folder for folder in folders if _INNER.fullmatch(folder.name)]
    if len(inner) == 1:
        logger.info("%s: its only step %s is taken", path, inner[0].name)
        return find_dumps(inner[0])
    names = ", ".join(folder.name for folder in folders[:20]) + (" …" if len(folders) > 20 else "")
    if inner:
        raise DumpFormatError(f"{path}: several to choose from: {names}; name one of them")
    raise DumpFormatError(f"{path}: no dump in it: found {f'folders {names}' if names else 'no folder'}; {_ACCEPTED}")


def other_processes(folder: Path) -> list[str]:
    """Names of the folders beside ``folder``, a process's own, that hold dumps of other processes without a rank."""
    if not _PROCESS.fullmatch(folder.name) or not folder.parent.is_dir():
        return []
    beside = [each for each in _subfolders(folder.parent) if _PROCESS.fullmatch(each.name) and each.name != folder.name]
    return [each.name for each in sorted(beside, key=_numeric) if _age(each)]


def _latest_process(path: Path, folders: list[Path]) -> list[Path]:
    """``folders`` without the processes that have no rank, but for the latest of them."""
    ages = {folder: _age(folder) for folder in folders if _PROCESS.fullmatch(folder.name)}
    dumps = [folder for folder, age in ages.items() if age]
    if len(dumps) < 2:
        return folders
    latest = max(dumps, key=lambda folder: ages[folder])
    others = ", ".join(folder.name for folder in dumps if folder != latest)
    logger.warning(
        "%s: dumps of %d processes: the latest, %s, is taken; name the folder to take another: %s",
        path, len(dumps), latest.name, others,
    )  # fmt: skip
    return [folder for folder in folders if folder not in ages or folder == latest]


def _age(folder: Path) -> float:
    """When a dump in ``folder`` was written last, in seconds since 1970; 0 when there is none."""
    times = [0.0]
    for name in (*DUMP_FILES, JOURNAL_NAME):
        try:
            times.append((folder / name).stat().st_mtime)
        except OSError:
            continue
    return max(times)


def dump_file(folder: Path) -> Path | None:
    """The dump that ``folder`` directly holds."""
    file = next((folder / name for name in DUMP_FILES if (folder / name).is_file()), None)
    journal = folder / JOURNAL_NAME
    # A dump that was exported, or recovered, is younger than its journal.
    if journal.is_file() and (file is None or file.stat().st_mtime < journal.stat().st_mtime):
        advice = f"its process was killed, or is still at it: run msprobe recover {folder}"
        if file is None:
            raise DumpFormatError(f"{folder}: a journal but no dump.json: {advice}")
        logger.warning("%s: calls are missing in its dump.json: %s", folder, advice)
    return file


def _subfolders(folder: Path) -> list[Path]:
    try:
        # Dumps that were moved out of a later run's way are reached by their own name only.
        return [inner for inner in folder.iterdir() if inner.is_dir() and not inner.name.startswith("earlier")]
    except OSError as error:
        raise DumpFormatError(f"{folder}: cannot be read: {error.strerror or error}") from error


def _numeric(folder: Path) -> list[tuple[int, int, str]]:
    """Sorts ``rank2`` before ``rank10``."""
    parts = re.split(r"(\d+)", folder.name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
