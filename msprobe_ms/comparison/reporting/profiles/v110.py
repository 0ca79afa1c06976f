"""The report of msprobe 1.1.0, cell for cell: how it judges and colours rows, how it writes statistics, its columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import ClassVar

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.arrays.dtypes import same_dtype
from msprobe_ms.arrays.metrics import (
    COSINE,
    MAX_ABSOLUTE,
    METRICS,
    ONE_THOUSANDTH,
    Missing,
)
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Comparison, Pair, Row
from msprobe_ms.comparison.reporting.colours import MSPROBE_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.profiles.base import (
    BENCH_TITLES,
    DIFFERENCE_TITLES,
    NO_BENCH,
    NPU_TITLES,
    RELATIVE_TITLES,
    Column,
    Line,
    Profile,
    algorithm_columns,
    column,
    item_name,
    shape_text,
    stack_text,
)
from msprobe_ms.comparison.reporting.profiles.wording import WHY_MISSING, differences
from msprobe_ms.comparison.statistics import STATISTICS, is_number, non_finite_ends
from msprobe_ms.comparison.terms import Mode, RowColour
from msprobe_ms.dump.model import Item

_MD5, _TENSOR, _UNCOLOURED = Mode.MD5, Mode.TENSOR, RowColour.NONE
NOT_AVAILABLE = "N/A"
DOUBLE_CHECK = "Need double check api accuracy."

_TOKENS: Mapping[Missing, str] = MappingProxyType(
    {
        Missing.NO_DATA: "None",
        Missing.SHAPE: "shape unmatched",
        Missing.NON_FINITE: NOT_AVAILABLE,
        Missing.ZERO_VECTOR: "Nan",
        Missing.SINGLE: "unsupported",
    }
)


@dataclass(frozen=True)
class V110Thresholds:
    """The thresholds of 1.1.0 (docs/format.md, "Judgement of v110")."""

    #: "No" when the cosine is below the first and the largest absolute error above the second of a pair …
    poor_cosine: float = 0.99
    poor_absolute: float = 0.001
    #: … or when either of these is passed.
    bad_cosine: float = 0.9
    bad_absolute: float = 1.0
    #: "Warning" when a statistic's difference over the larger of the two is beyond this.
    statistic_warning: float = 0.5
    #: Red: a difference beyond this.
    huge_difference: float = 1e10
    #: Yellow: the output's difference this many orders of magnitude above an input's.
    magnitude_orders: float = 1.0
    #: Red: the share of elements within a thousandth falls from above the first to below the second.
    good_thousandth: float = 0.9
    bad_thousandth: float = 0.6
    #: Yellow: the thousandth share, or the cosine, falls by this from input to output.
    fall: float = 0.1
    #: Max difference over the bench's Max: red above the first; yellow above the second when the input's is below the
    #: third.
    relative_red: float = 0.5
    relative_yellow: float = 0.1
    relative_input: float = 0.01


@dataclass(frozen=True)
class Rules:
    """The verdicts of one mode."""

    thresholds: V110Thresholds
    mode: Mode

    def judge(self, pair: Pair) -> None:
        """Fill result, reason and colour of the rows of one entry."""
        for row in pair.rows:
            self._result(row)
        if self.mode != _MD5:
            self._colours(pair)

    def _result(self, row: Row) -> None:
        row.colour, row.reason = _UNCOLOURED, ""
        if row.target is None or row.golden is None:
            row.result, row.reason = NOT_AVAILABLE, NO_BENCH
        elif self.mode == _MD5:
            row.result = "pass" if checksum(row.target) == checksum(row.golden) else "Different"
        elif self.mode == _TENSOR:
            row.result = self._accuracy(row)
            row.reason = _message(row, row.target, row.golden)
        elif self._needs_check(row.target, row.golden):
            row.result, row.reason = "Warning", DOUBLE_CHECK
        else:
            row.result = ""

    def _accuracy(self, row: Row) -> str:
        limit = self.thresholds
        cosine, absolute = token(row, COSINE), token(row, MAX_ABSOLUTE)
        if cosine == "shape unmatched":
            return "Unmatched"
        if "None" in (cosine, absolute):
            return "None"
        if NOT_AVAILABLE in (cosine, absolute):
            return "No"
        if not (isinstance(cosine, (int, float)) and isinstance(absolute, (int, float))):
            return "None"
        if cosine < limit.poor_cosine and absolute > limit.poor_absolute:
            return "No"
        return "No" if cosine < limit.bad_cosine or absolute > limit.bad_absolute else "Yes"

    def _needs_check(self, target: Item, golden: Item) -> bool:
        for name in STATISTICS:
            for mine, theirs in _both_numbers(getattr(target, name), getattr(golden, name)):
                if abs(mine - theirs) / (max(abs(mine), abs(theirs)) + 1e-10) > self.thresholds.statistic_warning:
                    return True
        return False

    def _colours(self, pair: Pair) -> None:
        rows = [row for row in pair.rows if row.target is not None]
        for row in rows:
            if _overflows(row) or (_difference(row, self.mode) or 0.0) > self.thresholds.huge_difference:
                row.colour = RowColour.RED
        comparable = [row for row in rows if _comparable(row, self.mode)]
        inputs = [row for row in comparable if row.target and row.target.state == "input"]
        for output in (row for row in comparable if row.target and row.target.state == "output"):
            for source in inputs:
                if output.colour == RowColour.RED:
                    break
                output.colour = self._colour(source, output) or output.colour

    def _colour(self, source: Row, output: Row) -> RowColour:
        """The colour an output row takes beside one of its entry's input rows."""
        limit = self.thresholds
        found = {RowColour.YELLOW} if self._grows(source, output) else set()
        if self.mode == _TENSOR:
            for before, after in _both_numbers(token(source, ONE_THOUSANDTH), token(output, ONE_THOUSANDTH)):
                if before > limit.good_thousandth and after < limit.bad_thousandth:
                    found.add(RowColour.RED)
                elif before - after > limit.fall:
                    found.add(RowColour.YELLOW)
            for before, after in _both_numbers(token(source, COSINE), token(output, COSINE)):
                if before - after > limit.fall:
                    found.add(RowColour.YELLOW)
        else:
            error = _relative_to_bench(output, self.mode)
            if error > limit.relative_red:
                found.add(RowColour.RED)
            elif error > limit.relative_yellow and _relative_to_bench(source, self.mode) < limit.relative_input:
                found.add(RowColour.YELLOW)
        return RowColour.RED if RowColour.RED in found else RowColour.YELLOW if found else _UNCOLOURED

    def _grows(self, source: Row, output: Row) -> bool:
        before, after = (abs(_difference(row, self.mode) or 0.0) for row in (source, output))
        return before <= after and _orders(after) - _orders(before) >= self.thresholds.magnitude_orders


