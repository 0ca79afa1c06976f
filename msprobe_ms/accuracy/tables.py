"""Tables of checked calls, csv as msprobe writes them and as we do: one row a call, and one row an output.

UTF-8 with a byte order mark, as spreadsheet programs need it for Chinese titles. ``own`` has msprobe's columns for the
framework of the dump first, in their order, and ours behind them.
"""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging import findings as own
from msprobe_ms.accuracy.judging.model import ApiResult, Judged, Profile, Status
from msprobe_ms.comparison.reporting.csv_table import Cell, without_guard, write_csv
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr

#: Names of the files begin so, and end in a time of 14 digits.
RESULT, DETAILS = "accuracy_checking_result_", "accuracy_checking_details_"

#: Figure → its column in the details of PyTorch, in their order.
PYTORCH_TITLES: Mapping[str, str] = MappingProxyType(
    {
        fig.COSINE: "余弦相似度",
        fig.MAX_ABSOLUTE: "最大绝对误差",
        fig.WITHIN_HUNDREDTH: "双百指标",
        fig.WITHIN_THOUSANDTH: "双千指标",
        fig.WITHIN_TEN_THOUSANDTH: "双万指标",
        fig.UNEQUAL: "二进制一致错误率",
        fig.ERROR_BALANCE: "误差均衡性",
        fig.ROOT_MEAN_SQUARE: "均方根误差",
        fig.SMALL_VALUE_ERRORS: "小值域错误占比",
        fig.MAX_NORMAL_RELATIVE: "相对误差最大值",
        fig.MEAN_NORMAL_RELATIVE: "相对误差平均值",
        fig.NON_FINITE_ERRORS: "inf/nan错误率",
        fig.RELATIVE_ERRORS: "相对误差错误率",
        fig.ABSOLUTE_ERRORS: "绝对误差错误率",
        fig.MAX_ULP: "ULP误差最大值",
        fig.MEAN_ULP: "ULP误差平均值",
        fig.MANY_ULPS: "ULP误差大于阈值占比",
    }
)
MINDSPORE_TITLES: Mapping[str, str] = MappingProxyType(
    {fig.COSINE: "Cosine", fig.MAX_ABSOLUTE: "MaxAbsErr", fig.MAX_RELATIVE: "MaxRelativeErr"}
)
OWN_TITLES: Mapping[str, str] = MappingProxyType(
    {own.ULP: "Error in ULP", own.ALLOWED: "Allowed ULP", own.EXCESS: "Error over Allowed"}
)
NAME, DEVICE_DTYPES, STATUS, MESSAGE = "API Name", ("DEVICE Dtype", "Tested Dtype"), "Status", "Message"

#: Largest table read, in bytes, and rows of it: those of some hundred thousand calls have fewer.
_LARGEST, _MOST_ROWS = 1 << 30, 5_000_000


class Column(NamedTuple):
    """A column of the details."""

    title: str
    cell: Callable[[Judged], Cell]


def write_tables(
    folder: Path, timestamp: str, results: Sequence[ApiResult], profile: Profile, framework: str, *, digits: int = 14
) -> list[Path]:
    """Write ``accuracy_checking_result_{timestamp}.csv`` and ``…_details_…`` into ``folder``; return their paths.

    ``timestamp`` is ``YYYYmmddHHMMSS``; ``framework`` that of the dump. ``digits`` behind the point have figures of
    PyTorch in msprobe's own profiles.

    :raises UsageError: the folder cannot be written
    """
    columns = detail_columns(profile, framework, digits)
    details = ([column.cell(row) for column in columns] for result in results for row in result.details)
    rows = (_result_row(result, profile, framework) for result in results)
    paths = folder / f"{RESULT}{timestamp}.csv", folder / f"{DETAILS}{timestamp}.csv"
    write_table(paths[0], result_titles(framework), rows)
    write_table(paths[1], [column.title for column in columns], details)
    return list(paths)


