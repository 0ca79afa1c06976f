"""Base of a profile: the columns of a report, how rows fill them, and how rows are judged.

Names, dtypes, shapes, statistics and differences of many rows are read at once, column by column: rows that point into
the dumps' columns are read there; of all others the items are asked.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.custom_metrics import Algorithm, message_of, metric_of
from msprobe_ms.comparison.model import Comparison, Metrics, Pair, Row
from msprobe_ms.comparison.reporting.csv_table import Cell, Cells, CodedCells
from msprobe_ms.comparison.reporting.legend import LegendLine
from msprobe_ms.comparison.row_items import RowItems
from msprobe_ms.comparison.statistics import RELATIVES, STATISTICS, is_non_finite
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Mode, RowColour, Side
from msprobe_ms.dump.columns import NULL, Sort
from msprobe_ms.dump.model import Item

_TENSOR = Mode.TENSOR
NO_BENCH = "No bench data matched."

#: Column titles of the four statistics, in the order Max, Min, Mean, Norm: both ages share them.
DIFFERENCE_TITLES = ("Max diff", "Min diff", "Mean diff", "L2norm diff")
RELATIVE_TITLES = ("MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr")
NPU_TITLES = ("NPU max", "NPU min", "NPU mean", "NPU l2norm")
BENCH_TITLES = ("Bench max", "Bench min", "Bench mean", "Bench l2norm")


Floats = npt.NDArray[np.float64]
#: Values of many rows; an array where all of them are numbers.
Values = list[Any] | Floats


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
    """Some lines of a report side by side: the rows at these places of a comparison, and their items."""

    def __init__(self, comparison: Comparison, places: npt.NDArray[np.intp]) -> None:
        self.comparison, self.places = comparison, places

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    @cached_property
    def lines(self) -> list[Line]:
        found = lines(self.comparison, int(self.places[0]))
        return list(islice(found, len(self.places)))

    @cached_property
    def rows(self) -> list[Row]:
        return [self.row(place) for place in range(len(self.places))]

    def row(self, place: int) -> Row:
        return self.comparison.rows[self.places[place]]

    @cached_property
    def columns(self) -> RowColumns:
        """What the dumps say of the items, read column by column."""
        rows, places = self.comparison.rows, self.places
        target, golden = self.comparison.sides
        # What refers to the block itself would not be freed with it.
        return RowColumns(lambda place: rows[places[place]], (target.of(places), golden.of(places)))


class Column(NamedTuple):
    """A column fills its cells for many lines at once: a report has a million of them."""

    title: str
    cells: Callable[[Block], Cells]


def column(title: str, cell: Callable[[Line], Cell]) -> Column:
    """A column that fills its cells one by one."""
    return Column(title, lambda lines: [cell(line) for line in lines])


#: Types whose values are cells.
_AS_THEY_ARE = frozenset((str, type(None)))


def cells_of(values: Values | CodedCells) -> Cells:
    """Return values as cells: numbers, texts, blanks for nothing; what is not finite is a text, as sheets hold none."""
    if isinstance(values, CodedCells):
        return values
    if not isinstance(values, np.ndarray):
        kinds = set(map(type, values))
        if kinds <= _AS_THEY_ARE:
            return values
        if kinds != {float}:
            return [value if type(value) is str else cell_of(value) for value in values]
        values = np.array(values, np.float64)
    return values if np.isfinite(values).all() else [*map(cell_of, values.tolist())]


def cell_of(value: object) -> Cell:
    """Return one value as a cell."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if math.isfinite(value) else str(value)
    return str(value)


class Profile(ABC):
    """One kind of report: its columns, colours and rules."""

    name: str
    #: RGB of the rows.
    colours: ClassVar[Mapping[RowColour, str]]
    #: Whether the columns show ``MORE_METRICS``, which take time to measure.
    more_metrics: bool = False
    #: The user's own metrics: columns of real data, after all others.
    algorithms: tuple[Algorithm, ...] = ()

    def legend(self, titles: Sequence[str]) -> Iterator[LegendLine]:
        """Yield what colours, results and columns mean, for a sheet of their own; tables like msprobe's have none."""
        yield from ()

    @abstractmethod
    def columns(self, mode: Mode, *, stack: bool) -> list[Column]:
        """The columns of a mode, in order; ``stack`` adds the call sites."""

    @abstractmethod
    def judge(self, comparison: Comparison) -> None:
        """Fill every row's ``result``, ``reason`` and ``colour``."""


def lines(comparison: Comparison, first: int = 0) -> Iterator[Line]:
    """Yield the lines of a report in order, from the row at the place ``first`` on.

    Rows without a target item have none (the summary counts them).
    """
    place = 0
    for pair in comparison.pairs:
        if place + len(pair.rows) <= first:
            place += len(pair.rows)
            continue
        stack = pair.target.stack if pair.target and pair.target.stack else None
        for row in pair.rows:
            if row.in_target:
                first_input = stack is not None and row.state == "input"
                if place >= first:
                    yield Line(pair, row, comparison.mode, stack if first_input else None)
                if first_input:
                    stack = None
            place += 1


