"""The report of MetaX's tool: one line a tensor, device 0 (the golden) beside device 1 (the target).

It names neither limits nor results: rows are judged as those of our own report are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from msprobe_ms.arrays.metrics import ACCUMULATED_RELATIVE, STANDARD_DEVIATION
from msprobe_ms.comparison.reporting.csv_table import Cell, listed
from msprobe_ms.comparison.reporting.profiles.base import (
    Block,
    Column,
    Line,
    SideColumns,
    Values,
    cell_of,
    cells_of,
    column,
)
from msprobe_ms.comparison.reporting.profiles.own import Own
from msprobe_ms.comparison.statistics import RELATIVES
from msprobe_ms.comparison.terms import Mode
from msprobe_ms.dump.official_names import official_name


@dataclass(frozen=True)
class Maca(Own):
    """Its columns: operator, tensor, dtype, shape, max and min of both devices, diff1, diff2, the operator's stack.

    ``diff1``  the relative error: Σ|t−g| / Σ|g| of tensors, of statistics the larger one of Max and Min
    ``diff2``  the standard deviation of the error, of tensors
    """

    name: str = "maca"

    def columns(self, mode: Mode, *, stack: bool) -> list[Column]:
        """The columns; the stack is always among them."""
        of_tensors = mode == Mode.TENSOR
        return [
            column("operator", lambda line: official_name(line.target.entry)),
            column("tensor", lambda line: line.target.suffix),
            *_both("dtype", attrgetter("dtypes")),
            *_both("shape", attrgetter("shapes")),
            *_both("max", lambda side: side.statistics["maximum"]),
            *_both("min", lambda side: side.statistics["minimum"]),
            column("diff1", _relative_error) if of_tensors else Column("diff1", _relative_of_statistics),
            column("diff2", _standard_deviation) if of_tensors else column("diff2", lambda line: None),
            column("stack", _stack),
        ]


def _both(title: str, read: Callable[[SideColumns], Values]) -> tuple[Column, Column]:
    """The column of device 0 and that of device 1."""
    return (
        Column(f"{title}0", lambda block: cells_of(read(block.columns.golden))),
        Column(f"{title}1", lambda block: cells_of(read(block.columns.target))),
    )


def _relative_error(line: Line) -> Cell:
    return cell_of((line.row.measured or {}).get(ACCUMULATED_RELATIVE))


def _standard_deviation(line: Line) -> Cell:
    return cell_of((line.row.measured or {}).get(STANDARD_DEVIATION))


def _relative_of_statistics(block: Block) -> list[Cell]:
    relatives = (listed(block.columns.relatives[name]) for name in RELATIVES[:2])
    cells: list[Cell] = []
    for pair in zip(*relatives, strict=True):
        known = [value for value in pair if isinstance(value, (int, float))]
        cells.append(cell_of(max(known)) if known else None)
    return cells


def _stack(line: Line) -> Cell:
    """On the first line of an operator: where it was called."""
    entry = line.pair.target
    if entry is None or not entry.stack or line.row is not next(row for row in line.pair.rows if row.in_target):
        return None
    return "\n".join(" ".join(frame.split()) for frame in entry.stack)