def _message(row: Row, target: Item, golden: Item) -> str:
    """What 1.1.0 has a message for as well: files, shapes, dtypes and places that leave metrics without a number."""
    measured = row.measured or {}
    if note := measured.get(NOTE):
        return str(note)
    if target.kind != "tensor" or golden.kind != "tensor":
        return ""
    cosine = measured.get(COSINE)
    if cosine is Missing.SHAPE:
        return f"{next(differences(row, target, golden, _TENSOR))}."
    if isinstance(cosine, Missing) and cosine in WHY_MISSING:
        return WHY_MISSING[cosine]
    return "" if same_dtype(target.dtype, golden.dtype) else f"The dtypes differ: {target.dtype} and {golden.dtype}."


def _orders(value: float) -> float:
    """Decimal orders of magnitude; what is below 1 counts as 0."""
    return math.log10(value) if value >= 1 else 0.0


def _both_numbers(mine: Cell, theirs: Cell) -> list[tuple[float, float]]:
    """The two as the only element of a list, [] unless both are numbers."""
    return [(mine, theirs)] if isinstance(mine, (int, float)) and isinstance(theirs, (int, float)) else []


def _difference(row: Row, mode: Mode) -> float | None:
    """Max diff, or MaxAbsErr in real data mode; None where that is no number."""
    if mode == _TENSOR:
        value = token(row, MAX_ABSOLUTE)
        return float(value) if isinstance(value, (int, float)) else None
    if row.target is None or row.golden is None:
        return None
    return next((mine - theirs for mine, theirs in _both_numbers(row.target.maximum, row.golden.maximum)), None)


def _relative_to_bench(row: Row, mode: Mode) -> float:
    maximum = row.golden.maximum if row.golden else None
    scale = max(0.01, float(maximum)) if isinstance(maximum, (int, float)) else 0.01
    return abs((_difference(row, mode) or 0.0) / scale)


def checksum(item: Item) -> str | None:
    """Return the checksum of a tensor; plain values have none in 1.1.0, and always pass."""
    return item.md5 if item.kind == "tensor" else None


def _overflows(row: Row) -> bool:
    return row.target is not None and bool(non_finite_ends(row.target))


def _comparable(row: Row, mode: Mode) -> bool:
    """Whether NPU max, bench max and the difference are all plain numbers."""
    if row.target is None or row.golden is None:
        return False
    values = (row.target.maximum, row.golden.maximum, _difference(row, mode))
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)


def number(value: float) -> Cell:
    return f"{float(value)}\t" if not math.isfinite(value) else value


def text(value: Statistic | Missing) -> Cell:
    """Return a statistic as 1.1.0 writes it: nothing is ``None``, infinity and NaN carry a trailing TAB."""
    if isinstance(value, (int, float)):
        return number(value)
    return "None" if value is None else str(value)


