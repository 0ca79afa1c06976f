"""The two tables that a kernel dump may hold: ``mapping.csv`` (short names) and ``statistic.csv`` (figures)."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msprobe_ms.arrays.statistics import Statistic, Statistics
from msprobe_ms.dump.kernels.kernel_file import KernelFile, dtype_name
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.regular import leads_out, open_regular

_SIZE, _MOST_DIMENSIONS = re.compile(r"\d{1,18}"), 64

MAPPING = "mapping.csv"
STATISTIC = "statistic.csv"

#: Columns that stand at fixed places in every age of the table (docs/format.md, "statistic.csv").
LEADING = ("Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot")
#: Columns found by name.
DATA_SIZE, DATA_TYPE, SHAPE = "Data Size", "Data Type", "Shape"
FIGURES = ("Max Value", "Min Value", "Avg Value", "L2Norm Value")
NAN_COUNT, POSITIVE_INF_COUNT, NEGATIVE_INF_COUNT = "NaN Count", "Positive Inf Count", "Negative Inf Count"


def read_mapping(folder: Path) -> dict[str, str]:
    """Short file name → the name it stands for; {} where the folder has no ``mapping.csv``.

    :raises DumpFormatError: the table cannot be read
    """
    path = folder / MAPPING
    if not path.exists():
        return {}
    return {row[0].strip(): row[1].strip() for row in _rows(path) if len(row) >= 2}


def read_statistics(path: Path) -> Iterator[KernelFile]:
    """The rows of a ``statistic.csv``, with nine columns or more, in any age's order behind the first seven.

    A cut off last row, which a killed process leaves, and rows of other lengths are passed over.

    :raises DumpFormatError: no table of kernel statistics
    """
    header, rows = read_table(path)
    places = {title: place for place, title in enumerate(header)}
    for row in rows:
        if len(row) == len(header) and (read := _read_row(path, row, places)) is not None:
            yield read


def read_table(path: Path) -> tuple[list[str], Iterator[list[str]]]:
    """The header of a ``statistic.csv`` and its rows as they stand. Raises as ``read_statistics``."""
    rows = _rows(path)
    header = [title.strip() for title in next(rows, [])]
    if tuple(header[: len(LEADING)]) != LEADING:
        found = ", ".join(header[: len(LEADING)])[:200] or "missing"
        raise DumpFormatError(f"{path}: its first columns are {found}; accepted are {', '.join(LEADING)}")
    return header, rows


def _rows(path: Path) -> Iterator[list[str]]:
    if leads_out(path, path.parent):
        raise DumpFormatError(f"{path}: a link that leaves the folder")
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8", "replace")
        yield from csv.reader(io.StringIO(text.replace("\0", ""), newline=""))
    except OSError as error:
        raise DumpFormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except csv.Error as error:
        raise DumpFormatError(f"{path}: not a table: {error}") from error


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
    maximum, minimum, mean, norm = (_figure(cell(title)) for title in FIGURES)
    # What takes the largest of the finite ones alone still says that there are others.
    if _whole(cell(NAN_COUNT)):
        maximum = minimum = mean = norm = math.nan
    if _whole(cell(POSITIVE_INF_COUNT)) and maximum == maximum:
        maximum = math.inf
    if _whole(cell(NEGATIVE_INF_COUNT)) and minimum == minimum:
        minimum = -math.inf
    figures = Statistics(maximum, minimum, mean, norm)
    told = (op_type, op_name, task_id, stream_id, moment, direction, place)
    return KernelFile(path, *told, dtype=dtype, shape=shape, figures=figures)


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,30}", text) else None


def _figure(text: str) -> Statistic:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return None
