"""Find dumps below what a user points at: a dump.json, a rank folder, a step folder, or a dump root.

Where a step ran in compiled graphs and outside of them, its dump has two halves, ``graph/step0/rank0`` and
``pynative/step0/rank0``. They are found as one dump, which is named as if it were not divided: ``step0/rank0``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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
_STEP = re.compile(r"step(\d+)")
_RANK = re.compile(r"rank(\d+)")
#: Folders of a dump root that hold the halves of divided steps: what ran in compiled graphs, and what did not.
_GRAPH, _OUTSIDE = _HALVES = ("graph", "pynative")
#: Folder of a process without a rank.
_PROCESS = re.compile(r"proc\d+")
#: Folder of a process that found its own in use.
_BESIDE = re.compile(rf"{BESIDE}\d+_.+")


class Place(NamedTuple):
    """Which part of a run a dump is.

    ``step``  None where no folder tells
    ``rank``  the folder's name: ``rank0``, or ``proc123`` of a process without a rank
    """

    step: int | None
    rank: str

    @property
    def rank_number(self) -> int | None:
        found = _RANK.fullmatch(self.rank)
        return int(found[1]) if found else None

    def __str__(self) -> str:
        return self.rank if self.step is None else f"step{self.step} {self.rank}"


def find_places(path: Path, *, quiet: bool = False) -> dict[Place, Path]:
    """Find every dump below ``path`` (a dump.json, a rank or step folder, a dump root), in the order step, rank.

    A value is the dump.json (or debug.json), of a divided step the one that it would have undivided, which
    ``parts_of`` and ``read_dump`` understand; for a dump that was never finished it is the folder, and reading that
    says what to do. Of several processes without a rank, which are runs of a script one after another, the latest is
    taken.

    :raises DumpFormatError: there is no dump
    """
    if path.is_file():
        return {place_of(path.absolute().parent): path}
    if dump := dump_at(folder_of(path)):
        return {place_of(folder_of(path).absolute()): dump}
    step = _STEP.fullmatch(path.absolute().name)
    root, below = (path.parent, [path.name]) if step else (path, [])
    layers = [path, *(root.joinpath(half, *below) for half in _HALVES)]
    if not any(layer.is_dir() for layer in layers):
        raise DumpFormatError(tr("{path}: no such file or folder; {accepted}", path=path, accepted=_ACCEPTED))
    found = _latest_run(path, dict(_walk(path, layers, int(step[1]) if step else None, quiet)), quiet)
    if not found:
        raise _no_dump(path, sorted(_subfolders(path), key=_numeric))
    return dict(sorted(found.items(), key=lambda each: (each[0].step or 0, _numeric(each[0].rank))))


def place_of(folder: Path) -> Place:
    """The place of a dump's own folder, by the names of the folders above it."""
    step = _STEP.fullmatch(folder.parent.name)
    return Place(int(step[1]) if step else None, folder.name)


def parts_of(path: Path) -> list[Path]:
    """Return the dump.json files that the dump at ``path`` consists of: where its step is divided, what ran outside of
    graphs and what ran in them; else the only one.

    ``path`` is a process's folder, or the dump.json in it; of a divided step, as ``find_places`` gives it. A part that
    was never finished is its folder. Where the step was recorded undivided as well, its halves are of another run.
    """
    folder = folder_of(path)
    own, outside, graph = map(_dump_or_folder, (folder, *_halves_of(folder)))
    own = path if path.is_file() else own
    first = own or outside
    if graph is None or (own is not None and outside is not None):
        return [first or path]
    return [graph] if first is None else [first, graph]


def folder_of(path: Path) -> Path:
    """Return the folder of a process's dump, which may be given by its dump.json."""
    return path.parent if path.name in DUMP_FILES or path.is_file() else path


def _halves_of(folder: Path) -> tuple[Path, Path]:
    """Where the halves of a process's dump lie, if its step is divided: what ran outside of graphs, and in them."""
    above = folder.parent
    root, step = (above.parent, above.name) if _STEP.fullmatch(above.name) else (above, "")
    return root / _OUTSIDE / step / folder.name, root / _GRAPH / step / folder.name


def dump_at(folder: Path) -> Path | None:
    """Return the dump of a process's folder, which is not there itself if its step is divided; None without a dump."""
    parts = parts_of(folder)
    if len(parts) > 1:
        return parts[0] if folder_of(parts[0]) == folder else folder / DUMP_FILES[0]
    return None if parts == [folder] and _dump_or_folder(folder) is None else parts[0]


def _walk(folder: Path, layers: Sequence[Path], step: int | None, quiet: bool) -> Iterator[tuple[Place, Path]]:
    """The dumps below a folder, which consists of several where steps are divided."""
    layers = [layer for layer in layers if layer.is_dir()]
    if not quiet:
        for layer in layers:
            _warn_of_second_writers(layer)
    for name in dict.fromkeys(inner.name for layer in layers for inner in _subfolders(layer)):
        if dump := dump_at(folder / name):
            yield Place(step, name), dump
        elif (found := _STEP.fullmatch(name)) and step is None:
            yield from _walk(folder / name, [layer / name for layer in layers], int(found[1]), quiet)


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
            age = max(_age(folder_of(part)) or 0.0 for part in parts_of(file))
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
    step, root = _STEP.fullmatch(process.parent.name), process.parent.parent
    found: dict[int, Path] = {}
    if step is None:
        return found
    with suppress(DumpFormatError):
        layers = [layer for layer in (root, *(root / half for half in _HALVES)) if layer.is_dir()]
        for name in {inner.name for layer in layers for inner in _subfolders(layer)}:
            other = _STEP.fullmatch(name)
            if other is not None and int(other[1]) < int(step[1]):
                dump = dump_at(root / name / process.name)
                if dump is not None and dump.name in DUMP_FILES:  # else a journal alone
                    found[int(step[1]) - int(other[1])] = dump
    return found


def find_dumps(path: Path) -> dict[str, Path]:
    """Find the dumps of one step below ``path``: name of the rank folder → its dump.json, as ``find_places`` gives it.

    A dump.json or a rank folder gives one; a step folder one for each rank, in numeric order. A folder above with a
    single step is followed down to it, and the log says so.

    :raises DumpFormatError: there is no dump, or more than one step to choose from
    """
    places = find_places(path)
    steps = list(dict.fromkeys(place.step for place in places))
    if len(steps) > 1:
        names = _listed([f"step{step}" for step in steps if step is not None])
        raise DumpFormatError(tr("{path}: several to choose from: {names}; name one of them", path=path, names=names))
    if steps[0] is not None and any((path / half / f"step{steps[0]}").is_dir() for half in ("", *_HALVES)):
        logger.info(tr("{path}: its only step {name} is taken", path=path, name=f"step{steps[0]}"))
    return {place.rank: file for place, file in places.items()}


def _no_dump(path: Path, folders: list[Path]) -> DumpFormatError:
    found = tr("found folders {names}", names=_names(folders)) if folders else tr("found no folder")
    if (empty := _innermost(path)) != path:
        found = tr("{folder} holds no dump.json", folder=empty.relative_to(path))
    return DumpFormatError(tr("{path}: no dump in it: {found}; {accepted}", path=path, found=found, accepted=_ACCEPTED))


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
    return _listed([folder.name for folder in folders])


def _listed(names: Sequence[str]) -> str:
    return tr_list(names[:20]) + (" …" if len(names) > 20 else "")


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
    return folder.name in _HALVES or any(pattern.fullmatch(folder.name) for pattern in (_STEP, _RANK, _PROCESS))


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