def token(row: Row, metric: str) -> Cell:
    """Return a metric of real data, as a number or as its token."""
    value = row.measured.get(metric, Missing.NO_DATA) if row.measured else Missing.NO_DATA
    if value is Missing.EMPTY:
        return "unsupported" if metric == COSINE else 0
    if value is Missing.SCALAR:
        return "unsupported" if metric == COSINE else "Nan"
    if isinstance(value, Missing):
        return _TOKENS[value]
    if metric == COSINE and isinstance(value, (int, float)):
        return 1.0 if value > 0.99999 else round(value, 12)
    return text(value)


#: Fills the bench cells of an item its matched entry has and the bench's has not.
EXTRA_ITEM = "Nan"


@dataclass(frozen=True)
class V110(Profile):
    """msprobe 1.1.0."""

    name: str = "v110"
    colours: ClassVar[Mapping[RowColour, str]] = MSPROBE_ROWS
    thresholds: V110Thresholds = field(default_factory=V110Thresholds)
    algorithms: tuple[Algorithm, ...] = ()

    def columns(self, mode: Mode, *, stack: bool) -> list[Column]:
        stacks = [column("NPU_Stack_Info", stack_text)] if stack else []
        result = [column("Result", _result), column("Err_message", lambda line: line.row.reason or None)]
        if mode == _MD5:
            md5 = [column("NPU MD5", _of_target(checksum)), column("BENCH MD5", _of_bench(checksum))]
            return [*_BASIC, *md5, result[0], *stacks]
        if mode == _TENSOR:
            reached = [column("Accuracy Reached or Not", _result), result[1]]
            own = algorithm_columns(self.algorithms, mode)
            return [*_BASIC, *_REAL, *_STATISTICS, *reached, *stacks, column("Data_name", _data_name), *own]
        return [*_BASIC, *_DIFFERENCES, *_STATISTICS, *result, *stacks]

    def judge(self, comparison: Comparison) -> None:
        rules = Rules(self.thresholds, comparison.mode)
        for pair in comparison.pairs:
            rules.judge(pair)


def _absent(line: Line) -> str:
    """What stands for the bench where it has no such item."""
    return EXTRA_ITEM if line.pair.matched else NOT_AVAILABLE


def _of_bench(read: Callable[[Item], Statistic]) -> Callable[[Line], Cell]:
    return lambda line: text(read(line.golden)) if line.golden is not None else _absent(line)


def _of_target(read: Callable[[Item], Statistic]) -> Callable[[Line], Cell]:
    return lambda line: text(read(line.target))


def _metric(name: str) -> Callable[[Line], Cell]:
    return lambda line: token(line.row, name) if line.golden is not None else _absent(line)


def _delta(name: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        if line.golden is None:
            return _absent(line)
        mine, theirs = getattr(line.target, name), getattr(line.golden, name)
        return number(mine - theirs) if is_number(mine) and is_number(theirs) else "None"

    return cell


def _percent(name: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        if line.golden is None:
            return _absent(line)
        mine, theirs = getattr(line.target, name), getattr(line.golden, name)
        if not (is_number(mine) and is_number(theirs)):
            return " "
        return f"{abs((mine - theirs) / theirs) * 100}%" if theirs else NOT_AVAILABLE

    return cell


def entry_item_name(item: Item, mode: Mode) -> str:
    """1.1.0 numbers keyword arguments as if each were a list: ``….input.approximate.0``."""
    name = item_name(item, mode)
    in_file = mode == _TENSOR and item.data_name is not None
    return f"{name}.0" if item.keyword and len(item.path) == 1 and not in_file else name


def _result(line: Line) -> Cell:
    return line.row.result or None


def _data_name(line: Line) -> str:
    return line.target.data_name or "-1"


_BASIC = (
    column("NPU Name", lambda line: entry_item_name(line.target, line.mode)),
    column("Bench Name", lambda line: entry_item_name(line.golden, line.mode) if line.golden else _absent(line)),
    column("NPU Dtype", _of_target(lambda item: item.dtype)),
    column("Bench Dtype", _of_bench(lambda item: item.dtype)),
    column("NPU Tensor Shape", _of_target(shape_text)),
    column("Bench Tensor Shape", _of_bench(shape_text)),
)

_REAL = tuple(column(metric.title, _metric(metric.name)) for metric in METRICS if metric.msprobe == "1.1.0")

_DIFFERENCES = (
    *map(column, DIFFERENCE_TITLES, map(_delta, STATISTICS)),
    *map(column, RELATIVE_TITLES, map(_percent, STATISTICS)),
)


_STATISTICS = (
    *map(column, NPU_TITLES, map(_of_target, map(attrgetter, STATISTICS))),
    *map(column, BENCH_TITLES, map(_of_bench, map(attrgetter, STATISTICS))),
)