def blocks(comparison: Comparison, size: int) -> Iterator[Block]:
    """Yield the lines of a report, ``size`` at a time."""
    places = np.flatnonzero(comparison.sides[TARGET].present)
    for start in range(0, len(places), size):
        yield Block(comparison, places[start : start + size])


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


class RowColumns:
    """Columns of some rows: a value for each row, None where the row has no item on that side."""

    def __init__(self, row: Callable[[int], Row], sides: tuple[RowItems, RowItems]) -> None:
        """``row`` gives the row at a place, of which more than the columns hold is asked."""
        self._row = row
        self.target, self.golden = (SideColumns(row, side, sides[side]) for side in (TARGET, GOLDEN))

    @cached_property
    def relatives(self) -> dict[str, Values]:
        """The relative differences of the statistics, by their names as metrics."""
        mine, theirs = self.target.floats, self.golden.floats
        with np.errstate(all="ignore"):
            relative = np.where(theirs != 0, np.abs((mine - theirs) / theirs), np.inf)
            equal = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        relative[equal] = 0.0
        others = sorted({*self.target.others, *self.golden.others})
        columns: dict[str, Values] = dict(zip(RELATIVES, relative.T.tolist() if others else relative.T, strict=True))
        for place in others:
            metrics = self._row(place).metrics
            for name, column in columns.items():
                column[place] = metrics.get(name)
        return columns


class SideColumns:
    """The items of one side; ``others`` are the places of those whose statistics are not four floats of a table."""

    def __init__(self, row: Callable[[int], Row], side: Side, items: RowItems) -> None:
        self._row, self._side, self._items = row, side, items
        self.others: list[int] = np.flatnonzero(~items.regular).tolist()

    @cached_property
    def floats(self) -> Floats:
        """Max, Min, Mean and Norm: float64 of shape (rows, 4); anything at the places of ``others``."""
        table = self._items.table
        if table is None or not len(table):
            return np.zeros((len(self._items.numbers), 4))
        floats: Floats = np.frombuffer(table.statistics, np.float64).reshape(-1, 4)[self._items.numbers]
        return floats

    @cached_property
    def statistics(self) -> dict[str, Values]:
        """The four statistics by their names."""
        floats = self.floats.T
        columns: dict[str, Values] = dict(zip(STATISTICS, floats.tolist() if self.others else floats, strict=True))
        for place in self.others:
            item = self._item(place)
            for name, column in columns.items():
                column[place] = getattr(item, name, None)
        return columns

    @property
    def names(self) -> Values:
        table, numbers = self._items.table, self._items.numbers
        if table is not None and self._all_stored:
            return table.names(numbers)
        return [
            table.name(number) if table is not None and number >= 0 else getattr(self._item(place), "name", None)
            for place, number in enumerate(numbers.tolist())
        ]

    def of_sorts(self, read: Callable[[Sort], str | None]) -> list[str | None] | CodedCells:
        """What is read of the items' sorts, each once as far as they are stored: those of a dump are few."""
        table = self._items.table
        if table is None or not self._all_stored:
            return [read(self._items.sort(place) or NULL) for place in range(len(self._items.numbers))]
        codes, places = self._sorts
        return CodedCells(places, [read(table.known_sorts[code]) for code in codes])

    @property
    def dtypes(self) -> list[str | None] | CodedCells:
        return self.of_sorts(lambda sort: sort[2])

    @property
    def shapes(self) -> list[str | None] | CodedCells:
        """The shapes as the tables have them."""
        return self.of_sorts(lambda sort: shape_text_of(sort[3]))

    @property
    def requires_grad(self) -> list[str | None] | CodedCells:
        """``True``, ``False`` or nothing."""
        return self.of_sorts(lambda sort: None if sort[4] is None else str(sort[4]))

    def read(self, read: Callable[[Item], object]) -> Values:
        """What else the items hold."""
        return [
            None if (item := self._item(place)) is None else read(item) for place in range(len(self._items.numbers))
        ]

    @cached_property
    def _all_stored(self) -> bool:
        return bool((self._items.numbers >= 0).all())

    @cached_property
    def _sorts(self) -> tuple[list[int], npt.NDArray[np.intp]]:
        """The codes of sorts that occur, and the place of each row's among them."""
        codes, places = np.unique(self._items.sorts, return_inverse=True)
        return codes.tolist(), places

    def _item(self, place: int) -> Item | None:
        row = self._row(place)
        return row.target if self._side is TARGET else row.golden
