"""The report of msprobe 1.1.0, cell for cell: columns, tokens, verdicts and row colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType

from msprobe_ms.compare.measure import NOTE, STATISTICS, is_number
from msprobe_ms.compare.metrics import (
    COSINE,
    FIVE_THOUSANDTHS,
    MAX_ABSOLUTE,
    MAX_RELATIVE,
    ONE_THOUSANDTH,
    Missing,
)
from msprobe_ms.compare.model import Comparison, Pair, Row
from msprobe_ms.compare.profiles.base import (
    BENCH_TITLES,
    DIFFERENCE_TITLES,
    NO_BENCH,
    NPU_TITLES,
    RELATIVE_TITLES,
    Cell,
    Column,
    Line,
    Profile,
    item_name,
    shape_text,
    stack_text,
)
from msprobe_ms.store.model import Item, Statistic

NOT_AVAILABLE = "N/A"
#: Fills the bench cells of an item its matched entry has and the bench's has not.
EXTRA_ITEM = "Nan"
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
    """The figures of 1.1.0, formats §16.1."""

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
class V110(Profile):
    """msprobe 1.1.0."""

    name: str = "v110"
    colours: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"red": "FF0000", "yellow": "FFFF00"}))
    thresholds: V110Thresholds = field(default_factory=V110Thresholds)

    def columns(self, mode: str, *, stack: bool) -> list[Column]:
        stacks = [Column("NPU_Stack_Info", stack_text)] if stack else []
        result = [Column("Result", _result), Column("Err_message", lambda line: line.row.reason or None)]
        if mode == "md5":
            md5 = [
                Column("NPU MD5", _of_target(_checksum)),
                Column("BENCH MD5", _of_bench(_checksum)),
            ]
            return [*_BASIC, *md5, result[0], *stacks]
        if mode == "tensor":
            reached = [Column("Accuracy Reached or Not", _result), result[1]]
            return [*_BASIC, *_REAL, *_FIGURES, *reached, *stacks, Column("Data_name", _data_name)]
        return [*_BASIC, *_DIFFERENCES, *_FIGURES, *result, *stacks]

    def judge(self, comparison: Comparison) -> None:
        for pair in comparison.pairs:
            for row in pair.rows:
                self._result(row, comparison.mode)
            if comparison.mode != "md5":
                self._colours(pair, comparison.mode)

    def _result(self, row: Row, mode: str) -> None:
        row.colour = row.reason = ""
        if row.target is None or row.golden is None:
            row.result, row.reason = NOT_AVAILABLE, NO_BENCH
        elif mode == "md5":
            row.result = "pass" if _checksum(row.target) == _checksum(row.golden) else "Different"
        elif mode == "tensor":
            row.result = self._accuracy(row)
            row.reason = str(row.metrics.get(NOTE) or "")
        elif self._needs_check(row.target, row.golden):
            row.result, row.reason = "Warning", DOUBLE_CHECK
        else:
            row.result = ""

    def _accuracy(self, row: Row) -> str:
        limit = self.thresholds
        cosine, absolute = _token(row, COSINE), _token(row, MAX_ABSOLUTE)
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
        for mine, theirs in _figures(target, golden):
            if isinstance(mine, (int, float)) and isinstance(theirs, (int, float)):
                scale = max(abs(mine), abs(theirs)) + 1e-10
                if abs(mine - theirs) / scale > self.thresholds.statistic_warning:
                    return True
        return False

    def _colours(self, pair: Pair, mode: str) -> None:
        rows = [row for row in pair.rows if row.target is not None]
        for row in rows:
            if _overflows(row) or (_difference(row, mode) or 0.0) > self.thresholds.huge_difference:
                row.colour = "red"
        comparable = [row for row in rows if _comparable(row, mode)]
        inputs = [row for row in comparable if row.target and row.target.state == "input"]
        for output in (row for row in comparable if row.target and row.target.state == "output"):
            for source in inputs:
                if output.colour == "red":
                    break
                output.colour = self._colour(source, output, mode) or output.colour

    def _colour(self, source: Row, output: Row, mode: str) -> str:
        """The colour an output row takes beside one of its entry's input rows."""
        limit = self.thresholds
        found = {"yellow"} if self._grows(source, output, mode) else set()
        if mode == "tensor":
            before, after = _token(source, ONE_THOUSANDTH), _token(output, ONE_THOUSANDTH)
            if isinstance(before, (int, float)) and isinstance(after, (int, float)):
                if before > limit.good_thousandth and after < limit.bad_thousandth:
                    found.add("red")
                elif before - after > limit.fall:
                    found.add("yellow")
            before, after = _token(source, COSINE), _token(output, COSINE)
            if isinstance(before, (int, float)) and isinstance(after, (int, float)) and before - after > limit.fall:
                found.add("yellow")
        else:
            error = _relative_to_bench(output, mode)
            if error > limit.relative_red:
                found.add("red")
            elif error > limit.relative_yellow and _relative_to_bench(source, mode) < limit.relative_input:
                found.add("yellow")
        return "red" if "red" in found else "yellow" if found else ""

    def _grows(self, source: Row, output: Row, mode: str) -> bool:
        before, after = abs(_difference(source, mode) or 0.0), abs(_difference(output, mode) or 0.0)
        return before <= after and _orders(after) - _orders(before) >= self.thresholds.magnitude_orders


