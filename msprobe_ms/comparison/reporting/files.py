"""Write what a comparison found: the tables (xlsx, csv) and the summary (json). Each file is whole or absent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from msprobe_ms.comparison.model import Comparison, Origin
from msprobe_ms.comparison.pairing.coverage import said_unmatched
from msprobe_ms.comparison.pairing.fused_modules import compared_as_one
from msprobe_ms.comparison.pairing.shares import lone_values, paired_with
from msprobe_ms.comparison.reporting.csv_table import Cell, Cells, listed, write_columns, write_csv
from msprobe_ms.comparison.reporting.legend import LegendLine
from msprobe_ms.comparison.reporting.profiles.base import Block, Column, Profile, blocks
from msprobe_ms.comparison.reporting.xlsx_table import ColouredRow, write_xlsx
from msprobe_ms.comparison.statistics import is_non_finite
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.files import DEFAULT, replacing
from msprobe_ms.support.translation import tr

#: Lines whose cells are filled at once.
_BLOCK = 2048


def write_tables(
    comparison: Comparison,
    profile: Profile,
    folder: Path,
    timestamp: str,
    *,
    csv: bool = False,
    stack: bool = False,
    name_suffix: str = "",
) -> list[Path]:
    """Write ``compare_result{suffix}_{timestamp}.xlsx`` (or ``.csv``) into ``folder``; return what was written.

    ``timestamp`` is ``YYYYmmddHHMMSS``. Rows are coloured in xlsx only. ``stack`` adds the column of call sites.

    :raises UsageError: the folder cannot be written
    """
    path = table_path(folder, timestamp, name_suffix, csv=csv)
    if csv:
        columns = profile.columns(comparison.mode, stack=stack)
        with writing(path) as file:
            cells = (_cells(columns, block) for block in blocks(comparison, _BLOCK))
            write_columns(file, [column.title for column in columns], cells)
    else:
        titles, rows = table(comparison, profile, stack=stack)
        write_table(path, titles, rows, profile.colours, legend=profile.legend(titles))
    return [path]


def table_path(folder: Path, timestamp: str, name_suffix: str = "", *, csv: bool = False) -> Path:
    """Return where the table of a comparison is written."""
    return folder / f"compare_result{name_suffix}_{timestamp}.{'csv' if csv else 'xlsx'}"


def table(comparison: Comparison, profile: Profile, *, stack: bool = False) -> tuple[list[str], Iterator[ColouredRow]]:
    """Return the report's titles and an iterator of its rows, each with its colour."""
    columns = profile.columns(comparison.mode, stack=stack)
    return [column.title for column in columns], _rows(columns, comparison)


def _rows(columns: Sequence[Column], comparison: Comparison) -> Iterator[ColouredRow]:
    """The cells of each line, and its colour."""
    for block in blocks(comparison, _BLOCK):
        rows = zip(*map(listed, _cells(columns, block)), strict=True)
        yield from ((list(row), line.row.colour) for row, line in zip(rows, block, strict=True))


def _cells(columns: Sequence[Column], block: Block) -> list[Cells]:
    """The cells of many lines, column by column."""
    return [column.cells(block) for column in columns]


def write_table(
    path: Path,
    titles: Sequence[str],
    rows: Iterable[ColouredRow],
    colours: Mapping[RowColour, str],
    *,
    legend: Iterable[LegendLine] = (),
) -> None:
    """Write a table, xlsx or csv by the name of its file; each row comes with its colour, a key of ``colours`` or "".

    ``legend`` fills a last sheet of an xlsx.

    :raises UsageError: the folder cannot be written
    """
    with writing(path) as file:
        if path.suffix == ".csv":
            write_csv(file, titles, (row for row, _ in rows))
        else:
            write_xlsx(file, titles, rows, colours, legend)


def write_summary(
    comparison: Comparison,
    folder: Path,
    timestamp: str,
    name_suffix: str = "",
    *,
    files: Iterable[Path] = (),
    dumps: Mapping[str, Path] | None = None,
) -> Path:
    """Write ``compare_summary{suffix}_{timestamp}.json``; numbers that are not finite are the texts nan, inf, -inf.

    ``files`` are the others of this comparison, whose names it holds without the time, so that a second run writes the
    same. ``dumps``: the files of ``target`` and ``golden``, which the command prove reads.

    :raises UsageError: the folder cannot be written
    """
    path = folder / f"compare_summary{name_suffix}_{timestamp}.json"
    with writing(path) as file:
        content = {
            **summary(comparison),
            **pairing(comparison),
            "proposed_mapping": list(comparison.mapped.proposed),
            "files": [without_time(file, timestamp) for file in files],
        }
        if dumps is not None:
            content["dumps"] = {side: str(dump.absolute()) for side, dump in dumps.items()}
        text = json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)
        file.write((text + "\n").encode("ascii"))
    return path


