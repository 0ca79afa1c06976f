"""Find dumps below what a user points at: a dump.json, a rank folder, a step folder, or a dump root."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msprobe_ms.dump.names import BESIDE, EARLIER
from msprobe_ms.dump.writing.journal import JOURNAL_NAME, is_being_written, is_exported
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import leads_out
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

#: Files that hold a dump, the first that exists.
DUMP_FILES = ("dump.json", "debug.json")

_ACCEPTED = tr("accepted are a dump.json, a rank folder that holds one, a step folder of ranks, a dump root of steps")
#: Folders between a dump root and its ranks: steps, and the halves of a mixed graph and PyNative run.
_INNER = re.compile(r"step\d+|graph|pynative")
_STEP = re.compile(r"step(\d+)")
_RANK = re.compile(r"rank(\d+)")
_HALVES = ("graph", "pynative")
#: Folder of a process without a rank.
_PROCESS = re.compile(r"proc\d+")
#: Folder of a process that found its own in use.
_BESIDE = re.compile(rf"{BESIDE}\d+_.+")


class Place(NamedTuple):
    """Which part of a run a dump is.

    ``step``  None where no folder tells
    ``rank``  the folder's name: ``rank0``, or ``proc123`` of a process without a rank
    ``half``  ``graph`` or ``pynative`` in a run of both, else ""
    """

    step: int | None
    rank: str
    half: str = ""

    @property
    def rank_number(self) -> int | None:
        found = _RANK.fullmatch(self.rank)
        return int(found[1]) if found else None

    def __str__(self) -> str:
        step = "" if self.step is None else f"step{self.step}"
        return " ".join(part for part in (self.half, step, self.rank) if part)


def find_places(path: Path, *, quiet: bool = False) -> dict[Place, Path]:
    """Find every dump below ``path`` (a dump.json, a rank or step folder, a dump root), in the order half, step, rank.

    A value is the dump.json (or debug.json); for a dump that was never finished it is the folder, and reading that says
    what to do. Of several processes without a rank, which are runs of a script one after another, the latest is taken.

    :raises DumpFormatError: there is no dump
    """
    if path.is_file():
        return {place_of(path.absolute().parent): path}
    if not path.is_dir():
        raise _not_there(path)
    if dump := _dump_or_folder(path):
        return {place_of(path.absolute()): dump}
    found = _latest_run(path, dict(_walk(path, _place_above(path.absolute()), quiet)), quiet)
    if not found:
        raise _no_dump(path, sorted(_subfolders(path), key=_numeric))
    return dict(sorted(found.items(), key=lambda each: (each[0].half, each[0].step or 0, _numeric(each[0].rank))))


def place_of(folder: Path) -> Place:
    """The place of a dump's own folder, by the names of the folders above it."""
    return _place_above(folder.parent)._replace(rank=folder.name)


def _place_above(folder: Path) -> Place:
    """What the name of a step folder, or of a half, says of the dumps below."""
    step = _STEP.fullmatch(folder.name)
    half = folder.parent.name if step else folder.name
    return Place(int(step[1]) if step else None, "", half if half in _HALVES else "")


def _walk(folder: Path, place: Place, quiet: bool) -> Iterator[tuple[Place, Path]]:
    if not quiet:
        _warn_of_second_writers(folder)
    for inner in _subfolders(folder):
        if dump := _dump_or_folder(inner):
            yield place._replace(rank=inner.name), dump
        elif (step := _STEP.fullmatch(inner.name)) and place.step is None:
            yield from _walk(inner, place._replace(step=int(step[1])), quiet)
        elif inner.name in _HALVES and not place.half and place.step is None:
            yield from _walk(inner, place._replace(half=inner.name), quiet)


def _dump_or_folder(folder: Path) -> Path | None:
    try:
        return dump_file(folder)
    except DumpFormatError:  # a journal alone
        return folder


def _latest_run(path: Path, found: dict[Place, Path], quiet: bool) -> dict[Place, Path]:
    """``found`` without the processes that have no rank, but for the latest of them: a run is one process."""
    ages: dict[str, float] = {}
    for place, file in found.items():
        if _PROCESS.fullmatch(place.rank):
            age = _age(file.parent if file.is_file() else file) or 0.0
            ages[place.rank] = max(ages.get(place.rank, 0.0), age)
    if len(ages) < 2:
        return found
    latest = max(ages, key=lambda name: ages[name])
    if not quiet:
        _warn_of_processes(path, latest, ages)
    return {place: file for place, file in found.items() if place.rank not in ages or place.rank == latest}


