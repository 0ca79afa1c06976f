"""Table of a comparison of kernels: its columns and verdicts (docs/format.md, "Tables of kernels")."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msprobe_ms.arrays.dtypes import same_dtype
from msprobe_ms.arrays.metrics import COSINE, MAX_ABSOLUTE, METRICS, Metric, Missing
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Comparison, Pair, Row
from msprobe_ms.comparison.reporting.colours import MSPROBE_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.files import write_table
from msprobe_ms.comparison.reporting.profiles.base import (
    BENCH_TITLES,
    DIFFERENCE_TITLES,
    NO_BENCH,
    NPU_TITLES,
    RELATIVE_TITLES,
    shape_text,
)
from msprobe_ms.comparison.reporting.profiles.v110 import V110Thresholds, text, token
from msprobe_ms.comparison.reporting.xlsx_table import ColouredRow
from msprobe_ms.comparison.statistics import STATISTICS
from msprobe_ms.comparison.terms import Mode, RowColour
from msprobe_ms.dump.kernels.entries import KernelDump
from msprobe_ms.dump.model import Item

_BASIC = ("NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape")
#: Tensors whose Max differs by more than this share of the larger magnitude are not close (docs/format.md,
#: "Tables of kernels").
_FAR = 0.5


@dataclass(frozen=True)
class Table:
    """What the table of one rank and step shows. ``profile``: ``v110`` has the stream in names and no EucDist."""

    comparison: Comparison
    target: KernelDump
    golden: KernelDump
    profile: str

    @property
    def is_old(self) -> bool:
        return self.profile == "v110"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        ages = {"1.1.0"} if self.is_old else {metric.msprobe for metric in METRICS} - {""}
        return tuple(metric for metric in METRICS if metric.msprobe in ages)

    @property
    def has_tensors(self) -> bool:
        return self.comparison.mode == Mode.TENSOR

    def titles(self) -> list[str]:
        titles = [*_BASIC, *NPU_TITLES, *BENCH_TITLES, "Accuracy Reached or Not", "Err_message"]
        if self.has_tensors:
            return [*titles, *(metric.title for metric in self.metrics)]
        files = [] if self.is_old else ["NPU CSV File", "Bench CSV File"]
        return [*titles, *DIFFERENCE_TITLES, *RELATIVE_TITLES, *files]

    def rows(self) -> Iterator[ColouredRow]:
        """All items of both sides, each beside its counterpart or alone, in the target's launch order."""
        for pair in self.comparison.pairs:
            for row in pair.rows:
                if not self._is_hole(row):
                    yield self._row(pair, row)

    def _row(self, pair: Pair, row: Row) -> ColouredRow:
        sides = ((self.target, row.target), (self.golden, row.golden))
        row.reason = _why_not(row)
        row.result = "" if row.reason else self._accuracy(row)
        row.colour = RowColour.RED if row.result == "No" else RowColour.NONE
        cells: list[Cell] = [self._name(dump, item) for dump, item in sides]
        cells += [None if item is None else item.dtype for _, item in sides]
        cells += [None if item is None else shape_text(item) for _, item in sides]
        cells += [_statistic(item, name) for _, item in sides for name in STATISTICS]
        cells += [row.result or None, row.reason or None]
        if self.has_tensors:
            cells += [None if row.reason else token(row, metric.name) for metric in self.metrics]
            return cells, row.colour
        cells += _differences(row)
        if not self.is_old:
            cells += [self._csv(dump, item) for dump, item in sides]
        return cells, row.colour

    def _is_hole(self, row: Row) -> bool:
        """A slot that neither side has a file for."""
        sides = ((self.target, row.target), (self.golden, row.golden))
        return not any(item is not None and item.name in dump.files for dump, item in sides)

    def _name(self, dump: KernelDump, item: Item | None) -> str | None:
        """The name of an item, as the two ages write it (docs/format.md, "Tables of kernels")."""
        file = dump.files.get(item.name) if item is not None else None
        if file is None:
            return item.name if item is not None else None
        stream = (file.stream,) if self.is_old else ()
        return ".".join(map(str, (file.op_name, file.task, *stream, file.io, file.slot)))

    def _csv(self, dump: KernelDump, item: Item | None) -> str | None:
        file = dump.files.get(item.name) if item is not None else None
        return None if file is None else str(file.path)

    def _accuracy(self, row: Row) -> str:
        return _tensor_accuracy(row) if self.has_tensors else _statistic_accuracy(row)