def _orders(value: float) -> float:
    """Decimal orders of magnitude; what is below 1 counts as 0."""
    return math.log10(value) if value >= 1 else 0.0


def _figures(target: Item, golden: Item) -> Iterable[tuple[Statistic, Statistic]]:
    return ((getattr(target, name), getattr(golden, name)) for name in STATISTICS)


def _difference(row: Row, mode: str) -> float | None:
    """Max diff, or MaxAbsErr in real data mode; None where that is no number."""
    if mode == "tensor":
        value = _token(row, MAX_ABSOLUTE)
        return float(value) if isinstance(value, (int, float)) else None
    if row.target is None or row.golden is None:
        return None
    mine, theirs = row.target.maximum, row.golden.maximum
    if isinstance(mine, (int, float)) and isinstance(theirs, (int, float)):
        return mine - theirs
    return None


def _relative_to_bench(row: Row, mode: str) -> float:
    maximum = row.golden.maximum if row.golden else None
    scale = max(0.01, float(maximum)) if isinstance(maximum, (int, float)) else 0.01
    return abs((_difference(row, mode) or 0.0) / scale)


def _checksum(item: Item) -> str | None:
    """Plain values have none in 1.1.0, and always pass."""
    return item.md5 if item.kind == "tensor" else None


def _overflows(row: Row) -> bool:
    figures = (row.target.maximum, row.target.minimum) if row.target else ()
    return any(isinstance(value, float) and not math.isfinite(value) for value in figures)


def _comparable(row: Row, mode: str) -> bool:
    """Whether NPU max, bench max and the difference are all plain numbers."""
    if row.target is None or row.golden is None:
        return False
    values = (row.target.maximum, row.golden.maximum, _difference(row, mode))
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)


def _number(value: float) -> Cell:
    return f"{float(value)}\t" if not math.isfinite(value) else value


def _text(value: Statistic | Missing) -> Cell:
    """A figure as 1.1.0 writes it: nothing is ``None``, infinity and NaN carry a trailing TAB."""
    if isinstance(value, (int, float)):
        return _number(value)
    return "None" if value is None else str(value)


def _token(row: Row, metric: str) -> Cell:
    """A metric of real data, as a number or as its token."""
    value = row.metrics.get(metric, Missing.NO_DATA)
    if value is Missing.EMPTY:
        return "unsupported" if metric == COSINE else 0
    if value is Missing.SCALAR:
        return "unsupported" if metric == COSINE else "Nan"
    if isinstance(value, Missing):
        return _TOKENS[value]
    if metric == COSINE and isinstance(value, (int, float)):
        return 1.0 if value > 0.99999 else round(value, 12)
    return _text(value)


def _absent(line: Line) -> str:
    """What stands for the bench where it has no such item."""
    return EXTRA_ITEM if line.pair.matched else NOT_AVAILABLE


def _of_bench(read: Callable[[Item], Statistic]) -> Callable[[Line], Cell]:
    return lambda line: _text(read(line.golden)) if line.golden is not None else _absent(line)


def _of_target(read: Callable[[Item], Statistic]) -> Callable[[Line], Cell]:
    return lambda line: _text(read(line.target))


def _metric(name: str) -> Callable[[Line], Cell]:
    return lambda line: _token(line.row, name) if line.golden is not None else _absent(line)


def _delta(name: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        if line.golden is None:
            return _absent(line)
        mine, theirs = getattr(line.target, name), getattr(line.golden, name)
        return _number(mine - theirs) if is_number(mine) and is_number(theirs) else "None"

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


def entry_item_name(item: Item, mode: str) -> str:
    """1.1.0 numbers keyword arguments as if each were a list: ``….input.approximate.0``."""
    name = item_name(item, mode)
    in_file = mode == "tensor" and item.data_name is not None
    return f"{name}.0" if item.keyword and len(item.path) == 1 and not in_file else name


def _result(line: Line) -> Cell:
    return line.row.result or None


def _data_name(line: Line) -> str:
    return line.target.data_name or "-1"


_BASIC = (
    Column("NPU Name", lambda line: entry_item_name(line.target, line.mode)),
    Column("Bench Name", lambda line: entry_item_name(line.golden, line.mode) if line.golden else _absent(line)),
    Column("NPU Dtype", _of_target(lambda item: item.dtype)),
    Column("Bench Dtype", _of_bench(lambda item: item.dtype)),
    Column("NPU Tensor Shape", _of_target(shape_text)),
    Column("Bench Tensor Shape", _of_bench(shape_text)),
)

_REAL = (
    Column("Cosine", _metric(COSINE)),
    Column("MaxAbsErr", _metric(MAX_ABSOLUTE)),
    Column("MaxRelativeErr", _metric(MAX_RELATIVE)),
    Column("One Thousandth Err Ratio", _metric(ONE_THOUSANDTH)),
    Column("Five Thousandths Err Ratio", _metric(FIVE_THOUSANDTHS)),
)

_DIFFERENCES = (
    *map(Column, DIFFERENCE_TITLES, map(_delta, STATISTICS)),
    *map(Column, RELATIVE_TITLES, map(_percent, STATISTICS)),
)


_FIGURES = (
    *map(Column, NPU_TITLES, map(_of_target, map(attrgetter, STATISTICS))),
    *map(Column, BENCH_TITLES, map(_of_bench, map(attrgetter, STATISTICS))),
)
