"""Our own report: what a person needs to find the fault, numbers as numbers; ``own_rules`` judges its rows.

Columns that mean what a column of msprobe means bear its title, so that scripts find them; Result comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.arrays.metrics import (
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
from msprobe_ms.comparison.model import Comparison, Row
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.profiles.base import (
    BENCH_TITLES,
    NPU_TITLES,
    RELATIVE_TITLES,
    Block,
    Column,
    Line,
    Profile,
    algorithm_columns,
    column,
    item_name,
    shape_text_of,
)
from msprobe_ms.comparison.reporting.profiles.own_rules import judge
from msprobe_ms.comparison.reporting.row_columns import Side
from msprobe_ms.comparison.statistics import RELATIVES, STATISTICS
from msprobe_ms.dump.model import Item

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
        middle = {"md5": _CHECKSUMS, "tensor": _METRICS, "statistics": _RELATIVES}[mode]
        stacks = (column("Call Site", _call_site),) if stack else ()
        files = _FILES if mode == "tensor" else ()
        own = algorithm_columns(self.algorithms, mode)
        return [*_VERDICT, *_BASIC, *middle, *own, *_FIGURES, *_GRADIENTS, *stacks, *files]

    def judge(self, comparison: Comparison) -> None:
        judge(comparison)


#: Types whose values are cells.
_AS_THEY_ARE = frozenset((str, type(None)))


def _cell(value: object) -> Cell:
    """A number, a text, or a blank for nothing; what is not finite is text, which every spreadsheet program shows."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if math.isfinite(value) else str(value)
    return str(value)


def _cells(values: Iterable[object]) -> list[Cell]:
    values = list(values)
    kinds = set(map(type, values))
    if kinds <= _AS_THEY_ARE or (kinds == {float} and math.isfinite(sum(values))):  # type: ignore[arg-type]
        return values  # type: ignore[return-value]
    return [value if type(value) is str else _cell(value) for value in values]


Cells = Callable[[Block], list[Cell]]


def _of_sides(read: Callable[[Side], Iterable[object]]) -> tuple[Cells, Cells]:
    """The cells of the target's column and of the golden's."""
    return lambda block: _cells(read(block.figures.target)), lambda block: _cells(read(block.figures.golden))


def _of_items(read: Callable[[Item], object]) -> tuple[Cells, Cells]:
    return _of_sides(lambda side: side.read(read))


def _figure(name: str) -> Callable[[Side], Iterable[object]]:
    return lambda side: side.figures[name]


def _of_row(read: Callable[[Row], object]) -> Cells:
    return lambda block: _cells([read(line.row) for line in block])


def _relative(metric: str) -> Cells:
    return lambda block: _cells(block.figures.relatives[metric])


def _of_metric(metric: str) -> Cells:
    return lambda block: _cells([(line.row.measured or {}).get(metric) for line in block])


def _names(block: Block, side: Side) -> list[Cell]:
    mode = block.lines[0].mode
    if mode == "tensor":  # where the names of files count
        return _cells(side.read(lambda item: item_name(item, mode)))
    return _cells(side.names)


def _call_site(line: Line) -> Cell:
    return "\n".join(" ".join(frame.split()) for frame in line.stack) if line.stack else None


def _pairs(titles: Iterable[str], cells: Iterable[tuple[Cells, Cells]]) -> tuple[Column, ...]:
    """Columns of the target and the golden, by their common title."""
    return tuple(
        Column(f"{prefix} {title}", each)
        for title, both in zip(titles, cells, strict=True)
        for prefix, each in zip(("NPU", "Bench"), both, strict=True)
    )


_VERDICT = (
    Column("NPU Name", lambda block: _names(block, block.figures.target)),
    Column("Bench Name", lambda block: _names(block, block.figures.golden)),
    column("Result", lambda line: line.row.result),
    column("Reason", lambda line: line.row.reason or None),
    column("Inherited From", lambda line: line.row.inherited_from or None),
    Column("Explained By", lambda block: [line.row.explained and (line.row.explained_by or None) for line in block]),
    Column("Deviation", _of_row(attrgetter("deviation"))),
    Column("Tolerance", _of_row(attrgetter("held_to"))),
)

_BASIC = _pairs(
    ("Dtype", "Tensor Shape"),
    (_of_sides(attrgetter("dtypes")), _of_sides(lambda side: map(shape_text_of, side.shapes))),
)

#: The figures stand side by side: what they differ by is told relative to them alone.
_RELATIVES = tuple(map(Column, RELATIVE_TITLES, map(_relative, RELATIVES)))

_METRICS = tuple(Column(title, _of_metric(metric)) for metric, title in METRIC_TITLES.items())

_CHECKSUMS = _pairs(("MD5",), (_of_items(attrgetter("md5")),))
# The table of msprobe has its second title in capitals.
_CHECKSUMS = (_CHECKSUMS[0], _CHECKSUMS[1]._replace(title="BENCH MD5"))

_OF_FIGURES = [_of_sides(_figure(name)) for name in STATISTICS]
_FIGURES = (
    *(Column(title, target) for title, (target, _) in zip(NPU_TITLES, _OF_FIGURES, strict=True)),
    *(Column(title, golden) for title, (_, golden) in zip(BENCH_TITLES, _OF_FIGURES, strict=True)),
)

_GRADIENTS = _pairs(("Requires_grad",), (_of_sides(attrgetter("requires_grad")),))

_FILES = _pairs(("Data_name",), (_of_items(attrgetter("data_name")),))
