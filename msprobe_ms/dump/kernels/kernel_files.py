"""Raw files of MindSpore's kernel dump: their folders, their names, what they hold.

A folder ``rank_R/Net/{graph}/{iteration}`` holds one file a tensor (docs/format.md, "Kernel files"), named so; kernel
by kernel execution adds the dtype, GE leaves it out::

    {op_type}.{op_name}.{task}.{stream}.{timestamp}.{input|output}.{slot}.{format}[.{dtype}].{npy|bin}

Parameters and graph inputs are files of op type ``Parameter``. A name too long for the file system is a number, and
``mapping.csv`` says what for. A dump of statistics has ``statistic.csv`` in their place.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays.npy import array_header, load_array
from msprobe_ms.arrays.statistics import Statistic, Statistics
from msprobe_ms.dump.names import PARAMETER
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError
from msprobe_ms.support.files import leads_out, open_regular
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

INPUT = "input"
OUTPUT = "output"

#: Names without a dtype (GE) whose two-byte items have none either can only be of this.
_TWO_BYTES = "BFloat16"

#: dtype texts by lower case, as dump.json spells them.
_DTYPES = {
    name.lower(): name
    for name in (
        "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float16", "Float32",
        "Float64", "BFloat16", "Complex64", "Complex128", "Float8E4M3FN", "Float8E5M2", "Int4", "HiFloat8",
    )
}  # fmt: skip

#: The longest names are texts of scopes; beyond this nobody wrote them.
_LONGEST_NAME = 1 << 16
_NAME = re.compile(
    r"(?P<op_type>[^.]+)\.(?P<op_name>.+)\.(?P<task>\d{1,18})\.(?P<stream>\d{1,18})\.(?P<timestamp>\d{1,30})"
    r"\.(?P<io>input|output)\.(?P<slot>\d{1,9})(?:\.(?P<format>[^.]+))?(?:\.(?P<dtype>[^.]+))?\.(?P<suffix>npy|bin)"
)

_SIZE, _MOST_DIMENSIONS = re.compile(r"\d{1,18}"), 64

MAPPING = "mapping.csv"
STATISTIC = "statistic.csv"

#: Columns that stand at fixed places in every age of the table (docs/format.md, "statistic.csv").
LEADING = ("Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot")
#: Columns found by name.
DATA_SIZE, DATA_TYPE, SHAPE = "Data Size", "Data Type", "Shape"
VALUES = ("Max Value", "Min Value", "Avg Value", "L2Norm Value")
NAN_COUNT, POSITIVE_INF_COUNT, NEGATIVE_INF_COUNT = "NaN Count", "Positive Inf Count", "Negative Inf Count"


def dtype_name(text: str) -> str:
    """Spell a dtype as dump.json does; a text that is none stays.

    >>> dtype_name("float32"), dtype_name("DT_FLOAT")
    ('Float32', 'DT_FLOAT')
    """
    return _DTYPES.get(text.strip().lower().removeprefix("kNumberType".lower()), text.strip())


@dataclass(frozen=True, slots=True)
class KernelFile:
    """One tensor that a kernel took in or gave out: a file, or a row of ``statistic.csv``.

    ``path``       the file; for a row the table that holds it
    ``op_name``    the scope path with ``_`` for ``/`` (as in file names), or with ``/`` where a table has it so
    ``timestamp``  microseconds; of one launch's files each may have its own
    ``io``         ``input`` or ``output``
    ``dtype``      as the name has it (``Float32``), None where it does not say
    ``shape``      known beforehand for rows of a table, and for ``.bin`` files that a table beside them speaks of
    ``statistics``    Max, Min, Mean, Norm of a row of a table; None for files
    """

    path: Path
    op_type: str
    op_name: str
    task: int
    stream: int
    timestamp: int
    io: str
    slot: int
    format: str = ""
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    statistics: Statistics | None = None

    @property
    def is_parameter(self) -> bool:
        return self.op_type == PARAMETER

    @property
    def order(self) -> tuple[int, bool, int]:
        """Sort key of launch order; of one moment inputs come first."""
        return self.timestamp, self.io == OUTPUT, self.slot

    def load(self) -> np.ndarray:
        """Load the tensor; bfloat16 as float32 with the same bits. A ``.bin`` of unknown shape is 1-D.

        :raises MissingTensorError: a row of a table, or the file is gone
        :raises DumpFormatError: the file is damaged, no regular file, or of a dtype that nothing tells
        """
        if self.statistics is not None:
            raise MissingTensorError(tr("{path}: holds statistics, no tensors", path=self.path))
        stored = self.dtype if self.path.suffix == ".bin" else self.dtype or _TWO_BYTES
        return load_array(self.path, stored, self.shape)

    def header(self) -> tuple[tuple[int, ...] | None, str | None]:
        """Read shape and dtype without the tensor, as far as they can be known. Raises as ``load``."""
        if self.statistics is not None or self.path.suffix == ".bin":
            return self.shape, self.dtype
        shape, stored = array_header(self.path, self.dtype or _TWO_BYTES)
        return shape, self.dtype or (_TWO_BYTES if stored.kind == "V" else dtype_name(stored.name))


def read_mapping(folder: Path) -> dict[str, str]:
    """Read short file names → the names they stand for; {} where the folder has no ``mapping.csv``.

    :raises DumpFormatError: the table cannot be read
    """
    path = folder / MAPPING
    if not path.exists():
        return {}
    return {row[0].strip(): row[1].strip() for row in _rows(path) if len(row) >= 2}


def read_statistics(path: Path) -> Iterator[KernelFile]:
    """Yield the rows of a ``statistic.csv``, with nine columns or more, in any age's order behind the first seven.

    A cut off last row, which a killed process leaves, and rows of other lengths are passed over.

    :raises DumpFormatError: no table of kernel statistics
    """
    header, rows = read_table(path)
    places = {title: place for place, title in enumerate(header)}
    for row in rows:
        if len(row) == len(header) and (read := _read_row(path, row, places)) is not None:
            yield read


def read_table(path: Path) -> tuple[list[str], Iterator[list[str]]]:
    """Read the header of a ``statistic.csv`` and its rows as they stand. Raises as ``read_statistics``."""
    rows = _rows(path)
    header = [title.strip() for title in next(rows, [])]
    if tuple(header[: len(LEADING)]) != LEADING:
        found = ", ".join(header[: len(LEADING)])[:200] or tr("missing")
        raise DumpFormatError(
            tr(
                "{path}: its first columns are {found}; accepted are {leading}",
                path=path,
                found=found,
                leading=tr_list(LEADING),
            )
        )
    return header, rows


def _rows(path: Path) -> Iterator[list[str]]:
    if leads_out(path, path.parent):
        raise DumpFormatError(tr("{path}: a link that leaves the folder", path=path))
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8", "replace")
        yield from csv.reader(io.StringIO(text.replace("\0", ""), newline=""))
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    except csv.Error as error:
        raise DumpFormatError(tr("{path}: not a table: {error}", path=path, error=error)) from error


def _read_row(path: Path, row: list[str], places: dict[str, int]) -> KernelFile | None:
    op_type, op_name, task, stream, timestamp, direction, slot = (cell.strip() for cell in row[: len(LEADING)])

    def cell(title: str) -> str:
        return row[places[title]].strip() if title in places else ""

    numbers = [_whole(text) for text in (task, stream, timestamp, slot)]
    if direction not in ("input", "output") or None in numbers:
        return None
    task_id, stream_id, moment, place = (number or 0 for number in numbers)
    dtype = dtype_name(cell(DATA_TYPE)) or None
    sizes = list(islice(_SIZE.finditer(cell(SHAPE)), _MOST_DIMENSIONS + 1))
    shape = tuple(int(size[0]) for size in sizes) if SHAPE in places and len(sizes) <= _MOST_DIMENSIONS else None
    maximum, minimum, mean, norm = (_statistic(cell(title)) for title in VALUES)
    # What takes the largest of the finite ones alone still says that there are others.
    if _whole(cell(NAN_COUNT)):
        maximum = minimum = mean = norm = math.nan
    if _whole(cell(POSITIVE_INF_COUNT)) and maximum == maximum:
        maximum = math.inf
    if _whole(cell(NEGATIVE_INF_COUNT)) and minimum == minimum:
        minimum = -math.inf
    statistics = Statistics(maximum, minimum, mean, norm)
    told = (op_type, op_name, task_id, stream_id, moment, direction, place)
    return KernelFile(path, *told, dtype=dtype, shape=shape, statistics=statistics)


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,30}", text) else None


def _statistic(text: str) -> Statistic:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return None


def parse_file_name(path: Path, name: str | None = None) -> KernelFile | None:
    """Parse the name of the kernel file at ``path``, or the ``name`` it stands for; None when it is no kernel file's.

    >>> file = parse_file_name(Path("MatMul.Default_fc-Dense_MatMul-op0.0.0.17.input.1.DefaultFormat.Float32.npy"))
    >>> file.op_name, file.io, file.slot, file.dtype
    ('Default_fc-Dense_MatMul-op0', 'input', 1, 'Float32')
    """
    name = path.name if name is None else name
    found = _NAME.fullmatch(name) if len(name) <= _LONGEST_NAME else None
    if found is None:
        return None
    dtype = dtype_name(found["dtype"]) if found["dtype"] else None
    return KernelFile(
        path,
        found["op_type"],
        found["op_name"],
        int(found["task"]),
        int(found["stream"]),
        int(found["timestamp"]),
        found["io"],
        int(found["slot"]),
        found["format"] or "",
        dtype,
    )


def read_kernel_files(paths: Iterable[Path]) -> list[KernelFile]:
    """Find the tensors that ``paths`` hold, in launch order; what is no kernel file is passed over.

    Of a ``statistic.csv`` among the paths every row is one, but for those whose tensor is there as a file. Short names
    are translated by the ``mapping.csv`` of their folder, and the table beside ``.bin`` files tells their dtype and
    shape. Nothing else is opened.

    :raises DumpFormatError: a table cannot be read
    """
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    files = [file for folder, inside in folders.items() for file in _read_folder(folder, inside)]
    return sorted(files, key=lambda file: (file.timestamp, str(file.path.parent), file.op_name, *file.order))


def _read_folder(folder: Path, paths: list[Path]) -> Iterator[KernelFile]:
    names = read_mapping(folder)
    files = [file for path in paths if (file := _named(path, names)) is not None]
    tables = [path for path in paths if path.name == STATISTIC]
    has_bytes = any(file.path.suffix == ".bin" for file in files)
    if not tables and has_bytes and (folder / STATISTIC).exists():
        tables = [folder / STATISTIC]
    rows = [row for path in tables for row in read_statistics(path)]
    told = {_identity(row): row for row in rows}
    for file in files:
        row = told.pop(_identity(file), None)
        if row is not None and file.path.suffix == ".bin":
            file = replace(file, dtype=file.dtype or row.dtype, shape=row.shape)
        yield file
    yield from (row for row in told.values() if row.path in paths)


def _named(path: Path, names: dict[str, str]) -> KernelFile | None:
    name = names.get(path.name) or names.get(path.stem)
    if name is None:
        return parse_file_name(path)
    found = parse_file_name(path, name if name.endswith(path.suffix) else name + path.suffix)
    if found is None:
        logger.warning(
            tr(
                "{path}: {mapping} says it stands for {name}, which is no kernel file",
                path=path,
                mapping=MAPPING,
                name=repr(name),
            )
        )
    return found


def _identity(file: KernelFile) -> tuple[object, ...]:
    return file.op_name.replace("/", "_"), file.task, file.stream, file.timestamp, file.io, file.slot


_ACCEPTED = tr(
    "accepted is a folder with kernel files as MindSpore dumps them: rank_R/Net/{graph}/{iteration}, or of GE "
    "{time}/{device}/{net}/{graph}/{iteration}"
)


class KernelFolder(NamedTuple):
    """A folder of raw files. ``step`` is the iteration as the framework counts it."""

    path: Path
    rank: int
    step: int

    @property
    def root(self) -> Path:
        """The folder that the rank's own stands in."""
        return self.path.parents[3]

    def files(self) -> list[KernelFile]:
        """Read its tensors in launch order. Raises DumpFormatError: it, or a table in it, cannot be read."""
        return read_folders([self])


