"""Merge single columns of the tables of many ranks into one workbook (``merge_result``).

What is read and written: docs/format.md, "Merged tables".
"""

from __future__ import annotations

import csv
import math
import re
import reprlib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from io import SEEK_END, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from msprobe_ms.comparison.reporting.csv_table import without_guard
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.reporting.legend import LEGEND_SHEET
from msprobe_ms.comparison.reporting.profiles.base import BENCH_TITLES, DIFFERENCE_TITLES, NPU_TITLES
from msprobe_ms.comparison.reporting.xlsx_table import ROWS_A_SHEET, workbook, writable
from msprobe_ms.support.errors import ConfigError, DumpFormatError, UsageError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import suggestion
from msprobe_ms.support.translation import tr, tr_join, tr_list
from msprobe_ms.support.yaml_files import UnreadableError, read_texts

NAME = "NPU Name"
#: Names of tables: as this package writes them, as 1.1.0 does (``rank0-rank0``) and later versions (``_part_1``).
_TABLE = re.compile(
    r"compare_result_(?P<half>graph_|pynative_)?(?:step(?P<step>\d+)_)?(?P<rank>rank(?P<number>\d+)|proc\d+)"
    r"(?:-(?:rank|proc)\d+)?_(?P<time>\d{14})(?:_part_(?P<part>\d+))?\.(?:xlsx|csv)"
)
#: Excel's limits: characters of a sheet's name, and which it may not have.
_LONGEST_TITLE, _NOT_IN_TITLES = 31, re.compile(r"[\[\]:*?/\\]")
#: Excel's limit of columns.
_MOST_COLUMNS = 16_384
#: How many times its size a workbook may unpack to (tables take 10 to 30), and bytes that any may.
_MOST_UNPACKED, _UNPACKED_ANYWAY = 100, 1 << 20
#: Largest configuration read, in bytes.
_LARGEST = 2**18

_ACCEPTED = tr(
    "expected api: [Functional.conv2d, …] (beginnings of names; without it every row) and "
    "compare_index: [Max diff, …] (columns of the tables)"
)

Cell = str | float | None


class Choice(NamedTuple):
    """What to merge: rows whose name begins with one of ``apis`` (all when empty), and titles of columns."""

    apis: tuple[str, ...]
    indices: list[str]


class Column(NamedTuple):
    """One rank (of one step): its title in the workbook, and the files of its table."""

    title: str
    files: list[Path]


@dataclass
class _Merged:
    """``values[index][rank]`` holds that column's cells by the number of the row's name."""

    numbers: dict[str, int] = field(default_factory=dict)
    values: dict[str, dict[str, dict[int, Cell]]] = field(default_factory=dict)


def read_choice(path: Path) -> Choice:
    """Read the configuration ``{api: […], compare_index: […]}``.

    :raises ConfigError: it cannot be read, or is not of this form
    """
    try:
        content = read_texts(path, _LARGEST)
    except UnreadableError as error:
        raise ConfigError(tr("{path}: {error}; {accepted}", path=path, error=error, accepted=_ACCEPTED)) from None
    if not isinstance(content, dict):
        raise ConfigError(tr("{path}: holds no keys; {accepted}", path=path, accepted=_ACCEPTED))
    for key in content:
        if key not in ("api", "compare_index"):
            logger.warning(
                tr(
                    "{path}: {key} is no key of it and left out; {accepted}",
                    path=path,
                    key=repr(key),
                    accepted=_ACCEPTED,
                )
            )
    return Choice(tuple(_texts(path, content, "api")), _texts(path, content, "compare_index", needed=True))


#: An alias in yaml can make ten lines a value of any size.
_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2


def _texts(path: Path, content: Mapping[Any, Any], key: str, *, needed: bool = False) -> list[str]:
    given = content.get(key, None if needed else [])
    bad = not isinstance(given, list) or not all(isinstance(each, str) and each for each in given)
    if bad or (needed and not given):
        raise ConfigError(
            tr(
                "{path}: {key}: {given} is not accepted; {accepted}",
                path=path,
                key=key,
                given=_SHORT.repr(given),
                accepted=_ACCEPTED,
            )
        )
    return list(dict.fromkeys(given or ()))


