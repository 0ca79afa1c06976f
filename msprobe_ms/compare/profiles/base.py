"""What a profile is: the columns of a report, how a row fills them, and how rows are judged."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msprobe_ms.compare.algorithms import Algorithm, message_of, metric_of
from msprobe_ms.compare.model import Comparison, Metrics, Pair, Row
from msprobe_ms.store.model import Item

#: What a spreadsheet cell can hold; None is a blank cell.
Cell = str | float | int | bool | None

NO_BENCH = "No bench data matched."

#: Column titles of the four statistics, in the order Max, Min, Mean, Norm: both ages share them.
DIFFERENCE_TITLES = ("Max diff", "Min diff", "Mean diff", "L2norm diff")
RELATIVE_TITLES = ("MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr")
NPU_TITLES = ("NPU max", "NPU min", "NPU mean", "NPU l2norm")
BENCH_TITLES = ("Bench max", "Bench min", "Bench mean", "Bench l2norm")


class Line(NamedTuple):
    """One line of a report: always an item of the target, with its golden twin where there is one.

    ``metrics`` are those of the row, made once.
    ``stack`` is the call site on the first input row of an entry, None elsewhere.
    """

    pair: Pair
    row: Row
    target: Item
    golden: Item | None
    mode: str
    metrics: Metrics
    stack: tuple[str, ...] | None


class Column(NamedTuple):
    """A column fills its cells for many lines at once: a report has a million of them."""

    title: str
    cells: Callable[[Sequence[Line]], list[Cell]]


def column(title: str, cell: Callable[[Line], Cell]) -> Column:
    """A column that fills its cells one by one."""
    return Column(title, lambda lines: [cell(line) for line in lines])


class Profile(ABC):
    """One age of the report."""

    name: str
    #: RGB of the row colours ``red`` and ``yellow``.
    colours: Mapping[str, str]
    #: Whether the columns show ``MORE_METRICS``, which take time to measure.
    more_metrics: bool = False
    #: The user's own metrics: columns of real data, after all others.
    algorithms: tuple[Algorithm, ...] = ()

    @abstractmethod
    def columns(self, mode: str, *, stack: bool) -> list[Column]:
        """The columns of a mode, in order; ``stack`` adds the call sites."""

    @abstractmethod
    def judge(self, comparison: Comparison) -> None:
        """Fill every row's ``result``, ``reason`` and ``colour``."""


def lines(comparison: Comparison) -> Iterator[Line]:
    """The report's lines in order: rows without a target item have no line, in both ages (the summary counts them)."""
    for pair in comparison.pairs:
        stack = pair.target.stack if pair.target and pair.target.stack else None
        for row in pair.rows:
            target = row.target
            if target is None:
                continue
            first_input = stack is not None and target.state == "input"
            metrics = row.metrics if row.matched else {}
            yield Line(pair, row, target, row.golden, comparison.mode, metrics, stack if first_input else None)
            if first_input:
                stack = None


def item_name(item: Item, mode: str) -> str:
    """The item's name in a report; in real data mode a keyword tensor is named as its file is (``….kwargs.{name}``)."""
    if mode == "tensor" and item.keyword and item.data_name is not None:
        return ".".join((item.entry, "kwargs", *item.path))
    return item.name


def algorithm_columns(algorithms: Iterable[Algorithm], mode: str) -> Iterator[Column]:
    """Two columns for each of the user's own metrics: its value, or why there is none, and its message."""
    for algorithm in algorithms if mode == "tensor" else ():
        yield column(algorithm.name, _own_metric(metric_of(algorithm), "no data"))
        yield column(f"{algorithm.name} message", _own_metric(message_of(algorithm), ""))


def _own_metric(metric: str, absent: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        value = line.metrics.get(metric, absent)
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value

    return cell


def stack_text(line: Line) -> str:
    return str(list(line.stack)) if line.stack else "None"


def shape_text(item: Item) -> str | None:
    return _shape_text(item.shape) if isinstance(item.shape, tuple) else item.shape


@lru_cache(maxsize=4096)
def _shape_text(shape: tuple[int, ...]) -> str:
    return str(list(shape))