def read_folders(folders: Collection[KernelFolder]) -> list[KernelFile]:
    """Read the tensors of several graphs and iterations in launch order. Raises DumpFormatError."""
    paths: list[Path] = []
    for folder in folders:
        try:
            inside = sorted(folder.path.iterdir())
        except OSError as error:
            raise DumpFormatError(
                tr("{path}: cannot be read: {strerror}", path=folder.path, strerror=error.strerror or error)
            ) from error
        outside = {path for path in inside if leads_out(path, folder.root)}
        if outside:
            logger.warning(
                tr(
                    "{path}: {count} links that leave the dump, first {name}; they are left out",
                    path=folder.path,
                    count=len(outside),
                    name=min(outside).name,
                ),
            )
        paths += [path for path in inside if path not in outside]
    return read_kernel_files(paths)


def find_kernel_folders(root: Path) -> list[KernelFolder]:
    """Find the folders in and below ``root``, by rank, step and graph; links to folders are not followed.

    :raises DumpFormatError: ``root`` is no folder
    """
    if not root.is_dir():
        raise DumpFormatError(tr("{root}: no such folder; {accepted}", root=root, accepted=_ACCEPTED))
    found = []
    for path, folders, names in os.walk(root.absolute()):
        folders[:] = [name for name in folders if not name.startswith((".", "earlier"))]
        place = _place(Path(path))
        if place is not None and not folders and any(_is_kernel_file(name) for name in names):
            found.append(KernelFolder(Path(path), *place))
    return sorted(found, key=lambda folder: (folder.rank, folder.step, folder.path))


def need_kernel_folders(root: Path) -> list[KernelFolder]:
    """Find folders as ``find_kernel_folders``; none is an error too."""
    found = find_kernel_folders(root)
    if not found:
        raise DumpFormatError(tr("{root}: no kernel files in it; {accepted}", root=root, accepted=_ACCEPTED))
    return found


def _place(path: Path) -> tuple[int, int] | None:
    """Rank and step of ``…/{rank}/{net}/{graph}/{iteration}``, or of a folder less; None for any other."""
    if len(path.parts) < 5:
        return None
    step = _number(path.parts[-1])
    ranks = (_number(path.parts[place].rpartition("_")[2]) for place in (-4, -3))
    rank = next((rank for rank in ranks if rank is not None), None)
    return None if rank is None or step is None else (rank, step)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _is_kernel_file(name: str) -> bool:
    return name in (MAPPING, STATISTIC) or parse_file_name(Path(name)) is not None