def merge(folder: Path, output: Path, choice: Choice, timestamp: str) -> Path:
    """Write ``multi_ranks_compare_merge_{timestamp}.xlsx``: a sheet a column of the tables, a column a rank.

    Tables that cannot be read, and columns and names that no table has, are told and left out.

    :raises MsprobeError: there are fewer than two tables, or nothing to merge in them
    """
    columns = find_tables(folder)
    if len(columns) < 2:
        raise UsageError(
            tr(
                "{folder}: {count} tables of ranks, two are needed; accepted are "
                "compare_result_rank0_<time>.xlsx and .csv",
                folder=folder,
                count=len(columns),
            )
        )
    if len(columns) >= _MOST_COLUMNS:
        raise UsageError(
            tr(
                "{folder}: {count} tables; a sheet has room for {most_columns}",
                folder=folder,
                count=len(columns),
                most_columns=_MOST_COLUMNS - 1,
            )
        )
    merged = _Merged()
    seen: set[str] = set()
    read = [column.title for column in columns if _read(column, choice, merged, seen)]
    indices = _known(choice, merged, seen, folder)
    for api in choice.apis:
        if not any(name.startswith(api) for name in merged.numbers):
            logger.warning(
                tr("{folder}: no table has a row whose name begins with {api}", folder=folder, api=repr(api))
            )
    if not merged.numbers:
        raise UsageError(
            tr(
                "{folder}: none of its tables has a row whose name begins with {apis}",
                folder=folder,
                apis=tr_join(tr(" or "), choice.apis),
            )
        )
    path = output / f"multi_ranks_compare_merge_{timestamp}.xlsx"
    _write(path, merged, indices, read)
    return path


def find_tables(folder: Path) -> list[Column]:
    """Find the newest table of every rank and step, in numeric order; other reports are logged and left out.

    :raises UsageError: no such folder
    """
    if not folder.is_dir():
        raise UsageError(
            tr("{folder}: no such folder; accepted is one with the tables of ranks that compare wrote", folder=folder)
        )
    tables: dict[tuple[int, int, str], dict[tuple[str, str], list[tuple[int, Path]]]] = {}
    for path in sorted(folder.glob("compare_result*")):
        found = _TABLE.fullmatch(path.name)
        if found is None:
            logger.warning(tr("{path}: not the name of a rank's table; left out", path=path))
            continue
        step = -1 if found["step"] is None else int(found["step"])
        rank = -1 if found["number"] is None else int(found["number"])
        title = (
            (found["half"] or "").replace("_", " ")
            + (tr("step{step} ", step=step) if step >= 0 else "")
            + found["rank"]
        )
        versions = tables.setdefault((step, rank, title), {})
        # Of one moment a csv is read faster than an xlsx.
        order = found["time"], "b" if path.suffix == ".csv" else "a"
        versions.setdefault(order, []).append((int(found["part"] or 0), path))
    columns = []
    for (*_, title), versions in sorted(tables.items()):
        newest = max(versions)
        if len(versions) > 1:
            name = versions[newest][0][1].name
            logger.warning(
                tr(
                    "{folder}: several tables of {title}: the newest is taken, {name}",
                    folder=folder,
                    title=title,
                    name=name,
                )
            )
        columns.append(Column(title, [path for _, path in sorted(versions[newest])]))
    return columns


def _read(column: Column, choice: Choice, merged: _Merged, seen: set[str]) -> bool:
    """Add a rank's cells; False where its table cannot be read. ``seen`` gathers the titles of tables."""
    known = len(merged.numbers)
    try:
        for path in column.files:
            for titles, rows in _sheets(path):
                seen.update(titles)
                _add(column.title, titles, rows, choice, merged)
    except Exception as error:  # a damaged workbook fails in many ways; it costs itself alone
        logger.warning(tr("{path}: cannot be read and is left out: {error}", path=path, error=error))
        for values in merged.values.values():
            values.pop(column.title, None)
        while len(merged.numbers) > known:  # the names that it alone has
            merged.numbers.popitem()
        return False
    return True


def _add(title: str, titles: Sequence[str], rows: Iterable[Sequence[Any]], choice: Choice, merged: _Merged) -> None:
    places = [(index, titles.index(index)) for index in choice.indices if index in titles]
    name_at = titles.index(NAME)
    for row in rows:
        name = str(row[name_at])
        if choice.apis and not name.startswith(choice.apis):
            continue
        number = merged.numbers.setdefault(name, len(merged.numbers))
        for index, place in places:
            cells = merged.values.setdefault(index, {}).setdefault(title, {})
            cells[number] = _cell(row[place]) if place < len(row) else None


def _sheets(path: Path) -> Iterator[tuple[list[str], Iterator[Sequence[Any]]]]:
    """The titles and rows of each sheet of a table."""
    if path.suffix == ".csv":
        with open_regular(path) as raw, TextIOWrapper(raw, "utf-8-sig", newline="") as file:
            yield _titled(path, (list(map(without_guard, row)) for row in csv.reader(file)))
        return
    import openpyxl

    with open_regular(path) as file:
        _check_unpacked(path, file)
        with closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
            for sheet in book.worksheets:
                if sheet.title == LEGEND_SHEET:
                    continue
                yield _titled(path, sheet.iter_rows(values_only=True))