def write_table(path: Path, titles: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write a csv file with a byte order mark, whole or not at all. Raises UsageError where that cannot be done."""
    with writing(path) as file:
        file.write(codecs.BOM_UTF8)
        write_csv(file, titles, rows)


def result_titles(framework: str) -> list[str]:
    """The columns of results."""
    return ["API name" if framework == "pytorch" else NAME, "Forward Test Success", "Backward Test Success", MESSAGE]


def detail_columns(profile: Profile, framework: str, digits: int = 14) -> list[Column]:
    """The columns of details, in order."""
    ours = [] if profile != "own" else _own_columns()
    if framework == "pytorch":
        shown = _shown if profile == "own" else lambda value: _fixed(value, digits)
        return [
            Column(NAME, lambda row: row.name),
            Column("Bench Dtype", lambda row: _dtype(row.bench_dtype, "torch", profile)),
            Column(DEVICE_DTYPES[0], lambda row: _dtype(row.device_dtype, "torch", profile)),
            Column("Shape", lambda row: _shape(row) or " "),
            *(_figure(title, key, shown) for key, title in PYTORCH_TITLES.items()),
            Column(STATUS, lambda row: status_text(row.status, profile, framework)),
            Column(MESSAGE, lambda row: row.message),
            *ours,
        ]
    others = {key: title for key, title in PYTORCH_TITLES.items() if key not in MINDSPORE_TITLES and ours}
    return [
        Column(NAME, lambda row: row.name),
        Column("Bench Dtype", lambda row: _dtype(row.bench_dtype, "torch", profile)),
        Column(DEVICE_DTYPES[1], lambda row: _dtype(row.device_dtype, "mindspore", profile)),
        Column("Shape", _shape),
        *(_figure(title, key, _blank) for key, title in MINDSPORE_TITLES.items()),
        Column(STATUS, lambda row: status_text(row.status, profile, framework)),
        Column(MESSAGE, lambda row: row.message),
        *(_figure(title, key, _shown) for key, title in others.items()),
        *ours,
    ]


def status_text(status: Status | None, profile: Profile, framework: str) -> str:
    """Return a status as the tables of a profile spell it; "" for a direction that the dump has not."""
    if status is Status.WARNING and profile == "v110" and framework == "pytorch":
        return "Warning"
    return "" if status is None else str(status)


def _result_row(result: ApiResult, profile: Profile, framework: str) -> list[Cell]:
    statuses = (status_text(status, profile, framework) for status in (result.forward, result.backward))
    return [result.name, *statuses, result.message]


def _own_columns() -> list[Column]:
    return [
        Column("Standard", lambda row: row.standard),
        Column("Rule", lambda row: row.rule),
        Column("Reference", lambda row: row.reference),
        *(_figure(title, key, _shown) for key, title in OWN_TITLES.items()),
        Column("msprobe Status", lambda row: "" if row.peer_status is None else str(row.peer_status)),
    ]


def _figure(title: str, key: str, shown: Callable[[float | None], Cell]) -> Column:
    return Column(title, lambda row: shown(row.figures.get(key)))


def _fixed(value: float | None, digits: int) -> str:
    return " " if value is None else f"{value:.{digits}f}"


def _shown(value: float | None) -> Cell:
    return " " if value is None else float(value)


def _blank(value: float | None) -> Cell:
    return None if value is None else float(value)


def _shape(row: Judged) -> str:
    return "" if row.shape is None else str(row.shape)


#: MindSpore's spelling of dtypes that are no capitalised word.
_MINDSPORE_DTYPES = {"bfloat16": "BFloat16"}


def _dtype(name: str, package: str, profile: Profile) -> str:
    """A dtype as msprobe's tables spell it; types of plain values stay."""
    known = name == "bool" or name.startswith(("int", "uint", "float", "bfloat", "complex", "hifloat"))
    if profile == "own" or not known or name in ("int", "float", "complex"):
        return name
    if package == "mindspore":
        return _MINDSPORE_DTYPES.get(name, name.replace("uint", "UInt") if "uint" in name else name.capitalize())
    return f"torch.{name}"


class Table(NamedTuple):
    """A table that was read: its columns, and each row's cells by them; a row may be short of some."""

    path: Path
    titles: tuple[str, ...]
    rows: list[dict[str, str]]


#: Characters of a cell that is read.
_LONGEST_CELL = 131_072


def read_table(path: Path) -> Table:
    """Read a csv table of any generation. Cells beyond the last column are left out.

    :raises DumpFormatError: naming the file, the line and what is wrong
    """
    try:
        with open_regular(path) as raw:
            if raw.seek(0, 2) > _LARGEST:
                raise DumpFormatError(
                    tr(
                        "{path}: larger than {largest} MiB, the most that is read of a table",
                        path=path,
                        largest=_LARGEST >> 20,
                    )
                )
            raw.seek(0)
            with TextIOWrapper(raw, "utf-8-sig", newline="") as file:
                return _table(path, csv.reader(file))
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}; a csv table is needed", path=path, strerror=error.strerror or error)
        ) from None
    except UnicodeDecodeError:
        raise DumpFormatError(
            tr("{path}: is no UTF-8 text; accepted are the tables that this tool writes", path=path)
        ) from None


def _table(path: Path, reader: Iterator[list[str]]) -> Table:
    number = 1
    try:
        titles = tuple(title.strip() for title in next(reader, []))
        twice = [title for title, count in Counter(titles).items() if title and count > 1]
        if twice:
            raise DumpFormatError(
                tr("{path}: has several columns {listed}; one of each is needed", path=path, listed=listed(twice))
            )
        rows: list[dict[str, str]] = []
        for number, row in enumerate(reader, 2):
            if number > _MOST_ROWS:
                raise DumpFormatError(
                    tr(
                        "{path}: has more than {most_rows} rows, the most that is read of a table",
                        path=path,
                        most_rows=_MOST_ROWS,
                    )
                )
            if any(len(cell) > _LONGEST_CELL for cell in row):  # csv's own limit is the process's: others change it
                raise DumpFormatError(
                    tr(
                        "{path}: line {number}: this is no csv table: a cell has more than {longest_cell} characters",
                        path=path,
                        number=number,
                        longest_cell=_LONGEST_CELL,
                    )
                )
            if any(row):
                rows.append(dict(zip(titles, map(without_guard, row), strict=False)))
    except csv.Error as error:
        raise DumpFormatError(
            tr("{path}: line {number}: this is no csv table: {error}", path=path, number=number + 1, error=error)
        ) from None
    return Table(path, titles, rows)
