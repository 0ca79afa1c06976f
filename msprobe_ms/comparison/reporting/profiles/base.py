"""Base of a profile: the columns of a report, how a row fills them, and how rows are judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

from msprobe_ms.arrays.custom_metrics import Algorithm, message_of, metric_of
from msprobe_ms.comparison.model import Comparison, Metrics, Pair, Row
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.row_columns import RowColumns
from msprobe_ms.comparison.statistics import is_non_finite
from msprobe_ms.comparison.terms import Mode, RowColour
from msprobe_ms.dump.model import Item

_TENSOR = Mode.TENSOR
NO_BENCH = "No bench data matched."

#: Column titles of the four statistics, in the order Max, Min, Mean, Norm: both ages share them.
DIFFERENCE_TITLES = ("Max diff", "Min diff", "Mean diff", "L2norm diff")
RELATIVE_TITLES = ("MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr")
NPU_TITLES = ("NPU max", "NPU min", "NPU mean", "NPU l2norm")
BENCH_TITLES = ("Bench max", "Bench min", "Bench mean", "Bench l2norm")


class Line:
    """One line of a report: always an item of the target, with its golden counterpart where there is one.

    ``stack`` is the call site on the first input row of an entry, None elsewhere. What else a line has is made once,
    when it is asked for.
    """

    __slots__ = ("_golden", "_metrics", "_target", "mode", "pair", "row", "stack")

    def __init__(self, pair: Pair, row: Row, mode: Mode, stack: tuple[str, ...] | None) -> None:
        self.pair, self.row, self.mode, self.stack = pair, row, mode, stack
        self._target: Item | None = None
        self._golden: Item | None = None
        self._metrics: Metrics | None = None

    @property
    def target(self) -> Item:
        if self._target is None:
            self._target = self.row.target
            assert self._target is not None
        return self._target

    @property
    def golden(self) -> Item | None:
        if self._golden is None and self.row.in_golden:
            self._golden = self.row.golden
        return self._golden

    @property
    def metrics(self) -> Metrics:
        if self._metrics is None:
            self._metrics = self.row.metrics
        return self._metrics


class Block:
    """Some lines of a report side by side."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    @cached_property
    def columns(self) -> RowColumns:
        """What the dumps say of the items, read column by column."""
        return RowColumns([line.row for line in self.lines])


class Column(NamedTuple):
    """A column fills its cells for many lines at once: a report has a million of them."""

    title: str
    cells: Callable[[Block], list[Cell]]


def column(title: str, cell: Callable[[Line], Cell]) -> Column:
    """A column that fills its cells one by one."""
    return Column(title, lambda lines: [cell(line) for line in lines])


class Profile(ABC):
    """One kind of report: its columns, colours and rules."""

    name: str
    #: RGB of the rows.
    colours: ClassVar[Mapping[RowColour, str]]
    #: Whether the columns show ``MORE_METRICS``, which take time to measure.
    more_metrics: bool = False
    #: The user's own metrics: columns of real data, after all others.
    algorithms: tuple[Algorithm, ...] = ()

    @abstractmethod
    def columns(self, mode: Mode, *, stack: bool) -> list[Column]:
        """The columns of a mode, in order; ``stack`` adds the call sites."""

    @abstractmethod
    def judge(self, comparison: Comparison) -> None:
        """Fill every row's ``result``, ``reason`` and ``colour``."""


def lines(comparison: Comparison) -> Iterator[Line]:
    """Yield the lines of a report in order; rows without a target item have none (the summary counts them)."""
    for pair in comparison.pairs:
        stack = pair.target.stack if pair.target and pair.target.stack else None
        for row in pair.rows:
            if row.in_target:
                first_input = stack is not None and row.state == "input"
                yield Line(pair, row, comparison.mode, stack if first_input else None)
                if first_input:
                    stack = None


def item_name(item: Item, mode: Mode) -> str:
    """Return an item's name in a report; of real data, keyword tensors are named as their files (``….kwargs.x``)."""
    if mode == _TENSOR and item.keyword and item.data_name is not None:
        return ".".join((item.entry, "kwargs", *item.path))
    return item.name


def algorithm_columns(algorithms: Iterable[Algorithm], mode: Mode) -> Iterator[Column]:
    """Yield two columns for each of the user's own metrics: its value, or why there is none, and its message."""
    for algorithm in algorithms if mode == _TENSOR else ():
        yield column(algorithm.name, _own_metric(metric_of(algorithm), "no data"))
        yield column(f"{algorithm.name} message", _own_metric(message_of(algorithm), ""))


def _own_metric(metric: str, absent: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        value = line.metrics.get(metric, absent)
        return str(value) if is_non_finite(value) else value

    return cell


def stack_text(line: Line) -> str:
    return str(list(line.stack)) if line.stack else "None"


def shape_text(item: Item) -> str | None:
    return shape_text_of(item.shape)


def shape_text_of(shape: object) -> str | None:
    """Return a shape as the tables have it; a text stays one."""
    return _shape_text(shape) if isinstance(shape, tuple) else None if shape is None else str(shape)


@lru_cache(maxsize=4096)
def _shape_text(shape: tuple[int, ...]) -> str:
    return str(list(shape))