def dumps_of_steps_before(path: Path) -> dict[int, Path]:
    """Return the dump.json of each step before the one at ``path``, of the same process, by how many steps before."""
    process = path.absolute().parent
    step = _STEP.fullmatch(process.parent.name)
    found: dict[int, Path] = {}
    if step is None:
        return found
    with suppress(DumpFormatError):
        for folder in _subfolders(process.parent.parent):
            other = _STEP.fullmatch(folder.name)
            if other is not None and int(other[1]) < int(step[1]) and (dump := _dump_in(folder / process.name)):
                found[int(step[1]) - int(other[1])] = dump
    return found


def _dump_in(folder: Path) -> Path | None:
    """The dump.json of a folder; None where there is none, or a journal alone."""
    try:
        return dump_file(folder)
    except DumpFormatError:
        return None


def find_dumps(path: Path) -> dict[str, Path]:
    """Find dump files below ``path``: name of the rank folder → its dump.json (or debug.json), ranks in numeric order.

    A dump.json or a rank folder gives one; a step folder one for each rank. A folder above with a single step is
    followed down to it; of several processes without a rank, which are runs of a script one after another, the latest
    is taken. The log says so.

    :raises DumpFormatError: there is no dump, or more than one step to choose from
    """
    if path.is_file():
        return {path.absolute().parent.name: path}
    if not path.is_dir():
        raise _not_there(path)
    if file := dump_file(path):
        return {path.absolute().name: file}
    folders = _latest_process(path, sorted(_subfolders(path), key=_numeric))
    _warn_of_second_writers(path)
    if ranks := {folder.name: file for folder in folders if (file := dump_file(folder))}:
        return ranks
    inner = [folder for folder in folders if _INNER.fullmatch(folder.name)]
    if len(inner) == 1:
        logger.info(tr("{path}: its only step {name} is taken", path=path, name=inner[0].name))
        return find_dumps(inner[0])
    if inner:
        raise DumpFormatError(
            tr("{path}: several to choose from: {names}; name one of them", path=path, names=_names(folders))
        )
    raise _no_dump(path, folders)


def _not_there(path: Path) -> DumpFormatError:
    """Name the halves of a step that is looked for beside them."""
    if where := beside_halves(path):
        return DumpFormatError(tr("{path}: no such folder: {where}", path=path, where=where))
    return DumpFormatError(tr("{path}: no such file or folder; {accepted}", path=path, accepted=_ACCEPTED))


def _no_dump(path: Path, folders: list[Path]) -> DumpFormatError:
    found = tr("found folders {names}", names=_names(folders)) if folders else tr("found no folder")
    if (empty := _innermost(path)) != path:
        found = tr("{folder} holds no dump.json", folder=empty.relative_to(path))
    what = beside_halves(path) or _ACCEPTED
    return DumpFormatError(tr("{path}: no dump in it: {found}; {accepted}", path=path, found=found, accepted=what))


def beside_halves(path: Path) -> str:
    """Say where the halves of a step are that lie beside the folder that ``path`` is or is in; "" where none do.

    A run that ended before it met a graph leaves a folder of the step there.
    """
    step = next((folder for folder in (path, *path.parents) if _STEP.fullmatch(folder.name)), None)
    halves = [half for half in _HALVES if step is not None and (step.parent / half / step.name).is_dir()]
    if step is None or not halves:
        return ""
    return tr(
        "what ran in graphs and what ran outside of them have a folder each, here {named}; give one of them, or "
        "{root}, which holds both",
        named=tr_list(f"{half}/{step.name}" for half in halves),
        root=step.parent,
    )


def _innermost(folder: Path) -> Path:
    """Down the folders whose names are those of a dump, always into the first."""
    inner = [each for each in sorted(_subfolders(folder), key=_numeric) if of_dumps(each)]
    return _innermost(inner[0]) if inner else folder


def _names(folders: list[Path]) -> str:
    return tr_list(folder.name for folder in folders[:20]) + (" …" if len(folders) > 20 else "")


def other_processes(folder: Path) -> list[str]:
    """Name the folders beside ``folder``, a process's own, that hold dumps of other processes without a rank."""
    if not _PROCESS.fullmatch(folder.name):
        return []
    try:
        beside = [each for each in _subfolders(folder.parent) if each.name != folder.name]
    except (OSError, DumpFormatError):  # what cannot be looked into holds none
        return []
    named = [each for each in beside if _PROCESS.fullmatch(each.name)]
    return [each.name for each in sorted(named, key=_numeric) if _age(each) is not None]


