"""Entries of kernels in the schema of dump.json, from launches, one tensor in memory at a time.

``read_kernels`` makes a ``Dump`` of them in memory, without an index on disk.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from msprobe_ms.arrays.statistics import Statistics, statistics
from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.dialects import KERNEL, MINDSPORE
from msprobe_ms.dump.kernels.graphs import Graphs
from msprobe_ms.dump.kernels.kernel_files import INPUT, OUTPUT, KernelFile
from msprobe_ms.dump.kernels.launches import Launch, ScopePaths, Unwritten, launches
from msprobe_ms.dump.kernels.scope_path import Cells, cell_entry, parse_scope
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETER, RECOMPUTE, SCOPE, UNWRITTEN, api_entry, parse_entry
from msprobe_ms.dump.reading.items import call_items
from msprobe_ms.support.errors import MissingTensorError, MsprobeError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr


class KernelEntry(NamedTuple):
    """One entry of dump.json, its parent in construct.json and its frames in stack.json."""

    name: str
    body: dict[str, Any]
    parent: str | None
    launch: Launch
    call_site: tuple[str, ...] = ()


def _warn(text: str) -> None:
    logger.warning("%s", text)


def kernel_entries(
    files: Sequence[KernelFile],
    *,
    cells: Cells | None = None,
    data_folder: Path | None = None,
    unread: Callable[[str], None] = _warn,
) -> Iterator[KernelEntry]:
    """Yield entries ``Kernel.{Op}.{n}.forward|backward`` and ``Parameter.{name}.{n}.forward`` in launch order.

    ``n`` counts from 0 in each direction. Leaves have the tensor's dtype, shape and statistics, and with
    ``data_folder`` the place of its file in there. A tensor that cannot be read has no statistics; ``unread`` is
    told why.
    """
    builder = _Leaves(data_folder, unread)
    counts: Counter[tuple[str, str, str]] = Counter()
    scopes, graphs, unwritten = ScopePaths(), Graphs(files, cells), Unwritten()
    recorded = {file.io for file in files if not file.is_parameter}
    for launch in launches(files):
        path = scopes.path(launch)
        graph = graphs.of(launch.files[0].path.parent)
        scope = (graph and graph.scope(launch.op_name)) or parse_scope(path, cells)
        prefix, name = (PARAMETER, launch.op_name) if launch.is_parameter else (KERNEL, launch.op_type)
        direction = FORWARD if launch.is_parameter else scope.direction
        entry = api_entry(prefix, name, counts[prefix, name, direction], direction)
        counts[prefix, name, direction] += 1
        if launch.is_parameter:
            yield KernelEntry(entry, {"output": builder.leaves(launch, OUTPUT)}, None, launch)
            continue
        body: dict[str, Any] = {}
        if INPUT in recorded and direction == FORWARD:
            body = {"input_args": builder.leaves(launch, INPUT), "input_kwargs": {}}
        elif INPUT in recorded:
            body = {"input": builder.leaves(launch, INPUT)}
        if OUTPUT in recorded:
            body["output"] = builder.leaves(launch, OUTPUT)
            for slot in unwritten.slots(launch):
                if slot < len(body["output"]) and body["output"][slot] is not None:
                    body["output"][slot][UNWRITTEN] = True
        if scope.recomputed and direction != BACKWARD:
            body[RECOMPUTE] = True
        body[SCOPE] = path
        call_site = graph.call_site(launch.op_name) if graph else ()
        yield KernelEntry(entry, body, cell_entry(scope, cells), launch, call_site)


class _Leaves:
    """Turns files into leaves, each read once."""

    def __init__(self, data_folder: Path | None, unread: Callable[[str], None]) -> None:
        self._data_folder = data_folder
        self._unread = unread

    def leaves(self, launch: Launch, io: str) -> list[dict[str, Any] | None]:
        return [None if file is None else self._leaf(file) for file in launch.side(io)]

    def _leaf(self, file: KernelFile) -> dict[str, Any]:
        shape, dtype, found = self._summary(file)
        leaf: dict[str, Any] = {
            "type": MINDSPORE.tensor_type,
            "dtype": dtype or "unknown",
            "shape": None if shape is None else list(shape),
            **dict(zip(("Max", "Min", "Mean", "Norm"), found, strict=True)),
        }
        if self._data_folder is not None and file.statistics is None:
            leaf["data_name"] = Path(os.path.relpath(file.path, self._data_folder)).as_posix()
        return leaf

    def _summary(self, file: KernelFile) -> tuple[tuple[int, ...] | None, str | None, Statistics]:
        shape, dtype = file.shape, file.dtype
        if file.statistics is not None:
            return shape, dtype, file.statistics
        try:
            shape, dtype = file.header()
            array: np.ndarray = file.load()
            return array.shape, dtype, statistics(array)
        except (MsprobeError, MemoryError) as error:
            self._unread(str(error))
            return shape, dtype, Statistics(None, None, None, None)


class KernelTensors:
    """Loads tensors by item, from wherever their files lie."""

    def __init__(self) -> None:
        self.files: dict[str, KernelFile] = {}

    def load(self, item: Item) -> np.ndarray:
        """Load the tensor of ``item``. Raises as ``Tensors.load``."""
        file = self.files.get(item.name)
        if file is None:
            raise MissingTensorError(tr("{name}: there is no kernel file", name=item.name))
        return file.load()

    def where(self, item: Item) -> str:
        """Name the file of ``item``, or the table that holds its statistics."""
        file = self.files.get(item.name)
        return "" if file is None else str(file.path)


class KernelDump(Dump):
    """A dump of kernels, which also knows each entry's launch and each item's file."""

    launches: dict[str, Launch]
    files: dict[str, KernelFile]


def read_kernels(path: Path, files: Sequence[KernelFile], cells: Cells | None = None) -> KernelDump:
    """Read the kernels of ``files``, sorted as ``read_kernel_files`` does, as a dump; one tensor at a time is held.

    ``path`` stands for the dump in messages.
    """
    tensors = KernelTensors()
    has_tensors = any(file.statistics is None for file in files)
    task = "tensor" if has_tensors else "statistics"
    dump = KernelDump(path, task, "L2", MINDSPORE.name, task, "latest", {}, tensors)
    dump.launches, dump.files = {}, tensors.files
    table = ItemTable()
    # No file has a name below the root of all.
    for name, body, parent, launch, call_site in kernel_entries(files, cells=cells, data_folder=Path("/")):
        entry = Entry(name, parse_entry(name), call_items(table, name, body), parent, call_site)
        entry.scope = body.get(SCOPE, "")
        dump.entries[name] = entry
        dump.launches[name] = launch
        for item in entry.items:
            if item.path and (file := launch.side(item.state)[int(item.path[0])]) is not None:
                tensors.files[item.name] = file
    return dump