def _check_unpacked(path: Path, file: BinaryIO) -> None:
    """Raises DumpFormatError for a workbook that would unpack to far more than any table does."""
    with zipfile.ZipFile(file) as parts:
        unpacked = sum(part.file_size for part in parts.infolist())
    packed = file.seek(0, SEEK_END)
    if unpacked > max(_UNPACKED_ANYWAY, _MOST_UNPACKED * packed):
        raise DumpFormatError(
            tr(
                "{path}: {packed} bytes that unpack to {unpacked}: no table",
                path=path,
                packed=packed,
                unpacked=unpacked,
            )
        )
    file.seek(0)


def _titled(path: Path, rows: Iterator[Sequence[Any]]) -> tuple[list[str], Iterator[Sequence[Any]]]:
    titles = [str(title) for title in next(rows, ())]
    if NAME not in titles:
        raise DumpFormatError(tr("{path}: has no column {name}", path=path, name=NAME))
    differences = [
        (title, titles.index(ours), titles.index(theirs))
        for title, ours, theirs in zip(DIFFERENCE_TITLES, NPU_TITLES, BENCH_TITLES, strict=True)
        if title not in titles and ours in titles and theirs in titles
    ]
    if not differences:
        return titles, (row for row in rows if row)
    added = [title for title, *_ in differences]
    whole = ([*row, *[None] * (len(titles) - len(row))] for row in rows if row)
    return titles + added, ([*row, *(_difference(row, *places) for _, *places in differences)] for row in whole)


def _difference(row: Sequence[Any], ours: int, theirs: int) -> Cell:
    """What tables leave out that show both figures."""
    mine, other = _cell(row[ours]), _cell(row[theirs])
    return _finite(mine - other) if isinstance(mine, (int, float)) and isinstance(other, (int, float)) else None


def _cell(value: Any) -> Cell:
    """A number where it is one; the tokens of the tables (``N/A``, ``inf`` with its blank) as text."""
    if value is None or isinstance(value, (int, float)):
        return value if value is None else _finite(value)
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text or None
    return number if math.isfinite(number) else text


def _finite(number: float) -> Cell:
    """A number, as text where a sheet has none for it."""
    try:
        return number if math.isfinite(number) else str(number)
    except OverflowError:  # an integer beyond any float
        return str(number)


def _known(choice: Choice, merged: _Merged, seen: set[str], folder: Path) -> list[str]:
    """The columns asked for that some table has."""
    for index in choice.indices:
        if index not in seen:
            hint = suggestion(index, sorted(seen))
            logger.warning(
                tr(
                    "{folder}: compare_index: no table has a column {index}{hint}; left out",
                    folder=folder,
                    index=repr(index),
                    hint=hint,
                )
            )
    known = [index for index in choice.indices if index in merged.values]
    if not known and not set(choice.indices) & seen:
        has = tr("; they have {seen}", seen=tr_list(sorted(seen))) if seen else ""
        raise ConfigError(
            tr(
                "{folder}: no table has one of the columns {indices}{has}",
                folder=folder,
                indices=tr_list(choice.indices),
                has=has,
            )
        )
    return known


def _write(path: Path, merged: _Merged, indices: Sequence[str], ranks: Sequence[str]) -> None:
    with writing(path) as file, workbook(file) as book:
        header = book.add_format({"bold": True})
        taken: set[str] = set()
        for index in indices:
            columns = [merged.values[index].get(rank, {}) for rank in ranks]
            names = iter(merged.numbers.items())
            while part := list(islice(names, ROWS_A_SHEET)):
                sheet = book.add_worksheet(_sheet_title(index, taken))
                sheet.freeze_panes(1, 1)
                sheet.set_column(0, 0, 60)
                for place, title in enumerate((NAME, *ranks)):
                    sheet.write_string(0, place, writable(title), header)
                for line, (name, number) in enumerate(part, 1):
                    sheet.write_string(line, 0, writable(name))
                    for place, cells in enumerate(columns, 1):
                        _write_cell(sheet, line, place, cells.get(number))


def _write_cell(sheet: Any, line: int, place: int, cell: Cell) -> None:
    if isinstance(cell, str):
        sheet.write_string(line, place, writable(cell))
    elif cell is not None:
        sheet.write_number(line, place, cell)


def _sheet_title(index: str, taken: set[str]) -> str:
    """A title Excel takes, and not twice."""
    plain = _NOT_IN_TITLES.sub("_", index)[: _LONGEST_TITLE - 4].strip("'") or "_"
    title, number = plain, 2
    while title.lower() in taken:
        title, number = f"{plain} {number}", number + 1
    taken.add(title.lower())
    return title
