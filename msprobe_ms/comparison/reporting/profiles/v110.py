"""The report of msprobe 1.1.0, cell for cell: its columns; how its rows are judged is in ``v110_rules``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.arrays.metrics import METRICS
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.profiles.base import (
    BENCH_TITLES,
    DIFFERENCE_TITLES,
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
from msprobe_ms.comparison.reporting.profiles.v110_rules import (
    NOT_AVAILABLE,
    Rules,
    V110Thresholds,
    checksum,
    number,
    text,
    token,
)
from msprobe_ms.comparison.statistics import STATISTICS, is_number
from msprobe_ms.dump.model import Item

#: Fills the bench cells of an item its matched entry has and the bench's has not.
EXTRA_ITEM = "Nan"


@dataclass(frozen=True)
class V110(Profile):
    """msprobe 1.1.0."""

    name: str = "v110"
    colours: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"red": "FF0000", "yellow": "FFFF00"}))
    thresholds: V110Thresholds = field(default_factory=V110Thresholds)
    algorithms: tuple[Algorithm, ...] = ()

    def columns(self, mode: str, *, stack: bool) -> list[Column]:
        stacks = [column("NPU_Stack_Info", stack_text)] if stack else []
        result = [column("Result", _result), column("Err_message", lambda line: line.row.reason or None)]
        if mode == "md5":
            md5 = [column("NPU MD5", _of_target(checksum)), column("BENCH MD5", _of_bench(checksum))]
            return [*_BASIC, *md5, result[0], *stacks]
        if mode == "tensor":
            reached = [column("Accuracy Reached or Not", _result), result[1]]
            own = algorithm_columns(self.algorithms, mode)
            return [*_BASIC, *_REAL, *_FIGURES, *reached, *stacks, column("Data_name", _data_name), *own]
        return [*_BASIC, *_DIFFERENCES, *_FIGURES, *result, *stacks]

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


_FIGURES = (
    *map(column, NPU_TITLES, map(_of_target, map(attrgetter, STATISTICS))),
    *map(column, BENCH_TITLES, map(_of_bench, map(attrgetter, STATISTICS))),
)
