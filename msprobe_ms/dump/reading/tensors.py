"""Load tensor files of a dump by item. Names in a dump are never trusted to stay in their folder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.npy import check_regular, load_array
from msprobe_ms.arrays.torch_file import load_tensor
from msprobe_ms.dump.model import Item
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError

TENSOR_FOLDER = "dump_tensor_data"


class TensorSource:
    """Loads the tensors of one dump, one at a time; nothing is kept.

    ``folder`` is where they lie: ``dump_tensor_data`` beside dump.json, else the folder recorded in dump.json as
    ``dump_data_dir``, or what has its last two names (``rank_0/Net``) in the same dump after that was moved; None when
    none of them exists. ``elsewhere`` tells that it is the recorded one and lies outside of the dump.
    """

    def __init__(self, dump_folder: Path, recorded: str | None = None) -> None:
        candidates = [dump_folder / TENSOR_FOLDER, *_moved_with(dump_folder, recorded)]
        if recorded:
            candidates.append(Path(recorded))
        self.folder = next((folder for folder in candidates if _is_folder(folder)), None)
        self._real_folder = os.path.realpath(self.folder) if self.folder is not None else ""
        # Of the candidates the recorded one is tried last.
        taken = self.folder if recorded and self.folder is candidates[-1] else None
        self.elsewhere = taken is not None and not _is_within(taken, dump_folder)
        self._looked_in = " or ".join(str(folder) for folder in candidates)

    def load(self, item: Item) -> np.ndarray:
        """Load the tensor of ``item``, with the shape and dtype it was saved with; bfloat16 and float8 as float32.

        The array may be read-only and strided. ``.npy``, ``.pt`` and ``.bin`` are read, none with pickle's help.

        :raises MissingTensorError: the item has no file: none was recorded, or it is not there
        :raises DumpFormatError: the file is damaged, or its name leads out of the folder
        """
        if item.data_name is None:
            raise MissingTensorError(f"{item.name}: no data_name is recorded in the dump")
        path = self._path(item.data_name, item.name)
        if path.suffix == ".pt":
            return load_tensor(path)
        return load_array(path, item.dtype, item.shape if isinstance(item.shape, tuple) else None)

    def where(self, item: Item) -> str:
        """Name the file of ``item`` for a person to look at; "" where the dump has none."""
        return "" if item.data_name is None or self.folder is None else str(self.folder / item.data_name)

    def _path(self, data_name: str, item_name: str) -> Path:
        """The file of ``data_name``: a regular file within the folder, or in folders below it."""
        shown = f"{item_name}: data_name {data_name[:300]!r}"
        if not data_name.endswith((".npy", ".pt", ".bin")):
            raise DumpFormatError(f"{shown}: accepted are names that end in .npy, .pt or .bin")
        if not {"", ".", ".."}.isdisjoint(data_name.split("/")) or "\\" in data_name or "\0" in data_name:
            raise DumpFormatError(f"{shown}: accepted is a file name, with folders below {TENSOR_FOLDER} alone")
        if self.folder is None:
            raise MissingTensorError(f"{shown}: there is no folder {self._looked_in}")
        path = self.folder / data_name
        try:
            real = Path(self._real_folder, data_name)
            if "/" in data_name or real.is_symlink():  # any other file is where its name says
                real = Path(os.path.realpath(real))
            if not real.is_relative_to(self._real_folder):
                raise DumpFormatError(f"{shown}: a link that leaves {self.folder}")
        except (OSError, ValueError) as error:
            raise DumpFormatError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        check_regular(real)
        return real


def _moved_with(dump_folder: Path, recorded: str | None) -> list[Path]:
    """Where ``…/rank_R/Net`` lies now: the index stands in ``[graph/]step{N}/rank{R}`` of the same dump."""
    tail = Path(recorded).parts[-2:] if recorded else ()
    if len(tail) < 2 or not tail[0].startswith("rank_") or ".." in tail:
        return []
    return [above.joinpath(*tail) for above in dump_folder.absolute().parents[1:3]]


def _is_within(folder: Path, dump_folder: Path) -> bool:
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(dump_folder))


def _is_folder(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except (OSError, ValueError):  # a recorded folder can hold anything
        return False