def write_kernel_table(table: Table, path: Path) -> Path:
    """Write the table to ``path``, xlsx or csv; fills every row's result and reason. Raises UsageError."""
    write_table(path, table.titles(), table.rows(), MSPROBE_ROWS)
    return path


def _why_not(row: Row) -> str:
    """Why a row was not compared; "" where it was."""
    target, golden = row.target, row.golden
    if target is not None and golden is not None and target.kind == golden.kind == "null":
        return "The kernel never writes this result: it holds what was in memory."
    if golden is None or golden.kind == "null":
        return NO_BENCH
    if target is None or target.kind == "null":
        return "No NPU data matched."
    if NOTE in row.metrics:
        return str(row.metrics[NOTE])
    if target.shape is None or golden.shape is None:
        return "Its file cannot be read."
    if not same_dtype(target.dtype, golden.dtype):
        return f"dtype differs: {target.dtype} against {golden.dtype}"
    if target.shape != golden.shape:
        return f"shape differs: {shape_text(target)} against {shape_text(golden)}"
    return "the tensors are empty" if 0 in target.shape else ""


def _tensor_accuracy(row: Row) -> str:
    """By docs/format.md, "Judgement of v110"; of scalars and single elements the largest error alone decides."""
    limit = V110Thresholds()
    cosine, absolute = row.metrics.get(COSINE), row.metrics.get(MAX_ABSOLUTE)
    if isinstance(absolute, Missing) or not isinstance(absolute, (int, float)):
        return "No"
    if isinstance(cosine, Missing) or not isinstance(cosine, (int, float)):
        return "No" if absolute > limit.bad_absolute else "Yes"
    if cosine < limit.poor_cosine and absolute > limit.poor_absolute:
        return "No"
    return "No" if cosine < limit.bad_cosine or absolute > limit.bad_absolute else "Yes"


def _statistic_accuracy(row: Row) -> str:
    assert row.target is not None and row.golden is not None
    mine, theirs = row.target.maximum, row.golden.maximum
    if not (isinstance(mine, (int, float)) and isinstance(theirs, (int, float))):
        return "Yes" if mine == theirs else "No"
    difference = _difference(mine, theirs)
    return "Yes" if difference / (max(abs(mine), abs(theirs)) + 1e-10) <= _FAR else "No"


def _differences(row: Row) -> list[Cell]:
    if row.reason or row.target is None or row.golden is None:
        return [None] * 8
    differences: list[Cell] = []
    relatives: list[Cell] = []
    for name in STATISTICS:
        mine, theirs = getattr(row.target, name), getattr(row.golden, name)
        if not (isinstance(mine, (int, float)) and isinstance(theirs, (int, float))):
            differences.append(None)
            relatives.append(None)
            continue
        difference = _difference(mine, theirs)
        differences.append(text(difference))
        relatives.append(f"{difference / theirs * 100 if theirs > 0 else 0.0}%")
    return [*differences, *relatives]


def _difference(mine: float, theirs: float) -> float:
    """|mine − theirs|; equal infinities and NaN beside NaN are no difference."""
    if mine == theirs or (math.isnan(mine) and math.isnan(theirs)):
        return 0.0
    return abs(float(mine) - float(theirs))


def _statistic(item: Item | None, name: str) -> Cell:
    if item is None:
        return None
    value: Statistic = getattr(item, name)
    return None if value is None else text(value)
