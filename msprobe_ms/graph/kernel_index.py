"""An index of raw kernel files: ``dump.json`` and ``construct.json`` of one step, in the one schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msprobe_ms.graph.kernel_files import KernelFile


def write_index(
    folder: Path,
    files: Sequence[KernelFile],
    *,
    task: str,
    level: str = "L2",
    cells: Mapping[str, str] | None = None,
    data_folder: Path | None = None,
    extra_info: bool = True,
) -> int:
    """Write ``dump.json`` and ``construct.json`` of one step into ``folder``; return the number of entries.

    ``files``       as ``read_kernel_files`` gives them, of this step alone, of any number of graphs and iterations
    ``task``        ``statistics`` names no files in the index, so that they may be removed; ``tensor`` does
    ``cells``       the user's model, name → class name, as ``net.cells_and_names()`` has them; names are relative to it
    ``data_folder`` ``dump_data_dir`` of the index; by default the ``rank_R/Net`` that the files lie in
    ``extra_info``  False: no ``construct.json``

    Each tensor is read once, one at a time; a damaged one costs its own figures. Whole or absent, dump.json last.

    :raises OSError: the disk refuses
    """
    raise NotImplementedError
