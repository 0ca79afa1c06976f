"""Raw kernel files as a ``Dump`` in memory: its entries, without an index on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.kernels.entries import kernel_entries
from msprobe_ms.dump.kernels.kernel_file import KernelFile
from msprobe_ms.dump.kernels.launches import Launch
from msprobe_ms.dump.kernels.scope_path import Cells
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import SCOPE, parse_entry
from msprobe_ms.dump.reading.entries import call_items
from msprobe_ms.support.errors import MissingTensorError


class KernelTensors:
    """Loads tensors by item, from wherever their files lie."""

    def __init__(self) -> None:
        self.files: dict[str, KernelFile] = {}

    def load(self, item: Item) -> np.ndarray:
        """The tensor of ``item``. Raises as ``Tensors.load``."""
        file = self.files.get(item.name)
        if file is None:
            raise MissingTensorError(f"{item.name}: there is no kernel file")
        return file.load()

    def where(self, item: Item) -> str:
        """The file of ``item``, or the table that holds its figures."""
        file = self.files.get(item.name)
        return "" if file is None else str(file.path)


class KernelDump(Dump):
    """A dump of kernels, which also knows each entry's launch and each item's file."""

    launches: dict[str, Launch]
    files: dict[str, KernelFile]


def read_kernels(path: Path, files: Sequence[KernelFile], cells: Cells | None = None) -> KernelDump:
    """The kernels of ``files``, which are sorted as ``read_kernel_files`` does; figures are read, one tensor at a time.

    ``path`` stands for the dump in messages.
    """
    tensors = KernelTensors()
    has_tensors = any(file.figures is None for file in files)
    task = "tensor" if has_tensors else "statistics"
    dump = KernelDump(path, task, "L2", "mindspore", task, "latest", {}, tensors)
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
