"""The report of today: columns and tokens of msprobe 26.x; how its rows are judged is in ``latest_rules``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.arrays.metrics import METRICS, Missing
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
from msprobe_ms.comparison.reporting.profiles.latest_rules import LatestThresholds, judge_pair, mark_origins
from msprobe_ms.comparison.statistics import DIFFERENCES, RELATIVES, STATISTICS
from msprobe_ms.dump.model import Item

NOT_AVAILABLE = "N/A"

_TOKENS: Mapping[Missing, str] = MappingProxyType(
    {
        Missing.NO_DATA: "unsupported",
        Missing.SHAPE: "shape unmatched",
        Missing.NON_FINITE: NOT_AVAILABLE,
        Missing.ZERO_VECTOR: "Nan",
        Missing.SINGLE: "unsupported",
        Missing.EMPTY: "unsupported",
        Missing.SCALAR: "unsupported",
    }
)


@dataclass(frozen=True)
class Latest(Profile):
    """msprobe 26.x."""

    name: str = "latest"
    colours: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"red": "FF0000", "yellow": "FFFF00"}))
    thresholds: LatestThresholds = field(default_factory=LatestThresholds)
    algorithms: tuple[Algorithm, ...] = ()

    def columns(self, mode: str, *, stack: bool) -> list[Column]:
        middle, after = {
            "md5": (_MD5, ()),
            "tensor": ((*_REAL, *_FIGURES), (column("Data_name", _data_name),)),
            "statistics": ((*_DIFFERENCES, *_FIGURES), ()),
        }[mode]
        stacks = (column("NPU_Stack_Info", stack_text),) if stack else ()
        return [*_BASIC, *middle, *_VERDICT, *stacks, *after, *algorithm_columns(self.algorithms, mode)]

    def judge(self, comparison: Comparison) -> None:
        for pair in comparison.pairs:
            judge_pair(pair, comparison.mode, self.thresholds)
        mark_origins(comparison)


def _text(value: Statistic | Missing) -> Cell:
    """A figure: nothing is ``N/A``, bools are text, infinities start with a space."""
    if value is None:
        return NOT_AVAILABLE
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) else _non_finite(value)
    return str(value)


def _non_finite(value: float) -> str:
    return "nan" if value != value else f" {value}"


def _of_golden(read: Callable[[Item], Statistic]) -> Callable[[Line], Cell]:
    return lambda line: _text(read(line.golden)) if line.golden is not None else NOT_AVAILABLE


def _of_target(read: Callable[[Item], Statistic]) -> Callable[[Line], Cell]:
    return lambda line: _text(read(line.target))


def _difference(name: str, metric: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        value = line.metrics.get(metric)
        return _text_difference(line, name) if value is None else _text(value)

    return cell


def _relative(name: str, metric: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        value = line.metrics.get(metric)
        if not isinstance(value, (int, float)):
            return _text_difference(line, name)
        return f"{value * 100}%" if math.isfinite(value) else _non_finite(value)

    return cell


def _text_difference(line: Line, name: str) -> Cell:
    """Figures that are no numbers (texts of plain values): 0 when equal, else ``Diff``."""
    if line.golden is None:
        return NOT_AVAILABLE
    mine, theirs = getattr(line.target, name), getattr(line.golden, name)
    if mine is None or theirs is None:
        return NOT_AVAILABLE
    return 0 if mine == theirs else "Diff"


def _real(metric: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        value = line.metrics.get(metric, Missing.NO_DATA)
        if line.golden is None:
            return NOT_AVAILABLE
        if isinstance(value, Missing):
            return _TOKENS[value]
        if metric == "cosine" and isinstance(value, float):
            return round(value, 6 if value > 0.9999 else 12)
        return _text(value)

    return cell


def _requires_grad_consistent(line: Line) -> Cell:
    if line.golden is None or line.target.requires_grad is None or line.golden.requires_grad is None:
        return NOT_AVAILABLE
    return str(line.target.requires_grad == line.golden.requires_grad)


def _message(line: Line) -> Cell:
    """A JSON list of texts, as tools of 26.x read it."""
    return json.dumps([line.row.reason] if line.row.reason else [], ensure_ascii=False)


def _data_name(line: Line) -> str:
    if line.target.data_name is None:
        return "-1"
    return str([line.target.data_name, (line.golden.data_name if line.golden else None) or "-1"])


_BASIC = (
    column("NPU Name", lambda line: item_name(line.target, line.mode)),
    column("Bench Name", lambda line: NOT_AVAILABLE if line.golden is None else item_name(line.golden, line.mode)),
    column("NPU Dtype", _of_target(lambda item: item.dtype)),
    column("Bench Dtype", _of_golden(lambda item: item.dtype)),
    column("NPU Tensor Shape", _of_target(shape_text)),
    column("Bench Tensor Shape", _of_golden(shape_text)),
    column("NPU Requires_grad", _of_target(lambda item: item.requires_grad)),
    column("Bench Requires_grad", _of_golden(lambda item: item.requires_grad)),
)

_REAL = tuple(column(metric.title, _real(metric.name)) for metric in METRICS if metric.msprobe)

_DIFFERENCES = (
    *map(column, DIFFERENCE_TITLES, map(_difference, STATISTICS, DIFFERENCES)),
    *map(column, RELATIVE_TITLES, map(_relative, STATISTICS, RELATIVES)),
)

_FIGURES = (
    *map(column, NPU_TITLES, map(_of_target, map(attrgetter, STATISTICS))),
    *map(column, BENCH_TITLES, map(_of_golden, map(attrgetter, STATISTICS))),
)

_MD5 = (column("NPU MD5", _of_target(attrgetter("md5"))), column("BENCH MD5", _of_golden(attrgetter("md5"))))

_VERDICT = (
    column("Requires_grad Consistent", _requires_grad_consistent),
    column("Result", lambda line: line.row.result),
    column("Err_message", _message),
)
