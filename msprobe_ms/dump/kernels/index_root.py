"""Raw kernel files from anywhere → an index: of other tools' dumps, of GE's, and of runs that were killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from msprobe_ms.dump.kernels.folders import KernelFolder, find_kernel_folders, need_kernel_folders, read_folders
from msprobe_ms.dump.kernels.index import write_index
from msprobe_ms.dump.kernels.kernel_file import KernelFile
from msprobe_ms.dump.writing.export import Recovered
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.regular import open_regular


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
            yield Recovered(held, 0, "holds a dump already; give another folder with -o")
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
        self._written = 0.0
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
        self._written = max(self._written, index.stat().st_mtime)
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
        return [file for file in folder.files() if not self._speaks_of(file)]

    def _speaks_of(self, file: KernelFile) -> bool:
        if not self.steps:
            return False
        if self._has_tensors:
            return file.path.relative_to(self._net).as_posix() in self._names
        # Statistics name no files, but a table is written after the index, and tensors before it.
        return file.figures is not None or file.path.stat().st_mtime <= self._written


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
    task = "statistics" if all(file.figures is not None for file in files) else "tensor"
    files = sorted(files, key=lambda file: file.timestamp)
    try:
        return Recovered(target, write_index(target, files, task=task))
    except (MsprobeError, OSError) as error:
        return Recovered(target, 0, str(error))