def without_time(file: Path, timestamp: str) -> str:
    """Return the name of a report as it is whenever it is written."""
    return file.name.replace(f"_{timestamp}.", ".")


def row_counts(comparison: Comparison) -> dict[str, int]:
    """Count rows with and without a counterpart, by their names in the summary."""
    target, golden = comparison.alone
    matched = len(comparison.rows) - target - golden
    return {"matched": matched, "unmatched_target": target, "unmatched_golden": golden}


def compared_count(comparison: Comparison) -> int:
    """Return how many values were compared, as the terminal and the advisor say."""
    return row_counts(comparison)["matched"] - len(comparison.unread)


def summary(comparison: Comparison) -> dict[str, object]:
    """Return what the summary says of the verdict, ready for JSON."""
    return {
        "mode": comparison.mode,
        "verdict": comparison.verdict,
        **row_counts(comparison),
        "not_compared": len(comparison.unread),
        "said_unmatched": said_unmatched(comparison.pairs),
        "fused": [each._asdict() for each in compared_as_one(comparison.pairs)],
        "damage": comparison.damage,
        "ends": comparison.ends,
        "inherits": comparison.inherits,
        "origins": list(map(_origin, comparison.origins)),
        "random_operations": list(map(_origin, comparison.random)),
    }


def pairing(comparison: Comparison) -> dict[str, object]:
    """Return what the summary says of the pairing, and of what was let pass by which explanation, ready for JSON."""
    shares = comparison.shares
    return {
        "paired_modules": shares.modules and list(shares.modules),
        "paired_calls": shares.calls and list(shares.calls),
        "unmatched_modules": {"target": list(shares.target), "golden": list(shares.golden)},
        "compared_by_outputs": dict(zip(("target", "golden"), map(list, shares.elsewhere), strict=True)),
        "unmatched_values": dict(zip(("target", "golden"), lone_values(comparison.pairs), strict=True)),
        "explained": _explained(comparison),
        "pairs": [
            {"target": target, "golden": golden, "how": how, "calls": calls}
            for (target, golden, how), calls in paired_with(comparison.pairs)
        ],
    }


def _explained(comparison: Comparison) -> list[dict[str, object]]:
    """The values that were let pass, grouped by what explains them; of each group the one that deviates most."""
    explained, values = comparison.verdicts.explained, comparison.deviations.values
    found: list[dict[str, object]] = []
    for code, name in enumerate(explained.values):
        if name and len(places := np.flatnonzero(explained.codes == code)):
            largest = comparison.rows[places[np.argmax(np.nan_to_num(values[places], nan=0.0, posinf=np.inf))]]
            at = largest.target.name if largest.target is not None else ""
            found.append({"by": name, "values": len(places), "largest": _strict_number(largest.deviation), "at": at})
    return found


def _origin(origin: Origin) -> dict[str, object]:
    return {
        "target": origin.target,
        "golden": origin.golden,
        "state": origin.state,
        "kind": origin.kind,
        "stage": origin.stage,
        "reason": origin.reason,
        "details": list(origin.details),
        "required_tolerance": _strict_number(origin.required_tolerance),
        "metrics": {name: _strict_number(value) for name, value in origin.metrics.items()},
    }


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a report for writing, whole or not at all: makes the folder, turns an OSError into one UsageError."""
    try:
        DEFAULT.make_folder(path.parent)
        with replacing(path) as file:
            yield file
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            tr(
                "{path}: the report cannot be written: {reason}; accepted is a writable folder",
                path=path,
                reason=reason,
            )
        ) from error


def _strict_number(value: Cell) -> Cell:
    return str(value) if is_non_finite(value) else value


@contextmanager
def claimed_timestamp(folder: Path, prefix: str = "compare_") -> Iterator[str]:
    """Now as ``YYYYmmddHHMMSS``, or the next second of which ``folder`` has no ``{prefix}…`` and nobody writes one.

    So a report is never overwritten. A hidden file says until the end that the second is taken. The folder is made,
    and removed again when nothing was written; one that cannot be written is left to those who write to it.
    """
    made = not folder.exists()
    moment, claim = time.time(), None
    with suppress(OSError):
        DEFAULT.make_folder(folder)
    while True:
        stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(moment))
        moment += 1
        try:
            claim = folder / f".{prefix}{stamp}.claim"
            DEFAULT.create(claim).close()
        except FileExistsError:
            continue
        except OSError:
            claim = None
        if not any(folder.glob(f"{prefix}*{stamp}*")):  # whoever claimed it before has written by now
            break
        _remove(claim)
    try:
        yield stamp
    finally:
        _remove(claim)
        if made:
            with suppress(OSError):  # it holds reports
                folder.rmdir()


def _remove(claim: Path | None) -> None:
    if claim is not None:
        with suppress(OSError):
            claim.unlink()
