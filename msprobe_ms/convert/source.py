"""What a tensor file holds: its array, and of ``.bin``, which is bytes alone, what the files around it say."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.npy import array_header, check_regular, load_array
from msprobe_ms.arrays.torch_file import read_tensor
from msprobe_ms.dump.kernels.kernel_files import read_kernel_files
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.reading.locate import DUMP_FILES
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.log import logger

SUFFIXES = (".npy", ".bin", ".pt")

Shape = tuple[int, ...]


@dataclass
class Source:
    """Reads tensor files; ``dtype`` and ``shape`` are what the user says of them, and come first."""

    dtype: str | None = None
    shape: Shape | None = None
    #: dump.json → its items by the file's name.
    _dumps: dict[Path, dict[str, Item]] = field(default_factory=dict)

    def read(self, path: Path) -> tuple[np.ndarray, str]:
        """The array, bfloat16 and float8 as float32, and the dtype that the file holds.

        :raises DumpFormatError: the file is missing, damaged, or nothing tells what it holds
        """
        check_regular(path)
        if path.suffix == ".pt":
            return read_tensor(path)
        if path.suffix not in SUFFIXES:
            raise DumpFormatError(f"{path}: accepted are files that end in {', '.join(SUFFIXES)}")
        dtype, shape = self._said_of(path)
        try:
            array = load_array(path, dtype, shape)
        except DumpFormatError as error:
            if dtype is None and ("no dtype" in str(error) or "dtype |V" in str(error)):
                raise DumpFormatError(f"{error}; say what it is with --dtype and --shape") from error
            raise
        if path.suffix == ".npy":
            stored = array_header(path, dtype)[1]
            return array, dtype if stored.kind == "V" and dtype else stored.name
        return array, str(dtype)

    def _said_of(self, path: Path) -> tuple[str | None, Shape | None]:
        """Dtype and shape: what the user says, else the dump.json beside the file, else its name as kernels' files have
        it and the table beside it."""
        dtype, shape = self.dtype, self.shape
        if (dtype is None or shape is None) and (item := self._item(path)) is not None:
            dtype = dtype or item.dtype
            shape = shape if shape is not None else item.shape if isinstance(item.shape, tuple) else None
        if dtype is None or shape is None:
            for file in read_kernel_files([path]):
                dtype, shape = dtype or file.dtype, shape if shape is not None else file.shape
        return dtype, shape

    def _item(self, path: Path) -> Item | None:
        """What a dump.json in the file's folder, or the one above, says of it."""
        for folder in path.absolute().parents[:2]:
            for name in DUMP_FILES:
                if (found := self._items(folder / name).get(path.name)) is not None:
                    return found
        return None

    def _items(self, file: Path) -> dict[str, Item]:
        if file not in self._dumps:
            self._dumps[file] = {}
            if file.is_file():
                try:
                    dump = read_dump(file)
                except DumpFormatError as error:
                    logger.warning("%s; it is not asked what the tensors beside it are", error)
                else:
                    items = (item for entry in dump.entries.values() for item in entry.items if item.data_name)
                    self._dumps[file] = {str(item.data_name).rpartition("/")[2]: item for item in items}
        return self._dumps[file]
