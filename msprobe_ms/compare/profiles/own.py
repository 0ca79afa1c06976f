"""Our own report: what a person needs to find the fault, numbers as numbers; ``own_rules`` judges its rows.

Columns that mean what a column of msprobe means bear its title, so that scripts find them; Result comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType

from msprobe_ms.compare.algorithms import Algorithm
from msprobe_ms.compare.figures import DIFFERENCES, RELATIVES, STATISTICS
from msprobe_ms.compare.metrics import (
    ACCUMULATED_RELATIVE,
    COSINE,
    EUCLIDEAN,
    FIVE_THOUSANDTHS,
    KL_DIVERGENCE,
    MAX_ABSOLUTE,
    MAX_RELATIVE,
    MEAN_ABSOLUTE,
    MEAN_RELATIVE,
    ONE_THOUSANDTH,
    RELATIVE_EUCLIDEAN,
    ROOT_MEAN_SQUARE,
)
from msprobe_ms.compare.model import Comparison, Row
from msprobe_ms.compare.profiles.base import (
    BENCH_TITLES,
    DIFFERENCE_TITLES,
    NPU_TITLES,
    RELATIVE_TITLES,
    Cell,
    Column,
    Line,
    Profile,
    algorithm_columns,
    column,
    item_name,
    shape_text,
)
from msprobe_ms.compare.profiles.own_rules import judge
from msprobe_ms.store.model import Item

#: Titles of the metrics of real data: those of msprobe, then those of CANN's accuracy analyzer.
METRIC_TITLES: Mapping[str, str] = MappingProxyType(
    {
        COSINE: "Cosine",
        EUCLIDEAN: "EucDist",
        MAX_ABSOLUTE: "MaxAbsErr",
        MAX_RELATIVE: "MaxRelativeErr",
        ONE_THOUSANDTH: "One Thousandth Err Ratio",
        FIVE_THOUSANDTHS: "Five Thousandths Err Ratio",
        RELATIVE_EUCLIDEAN: "RelativeEuclideanDistance",
        ACCUMULATED_RELATIVE: "AccumulatedRelativeError",
        MEAN_RELATIVE: "MeanRelativeError",
        MEAN_ABSOLUTE: "MeanAbsoluteError",
        ROOT_MEAN_SQUARE: "RootMeanSquareError",
        KL_DIVERGENCE: "KullbackLeiblerDivergence",
    }
)


@dataclass(frozen=True)
class Own(Profile):
    """The report of this tool. Its thresholds are ``Tolerances``: what was measured against them decides."""

    name: str = "own"
    colours: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"red": "FF9C9C", "yellow": "FFEB9C"}))
    more_metrics: bool = True
    algorithms: tuple[Algorithm, ...] = ()

    def columns(self, mode: str, *, stack: bool) -> list[Column]:
        middle = {"md5": _CHECKSUMS, "tensor": _METRICS, "statistics": _DIFFERENCES}[mode]
        stacks = (column("Call Site", _call_site),) if stack else ()
        files = _FILES if mode == "tensor" else ()
        own = algorithm_columns(self.algorithms, mode)
        return [*_VERDICT, *_BASIC, *middle, *own, *_FIGURES, *_GRADIENTS, *stacks, *files]

    def judge(self, comparison: Comparison) -> None:
        judge(comparison)


def _cell(value: object) -> Cell:
    """A number, a text, or a blank for nothing; what is not finite is text, which every spreadsheet program shows."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if math.isfinite(value) else str(value)
    return str(value)


def _cells(values: Iterable[object]) -> list[Cell]:
    # A float that is no number, or infinite, is the only one whose difference from itself is not 0.
    return [value if type(value) is float and value - value == 0.0 else _cell(value) for value in values]


Cells = Callable[[Sequence[Line]], list[Cell]]


def _of_target(read: Callable[[Item], object]) -> Cells:
    return lambda lines: _cells([read(line.target) for line in lines])


def _of_golden(read: Callable[[Item], object]) -> Cells:
    return lambda lines: _cells([None if line.golden is None else read(line.golden) for line in lines])


def _of_row(read: Callable[[Row], object]) -> Cells:
    return lambda lines: _cells([read(line.row) for line in lines])


def _of_metric(metric: str) -> Cells:
    return lambda lines: _cells([line.metrics.get(metric) for line in lines])


def _call_site(line: Line) -> Cell:
    return "\n".join(" ".join(frame.split()) for frame in line.stack) if line.stack else None


_VERDICT = (
    column("NPU Name", lambda line: item_name(line.target, line.mode)),
    column("Bench Name", lambda line: None if line.golden is None else item_name(line.golden, line.mode)),
    column("Result", lambda line: line.row.result),
    column("Reason", lambda line: line.row.reason or None),
    column("Inherited From", lambda line: line.row.inherited_from or None),
    Column("Deviation", _of_row(attrgetter("deviation"))),
    Column("Tolerance", _of_row(attrgetter("tolerance"))),
)

_BASIC = (
    Column("NPU Dtype", _of_target(attrgetter("dtype"))),
    Column("Bench Dtype", _of_golden(attrgetter("dtype"))),
    Column("NPU Tensor Shape", _of_target(shape_text)),
    Column("Bench Tensor Shape", _of_golden(shape_text)),
)

_DIFFERENCES = (
    *map(Column, DIFFERENCE_TITLES, map(_of_metric, DIFFERENCES)),
    *map(Column, RELATIVE_TITLES, map(_of_metric, RELATIVES)),
)

_METRICS = tuple(Column(title, _of_metric(metric)) for metric, title in METRIC_TITLES.items())

_CHECKSUMS = (
    Column("NPU MD5", _of_target(attrgetter("md5"))),
    Column("BENCH MD5", _of_golden(attrgetter("md5"))),
)

_FIGURES = (
    *map(Column, NPU_TITLES, map(_of_target, map(attrgetter, STATISTICS))),
    *map(Column, BENCH_TITLES, map(_of_golden, map(attrgetter, STATISTICS))),
)

_GRADIENTS = (
    Column("NPU Requires_grad", _of_target(attrgetter("requires_grad"))),
    Column("Bench Requires_grad", _of_golden(attrgetter("requires_grad"))),
)

_FILES = (
    Column("NPU Data_name", _of_target(attrgetter("data_name"))),
    Column("Bench Data_name", _of_golden(attrgetter("data_name"))),
)
