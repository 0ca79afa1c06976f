"""An index of raw kernel files: ``dump.json`` and its companions of one step, in the one schema."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msprobe_ms.dump.kernels.entries import kernel_entries
from msprobe_ms.dump.kernels.kernel_file import KernelFile
from msprobe_ms.dump.names import INCOMPLETE
from msprobe_ms.dump.writing.export import dump_head, write_json
from msprobe_ms.dump.writing.journal import Envelope
from msprobe_ms.dump.writing.json_text import encode_text, field_text
from msprobe_ms.support.atomic import replacing
from msprobe_ms.support.log import logger
from msprobe_ms.support.permissions import DEFAULT, Permissions

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
        target.write(dump_head(Envelope(task, level, "mindspore", data_dir)))
        for entry in kernel_entries(files, cells=cells, data_folder=data_folder, unread=unread.append):
            fields = ",\n".join(field_text(key, value) for key, value in entry.body.items())
            separator = ",\n" if construct else "\n"
            target.write(f"{separator}  {encode_text(entry.name)}: {{\n{fields}\n  }}".encode("utf-8", "replace"))
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
            write_json(folder / "stack.json", stack, permissions)
            write_json(folder / "construct.json", construct, permissions)
    return len(construct)


def common_folder(files: Sequence[KernelFile]) -> Path | None:
    """``…/rank_R/Net`` of files in ``…/rank_R/Net/{graph}/{iteration}``; None without files."""
    above = {Path(*file.path.absolute().parts[:-3]) for file in files}
    return Path(os.path.commonpath(above)) if above else None