def _latest_process(path: Path, folders: list[Path]) -> list[Path]:
    """``folders`` without the processes that have no rank, but for the latest of them."""
    processes = [folder for folder in folders if _PROCESS.fullmatch(folder.name)]
    ages = {folder: age for folder in processes if (age := _age(folder)) is not None}
    if len(ages) < 2:
        return folders
    latest = max(ages, key=lambda folder: ages[folder])
    _warn_of_processes(path, latest.name, [folder.name for folder in ages])
    return [folder for folder in folders if folder not in processes or folder == latest]


def _warn_of_processes(path: Path, latest: str, names: Iterable[str]) -> None:
    others = [name for name in names if name != latest]
    logger.warning(
        tr(
            "{path}: dumps of {count} processes: the latest, {latest}, is taken; name the folder to take "
            "another: {others}",
            path=path,
            count=len(others) + 1,
            latest=latest,
            others=tr_list(others),
        ),
    )


def _age(folder: Path) -> float | None:
    """When a dump in ``folder`` was written last, in seconds since 1970; None when there is none.

    It says which of several runs comes first, and that is told; never whether a dump is whole. A copy has other times.
    """
    times = list[float]()
    for name in (*DUMP_FILES, JOURNAL_NAME):
        with suppress(OSError):
            times.append((folder / name).stat().st_mtime)
    return max(times, default=None)


def of_dumps(folder: Path) -> bool:
    """Whether a folder's name is that of a step, a rank, a process or a half."""
    return any(pattern.fullmatch(folder.name) for pattern in (_INNER, _RANK, _PROCESS))


def dump_file(folder: Path) -> Path | None:
    """Return the dump that ``folder`` directly holds."""
    file = next((folder / name for name in DUMP_FILES if (folder / name).is_file()), None)
    if file is not None and leads_out(file, folder):
        raise DumpFormatError(tr("{file}: a link that leaves the folder; name the file itself to read it", file=file))
    if file is None and (advice := unfinished(folder)):
        raise DumpFormatError(tr("{folder}: a journal but no dump.json: {advice}", folder=folder, advice=advice))
    return file


def unfinished(folder: Path, dump: Path | None = None) -> str:
    """Say why calls are missing in the dump that ``folder`` holds and what to do; "" where none are.

    ``dump`` is its dump.json, where there is one.
    """
    journal = folder / JOURNAL_NAME
    is_written = is_being_written(journal)
    try:
        if not journal.is_file():
            return ""
        exported = dump is not None and is_exported(journal, dump.stat().st_size)
    except FileNotFoundError:  # its process has just finished
        return ""
    except OSError:
        exported = False
    if exported:
        if is_written:
            logger.info(
                tr("{folder}: its process is still writing it; what was recorded until now is read", folder=folder)
            )
        return ""
    if is_written:
        return tr(
            "its process is still writing it: wait until that step is over, or copy the folder and run "
            "msprobe recover on the copy"
        )
    still = tr(", or is still at it") if is_written is None else ""
    return tr(
        "its process was killed or could not write them{still}: run msprobe recover {folder}",
        still=still,
        folder=folder,
    )


def _warn_of_second_writers(folder: Path) -> None:
    """Name the dumps in ``folder`` of processes that found their own place in use; they are reached by name only."""
    with suppress(OSError):
        others = [inner.name for inner in folder.iterdir() if _BESIDE.fullmatch(inner.name) and _age(inner) is not None]
        if others:
            logger.warning(
                tr(
                    "{folder}: not taken: {others}, written by other processes at the same time; name the folder "
                    "to take one",
                    folder=folder,
                    others=tr_list(sorted(others)),
                ),
            )


def _subfolders(folder: Path) -> list[Path]:
    try:
        # Dumps that were moved out of a later run's way are reached by their own name only, as are second writers'.
        inside = (inner for inner in folder.iterdir() if inner.is_dir() and not inner.name.startswith(EARLIER))
        return [inner for inner in inside if not _BESIDE.fullmatch(inner.name)]
    except OSError as error:
        raise DumpFormatError(
            tr("{folder}: cannot be read: {strerror}", folder=folder, strerror=error.strerror or error)
        ) from error


def _numeric(folder: Path | str) -> list[tuple[int, int, str]]:
    """Sorts ``rank2`` before ``rank10``."""
    parts = re.split(r"(\d+)", folder if isinstance(folder, str) else folder.name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
