"""Convert tensor files of dumps into files that other programs read: ``.npy``, ``.txt`` and ``.csv``.

Files are converted one by one: a bad one costs itself, nothing is overwritten unasked. Of ``.bin``, which is bytes
alone, the files around it say what it holds.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from msprobe_ms.arrays.dtypes import narrow_width
from msprobe_ms.arrays.npy import array_header, check_regular, load_array, write_npy
from msprobe_ms.arrays.torch_file import read_tensor
from msprobe_ms.dump.kernels.kernel_files import read_kernel_files
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.reading.locate import DUMP_FILES
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.files import DEFAULT, leads_out, replacing
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

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
        """Read the array, bfloat16 and float8 as float32, and the dtype that the file holds.

        :raises DumpFormatError: the file is missing, damaged, or nothing tells what it holds
        """
        check_regular(path)
        if path.suffix == ".pt":
            return read_tensor(path)
        if path.suffix not in SUFFIXES:
            raise DumpFormatError(
                tr("{path}: accepted are files that end in {suffixes}", path=path, suffixes=tr_list(SUFFIXES))
            )
        dtype, shape = self._said_of(path)
        try:
            array = load_array(path, dtype, shape)
        except DumpFormatError as error:
            if dtype is None and ("no dtype" in str(error) or "dtype |V" in str(error)):
                raise DumpFormatError(tr("{error}; say what it is with --dtype and --shape", error=error)) from error
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
                    dump = read_dump(file, sketches=False)
                except DumpFormatError as error:
                    logger.warning(tr("{error}; it is not asked what the tensors beside it are", error=error))
                else:
                    items = (item for entry in dump.entries.values() for item in entry.items if item.data_name)
                    self._dumps[file] = {str(item.data_name).rpartition("/")[2]: item for item in items}
        return self._dumps[file]


#: Elements turned into text at a time.
_ELEMENTS = 1 << 16


def write_text(file: BinaryIO, array: np.ndarray, dtype: str) -> None:
    """Shape and dtype in a comment, then one line a row of the last axis; ``numpy.loadtxt(path).reshape(shape)`` reads
    it back. Of more than two axes a comment with its index comes before each block of rows."""
    file.write(f"# shape {tuple(array.shape)} dtype {dtype}\n".encode())
    if array.ndim <= 2:
        _write_rows(file, _rows_of(array), " ")
        return
    for index in np.ndindex(array.shape[:-2]):
        file.write(f"# [{', '.join(map(str, index))}]\n".encode())
        _write_rows(file, array[index], " ")


def write_csv(file: BinaryIO, array: np.ndarray, dtype: str) -> None:
    """One line a row of the last axis, all others one after the other; of one axis or none a number a line."""
    _write_rows(file, _rows_of(array), ",")


def _write_npy(file: BinaryIO, array: np.ndarray, dtype: str) -> None:
    write_npy(file, array)


WRITERS: Mapping[str, Callable[[BinaryIO, np.ndarray, str], None]] = {
    "npy": _write_npy,
    "txt": write_text,
    "csv": write_csv,
}


def _rows_of(array: np.ndarray) -> np.ndarray:
    if array.ndim < 2:
        return array.reshape(-1, 1)
    return array.reshape(-1, array.shape[-1]) if array.size else array.reshape(0, 1)


def _write_rows(file: BinaryIO, rows: np.ndarray, delimiter: str) -> None:
    if not rows.size:
        return
    height, width = max(1, _ELEMENTS // rows.shape[1]), rows.shape[1]
    for top in range(0, len(rows), height):
        # Of more than one row at a time the width is below the bound: there is one part then.
        for left in range(0, width, _ELEMENTS):
            block = rows[top : top + height, left : left + _ELEMENTS]
            end = "\n" if left + _ELEMENTS >= width else delimiter
            file.write(_text_of(block, delimiter, end).encode("ascii"))


def _text_of(block: np.ndarray, delimiter: str, end: str) -> str:
    if block.dtype.kind == "c":
        return "".join(delimiter.join(map(_complex, row)) + end for row in block.tolist())
    text = io.StringIO()
    # The text of a float is the shortest that reads back as the same number.
    np.savetxt(text, block, "%s" if block.dtype.kind == "f" else "%d", delimiter, end)
    return text.getvalue()


def _complex(number: complex) -> str:
    return f"{number.real:.17g}{number.imag:+.17g}j"


@dataclass(frozen=True)
class Converted:
    """One file: what became of it. ``problem`` is "" where ``written`` was."""

    source: Path
    written: Path
    told: str = ""
    problem: str = ""


def convert(
    paths: Sequence[Path], kind: str, folder: Path | None, source: Source, *, overwrite: bool = False
) -> Iterator[Converted]:
    """Write each file of ``paths`` (folders: every tensor file in them) as ``kind``: npy, txt or csv.

    The result stands beside the file, or in ``folder``, where files of a folder keep their subfolders.
    """
    made: set[Path] = set()
    for path, inner, is_outside in _files(paths):
        target = (path.parent if folder is None else folder / inner.parent) / f"{path.stem}.{kind}"
        try:
            if is_outside:
                raise DumpFormatError(
                    tr("{path}: a link that leaves the folder; name the file itself to convert it", path=path)
                )
            if (
                target in made
                or os.path.realpath(target) == os.path.realpath(path)
                or (target.exists() and not overwrite)
            ):
                raise DumpFormatError(
                    tr(
                        "{path}: {target} exists; {way_out}",
                        path=path,
                        target=target,
                        way_out=_way_out(path, target, made),
                    )
                )
            yield Converted(path, target, _convert(path, target, kind, source))
            made.add(target)
        except MsprobeError as error:
            yield Converted(path, target, problem=str(error))
        except MemoryError:
            yield Converted(path, target, problem=too_large(path))
        except OSError as error:
            reason = tr("{target}: cannot be written: {strerror}", target=target, strerror=error.strerror or error)
            yield Converted(path, target, problem=reason)


def too_large(path: Path) -> str:
    """Return what is wrong with a file whose tensors do not fit into memory."""
    return tr("{path}: not enough memory for it", path=path)


def _way_out(path: Path, target: Path, made: set[Path]) -> str:
    if target in made:
        return tr("another file of this run became it; convert them into different folders")
    return (
        tr("give another folder with -o")
        if os.path.realpath(target) == os.path.realpath(path)
        else tr("--overwrite replaces it")
    )


def _convert(path: Path, target: Path, kind: str, source: Source) -> str:
    """What was written, in words."""
    array, dtype = source.read(path)
    DEFAULT.make_folder(target.parent)
    with replacing(target) as file:
        WRITERS[kind](file, array, dtype)
    told = f"{dtype} {tuple(array.shape)}"
    if narrow_width(dtype):
        told += tr(", as float32")
    if kind == "csv" and array.ndim > 2:
        told += tr(", as {size} rows of {shape}", size=array.size // max(1, array.shape[-1]), shape=array.shape[-1])
    if path.suffix == ".bin" and source.shape is None and array.ndim == 1:
        told += tr("; if it has another shape, --shape says so")
    return told


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, Path, bool]]:
    """Every file with its place below the folder it was found in, and whether it is a link that leaves that folder."""
    for path in paths:
        if not path.is_dir():
            yield path, Path(path.name), False
            continue
        for above, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                file = Path(above, name)
                if file.suffix in SUFFIXES:
                    yield file, file.relative_to(path), leads_out(file, path)
