"""Report a comparison of two environments: a line for what differs, a table of all, and a page of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msprobe_ms.comparison.reporting.colours import OWN_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.files import claimed_timestamp, write_table
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.environment.collect import DEFAULTS, GAPS, SCRIPTS, SECTIONS, Collection
from msprobe_ms.environment.compare import ConfigRow, Status, section_title
from msprobe_ms.environment.page import write_environments_page
from msprobe_ms.environment.settings import shown
from msprobe_ms.page.filtered import status_word
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_count, tr_join
from msprobe_ms.weights.names import NAMES_DIFFER

_TITLES = ("section", "name", "target", "golden", "result", "note")
_COLOURS = {Status.ERROR: RowColour.RED, Status.WARNING: RowColour.YELLOW, Status.PASS: RowColour.NONE}
#: Sections that only a dump fills, which need not be given.
_OF_A_DUMP = ("dataset", "weights")
#: Lines of each kind in the terminal.
_TOLD = 10


def write_environments(
    rows: Sequence[ConfigRow], folder: Path, sides: tuple[Path, Path], gaps: Sequence[str] = (), *, csv: bool = False
) -> tuple[Path, Path]:
    """Write ``config_check_{YYYYmmddHHMMSS}.html`` and ``.xlsx`` (or ``.csv``), never over others; return both.

    ``sides``: where the collections of target and golden are; ``gaps``: what `gap_lines` says of them.

    :raises UsageError: the folder cannot be written
    """
    with claimed_timestamp(folder) as stamp:
        page, table = (folder / f"config_check_{stamp}.{kind}" for kind in ("html", "csv" if csv else "xlsx"))
        write_table(table, list(_TITLES), ((_cells(row), _COLOURS[row.status]) for row in rows), OWN_ROWS)
        write_environments_page(page, rows, sides, next(environment_lines(rows, gaps)))
    return page, table


def _cells(row: ConfigRow) -> list[Cell]:
    return [row.section, row.name, _cell(row.target), _cell(row.golden), row.status.value, row.note]


def _cell(value: Any) -> Cell:
    # Other numbers no cell holds.
    if math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and abs(value) < 1 << 53:
        return value
    return value if value is None else shown(value)


def gap_lines(target: Collection, golden: Collection) -> Iterator[str]:
    """Say which settings neither collection, or one of them, has, as their files were not given."""
    for side, collection in ((tr("target"), target), (tr("golden"), golden)):
        if files := _names(collection, DEFAULTS):
            yield tr(
                "  not compared: options that were given when {files} ({side}) started; only their defaults are known",
                files=files,
                side=side,
            )
        if scripts := _names(collection, SCRIPTS):
            yield tr(
                "  not compared: defaults and settings in {scripts} ({side}); only the shell script that starts it is "
                "known",
                scripts=scripts,
                side=side,
            )


def _names(collection: Collection, gap: str) -> str:
    names = collection.get(GAPS, {}).get(gap)
    return listed(list(map(str, names)), 2) if isinstance(names, list) else ""


def environment_lines(rows: Sequence[ConfigRow], gaps: Sequence[str] = ()) -> Iterator[str]:
    """Say how much differs, then what, errors first, then the ``gaps``: what could not be compared."""
    compared, unpaired = _by_pairing(rows)
    counts = Counter(row.status for row in compared)
    differing = counts[Status.ERROR]
    alike = (
        tr("MOSTLY EQUAL")
        if counts[Status.WARNING] or unpaired
        else tr("EQUAL as far as known")
        if gaps
        else tr("EQUAL")
    )
    verdict = tr("DIFFERENT") if differing else alike
    yield (
        tr(
            "{verdict}: settings compared: {count}; errors (they differ and change results): {differing}; "
            "warnings (they differ and may change results): {counts}; errors by section: {by_section}",
            verdict=verdict,
            differing=differing,
            count=len(compared),
            counts=counts[Status.WARNING],
            by_section=tr_join(", ", _by_section(compared, len(unpaired))),
        )
    )
    for status in (Status.ERROR, Status.WARNING):
        found = [row for row in compared if row.status is status]
        for row in found[:_TOLD]:
            yield tr(
                "  {status}: {section} {name}: {told}",
                status=status_word(status.value),
                section=section_title(row.section),
                name=row.name,
                told=_told(row),
            )
        if len(found) > _TOLD:
            yield tr("  and {count} more of {value}", count=len(found) - _TOLD, value=status_word(status.value))
    if {row.golden is None for row in unpaired} == {True, False}:
        yield NAMES_DIFFER
    yield from gaps


def _by_pairing(rows: Sequence[ConfigRow]) -> tuple[list[ConfigRow], list[ConfigRow]]:
    """The rows that were compared, and weights that were not, as names differ or one side has none at all.

    A weight that one side has beside those of the other is a difference.
    """
    weights = [row for row in rows if row.section == "weights"]
    lone = [row for row in weights if None in (row.target, row.golden)]
    names_differ = {row.golden is None for row in lone} == {True, False}
    unpaired = lone if names_differ or len(lone) == len(weights) else []
    left_out = set(map(id, unpaired))
    return [row for row in rows if id(row) not in left_out], unpaired


def _by_section(compared: Sequence[ConfigRow], unpaired: int) -> Iterator[str]:
    """How much of each section differs. ``unpaired``: weights that were not compared."""
    for section in SECTIONS:
        own = [row for row in compared if row.section == section]
        bad = sum(row.status is Status.ERROR for row in own)
        title = section_title(section)
        if own:
            yield tr("{section} {bad} of {count}", section=title, bad=bad, count=len(own))
        if unpaired and section == "weights":
            yield tr_count("{count} weight not compared", "{count} weights not compared", unpaired)
        elif not own and section in _OF_A_DUMP:
            yield tr("{section} not collected", section=title)
        elif not own:
            yield tr("{section} none found", section=title)


def _told(row: ConfigRow) -> str:
    if isinstance(row.target, dict) or isinstance(row.golden, dict):
        return row.note
    if row.note != "differs":
        return row.note
    return tr("{target}, golden {golden}", target=shown(row.target), golden=shown(row.golden))
