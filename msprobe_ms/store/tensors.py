"""The tensor files of one dump: an item → its numbers. Names in a dump are never trusted to stay in their folder."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from msprobe_ms.errors import DumpFormatError, MissingTensorError
from msprobe_ms.store import narrow_floats
from msprobe_ms.store.torch_file import load_tensor

if TYPE_CHECKING:
    from msprobe_ms.store.model import Item

TENSOR_FOLDER = "dump_tensor_data"


class TensorSource:
    """Loads the tensors of one dump, one at a time; nothing is kept.

    ``folder`` is where they lie: ``dump_tensor_data`` beside dump.json, else the folder recorded in dump.json as
    ``dump_data_dir``; None when neither exists.
    """

    def __init__(self, dump_folder: Path, recorded: str | None = None) -> None:
        candidates = [dump_folder / TENSOR_FOLDER, *([Path(recorded)] if recorded else [])]
        self.folder = next((folder for folder in candidates if _is_folder(folder)), None)
        self._looked_in = " or ".join(str(folder) for folder in candidates)

    def load(self, item: Item) -> np.ndarray:
        """The tensor of ``item``, with the shape and dtype it was saved with; bfloat16 and float8 as float32.

        The array may be read-only and strided. ``.npy`` and ``.pt`` are read, neither with pickle's help.

        :raises MissingTensorError: the item has no file: none was recorded, or it is not there
        :raises DumpFormatError: the file is damaged, or its name leads out of the folder
        """
        if item.data_name is None:
            raise MissingTensorError(f"{item.name}: no data_name is recorded in the dump")
        path = self._path(item.data_name, item.name)
        if path.suffix == ".pt":
            return load_tensor(path)
        return _load_npy(path, item.dtype)

    def _path(self, data_name: str, item_name: str) -> Path:
        """The file of ``data_name``, which must be a plain name of a regular file within the folder."""
        shown = f"{item_name}: data_name {data_name[:300]!r}"
        if not data_name.endswith((".npy", ".pt")):
            raise DumpFormatError(f"{shown}: accepted are names that end in .npy or .pt")
        if data_name != os.path.basename(data_name) or "\\" in data_name or "\0" in data_name:
            raise DumpFormatError(f"{shown}: accepted is a plain file name, without a folder")
        if self.folder is None:
            raise MissingTensorError(f"{shown}: there is no folder {self._looked_in}")
        path = self.folder / data_name
        try:
            real = Path(os.path.realpath(path))
            if not real.is_relative_to(os.path.realpath(self.folder)):
                raise DumpFormatError(f"{shown}: a link that leaves {self.folder}")
            if not stat.S_ISREG(os.stat(real).st_mode):  # a pipe would wait for ever
                raise DumpFormatError(f"{path}: not a regular file")
        except FileNotFoundError as error:
            raise MissingTensorError(f"{path}: no such file") from error
        except (OSError, ValueError) as error:
            raise DumpFormatError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        return real


def _is_folder(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except (OSError, ValueError):  # a recorded folder can hold anything
        return False


def _load_npy(path: Path, dtype: str | None) -> np.ndarray:
    """The array of one ``.npy`` file; ``dtype`` is the item's, to tell what two-byte items without a type mean."""
    shape: tuple[int, ...] = ()
    try:
        with open(path, "rb") as file:
            shape, column_major, stored = _read_header(path, file, dtype)
            room = os.fstat(file.fileno()).st_size - file.tell()
            count = math.prod(shape)
            if count * stored.itemsize > room:
                raise DumpFormatError(
                    f"{path}: shape {shape} of {stored} takes {count * stored.itemsize} bytes, {room} are there"
                )
            array = np.fromfile(file, stored, count).reshape(shape, order="F" if column_major else "C")
    except OSError as error:
        raise DumpFormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, OverflowError) as error:  # more or larger dimensions than numpy has, though without elements
        raise DumpFormatError(f"{path}: shape {str(shape)[:100]} is impossible: {error}") from error
    if stored.kind == "V":
        return narrow_floats.widen(array.view(f"<u{stored.itemsize}"), dtype or "")
    return array


def _read_header(path: Path, file: BinaryIO, dtype: str | None) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and dtype, which is one of plain numbers or of ``narrow_floats``."""
    try:
        npy: Any = np.lib.format
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
        shape, column_major, stored = read(file)
    except OSError:
        raise
    except Exception as error:  # numpy evaluates the header as a literal, which can fail in any way
        raise DumpFormatError(f"{path}: the .npy header is damaged: {str(error)[:200]}") from error
    if any(size < 0 for size in shape):
        raise DumpFormatError(f"{path}: the .npy header is damaged: shape {shape}")
    narrow = narrow_floats.bytes_of(dtype) if dtype else None
    if stored.subdtype or (stored.kind not in "biufc" and not (stored.kind == "V" and stored.itemsize == narrow)):
        shown = f"dtype {str(stored)[:100]}, and {dtype} in the dump"
        raise DumpFormatError(f"{path}: {shown}; accepted are numbers")
    return shape, column_major, stored
