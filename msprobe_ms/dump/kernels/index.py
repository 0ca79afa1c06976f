"""Index raw kernel files: ``dump.json`` and its companions, of a step or of all below a folder.

That may be the dump of another tool, of GE, or of a run that was killed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from msprobe_ms.dump.dialects import MINDSPORE
from msprobe_ms.dump.kernels.entries import kernel_entries
from msprobe_ms.dump.kernels.kernel_files import (
    KernelFile,
    KernelFolder,
    find_kernel_folders,
    need_kernel_folders,
    read_folders,
)
from msprobe_ms.dump.names import INCOMPLETE
from msprobe_ms.dump.writing.contents import Envelope
from msprobe_ms.dump.writing.export import Recovered, dump_head, write_json
from msprobe_ms.dump.writing.json_text import encode_text, field_text
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.files import DEFAULT, Permissions, open_regular, replacing
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Tensors that cannot be read and are named, of however many.
_NAMED = 3


def write_index(
    folder: Path,
    files: Sequence[KernelFile],
    *,
    task: str,
    level: str = "L2",
    cells: Mapping[str, str] | None = None,
    data_folder: Path | None = None,
    extra_info: bool = True,
    permissions: Permissions = DEFAULT,
) -> int:
    """Write ``dump.json``, ``construct.json`` and ``stack.json`` into ``folder``; return the number of entries.

    ``files``       as ``read_kernel_files`` gives them, of this step alone, of any number of graphs and iterations
    ``task``        ``statistics`` names no files in the index, so that they may be removed; ``tensor`` does
    ``cells``       the user's model, name → class name, as ``net.cells_and_names()`` has them; names are relative to it
    ``data_folder`` ``dump_data_dir`` of the index; by default the ``rank_R/Net`` that the files lie in
    ``extra_info``  False: neither ``construct.json`` nor ``stack.json``

    Each tensor is read once, one at a time; a damaged one costs its own figures, and dump.json and a warning say so.
    Whole or absent, dump.json last.

    :raises OSError: the disk refuses
    """
    permissions.make_folder(folder)
    data_folder = (data_folder or common_folder(files)) if task != "statistics" else None
    construct: dict[str, str | None] = {}
    sites: dict[tuple[str, ...], list[str]] = {}
    unread: list[str] = []
    with replacing(folder / "dump.json", permissions) as target:
        data_dir = None if data_folder is None else os.path.realpath(data_folder)
        target.write(dump_head(Envelope(task, level, MINDSPORE.name, data_dir)))
        for entry in kernel_entries(files, cells=cells, data_folder=data_folder, unread=unread.append):
            fields = b",\n".join(field_text(key, value) for key, value in entry.body.items())
            separator = ",\n" if construct else "\n"
            target.write(f"{separator}  {encode_text(entry.name)}: {{\n".encode() + fields + b"\n  }")
            construct[entry.name] = entry.parent
            if entry.call_site:
                sites.setdefault(entry.call_site, []).append(entry.name)
        target.write(b"\n }" if construct else b"}")
        if unread:
            tensors = "1 tensor" if len(unread) == 1 else f"{len(unread)} tensors"
            more = "; …" if len(unread) > _NAMED else ""
            incomplete = f"{tensors} of kernels could not be read: {'; '.join(unread[:_NAMED])}{more}"
            target.write(f',\n "{INCOMPLETE}": {json.dumps(incomplete)}'.encode())
            logger.warning("%s: %s", folder, incomplete)
        target.write(b"\n}")
        if extra_info:
            stack = {str(number): [names, list(site)] for number, (site, names) in enumerate(sites.items())}
            for name, content in (("stack.json", stack), ("construct.json", construct)):
                with replacing(folder / name, permissions) as file:
                    write_json(file, content)
    return len(construct)


def common_folder(files: Sequence[KernelFile]) -> Path | None:
    """Return ``…/rank_R/Net`` of files in ``…/rank_R/Net/{graph}/{iteration}``; None without files."""
    above = {Path(*file.path.absolute().parts[:-3]) for file in files}
    return Path(os.path.commonpath(above)) if above else None


def index_root(root: Path, output: Path | None = None) -> Iterator[Recovered]:
    """Write ``step{iteration}/rank{R}/dump.json`` for every rank and iteration; by default into the dump itself.

    What has an index is left as it is, and named.

    :raises DumpFormatError: there are no kernel files
    """
    for (rank, step), group in groupby(need_kernel_folders(root), key=lambda folder: (folder.rank, folder.step)):
        folders = list(group)
        parent = (output or folders[0].root) / f"step{step}"
        target = parent / f"rank{rank}"
        if held := next((path.parent for name in _names_of(rank) for path in parent.glob(f"{name}/dump.json")), None):
            yield Recovered(held, 0, tr("holds a dump already; give another folder with -o"))
        else:
            yield _indexed(target, folders)


def recover_kernels(path: Path) -> Iterator[Recovered]:
    """Index the kernel files in or below ``path`` that no index speaks of: those of a run that was killed.

    Iterations are steps where nothing tells otherwise. Where steps that have an index were of several iterations each,
    what is left is the step after them.
    """

    def of_rank(folder: KernelFolder) -> tuple[Path, int]:
        return folder.root, folder.rank

    for _, group in groupby(sorted(find_kernel_folders(path), key=of_rank), key=of_rank):
        try:
            yield from _recover_rank(list(group))
        except MsprobeError as error:
            yield Recovered(path, 0, str(error))


def _recover_rank(folders: list[KernelFolder]) -> Iterator[Recovered]:
    known = _Indexed(folders[0])
    left: dict[int, list[KernelFile]] = {}
    for folder in folders:
        if files := known.left(folder):
            left.setdefault(folder.step, []).extend(files)
    if known.are_iterations and known.steps.keys().isdisjoint(left):
        for step, files in left.items():
            yield _written(known.folder(step), files)
    elif left:
        yield _written(known.folder(max(known.steps) + 1), [file for files in left.values() for file in files])


class _Indexed:
    """What the indices of one rank speak of."""

    def __init__(self, folder: KernelFolder) -> None:
        self._root, self._rank, self._net = folder.root, folder.rank, folder.path.parents[1]
        self.steps: dict[int, set[int]] = {}
        self._names: set[str] = set()
        self._has_tensors = True
        self._name = f"rank{self._rank}"
        found = (path for name in _names_of(self._rank) for path in self._root.glob(f"step*/{name}/dump.json"))
        for index in sorted(found):
            step = index.parent.parent.name.removeprefix("step")
            if step.isdecimal():
                self._add(index, int(step))

    def _add(self, index: Path, step: int) -> None:
        try:
            with open_regular(index) as file:
                dump = json.loads(file.read())
            names = {name for body in dump["data"].values() for name in _data_names(body)}
        except (OSError, ValueError, KeyError, AttributeError, RecursionError):
            return  # what cannot be read speaks of nothing
        self._name = index.parent.name
        self._has_tensors = self._has_tensors and bool(names)
        self._names |= names
        iterations = {name.split("/")[1] for name in names if name.count("/") == 2}
        self.steps[step] = {int(each) for each in iterations if each.isdecimal()} or {step}

    @property
    def are_iterations(self) -> bool:
        return all(iterations == {step} for step, iterations in self.steps.items())

    def folder(self, step: int) -> Path:
        return self._root / f"step{step}" / self._name

    def left(self, folder: KernelFolder) -> list[KernelFile]:
        return [file for file in folder.files() if not self._speaks_of(file, folder.step)]

    def _speaks_of(self, file: KernelFile, iteration: int) -> bool:
        if not self.steps:
            return False
        if self._has_tensors:
            return file.path.relative_to(self._net).as_posix() in self._names
        # Statistics name no files. Where tensors are reduced to them, iterations are steps, and each has its index
        # before its tensors are gone.
        return file.statistics is not None or iteration in self.steps


def _names_of(rank: int) -> list[str]:
    """What a rank's folder may be called: a process that is alone has no rank, and its kernels are those of rank 0."""
    return [f"rank{rank}", *(["proc*"] if rank == 0 else [])]


def _data_names(body: Any) -> Iterator[str]:
    if isinstance(body, dict):
        if isinstance(name := body.get("data_name"), str):
            yield name
        body = list(body.values())
    if isinstance(body, list):
        for each in body:
            yield from _data_names(each)


def _indexed(target: Path, folders: list[KernelFolder]) -> Recovered:
    try:
        return _written(target, read_folders(folders))
    except MsprobeError as error:
        return Recovered(target, 0, str(error))


def _written(target: Path, files: list[KernelFile]) -> Recovered:
    task = "statistics" if all(file.statistics is not None for file in files) else "tensor"
    files = sorted(files, key=lambda file: file.timestamp)
    try:
        return Recovered(target, write_index(target, files, task=task))
    except (MsprobeError, OSError) as error:
        return Recovered(target, 0, str(error))
