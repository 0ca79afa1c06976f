"""Follow the error of every node over the steps: a table for each rank, and the nodes that get worse."""

from __future__ import annotations

import heapq
import math
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from msprobe_ms.comparison.model import Comparison, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.reporting.files import write_table
from msprobe_ms.comparison.reporting.xlsx_table import ColouredRow
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.dump.names import is_loss
from msprobe_ms.support.translation import tr

#: What a node holds and gives out; what comes in is another node's error.
_OWN = ("output", "parameters", "parameters_grad", "debug")
#: How much worse the later half of the steps is than the earlier one where error grows.
_GROWTH = 2.0
#: Growing nodes that are named.
_NAMED = 20


@dataclass(frozen=True)
class Errors:
    """Error ratios of nodes, in order: deviation in tolerances, 1 = what dtype and framework explain.

    Nodes of which nothing was measured are left out: no value could be compared, or its record alone differs.
    """

    nodes: list[str] = field(default_factory=list)
    ratios: array[float] = field(default_factory=lambda: array("f"))


def errors_of(comparison: Comparison) -> Errors:
    errors = Errors()
    for pair in comparison.pairs:
        if pair.target is not None and pair.golden is not None:
            ratios = [error_ratio(row) for row in pair.rows if row.state in _OWN and _is_judged(row)]
            if ratios:
                errors.nodes.append(pair.target.name)
                errors.ratios.append(max(ratios))
    return errors


def _is_judged(row: Row) -> bool:
    return row.deviation is not None and row.tolerance is not None and not row.misrecorded


class LossGap(NamedTuple):
    """Two losses of one step that differ; ``step`` is None where steps are not told apart."""

    step: int | None
    target: float
    golden: float

    @property
    def sentence(self) -> str:
        return tr(
            "loss differs first in step {step}: {target:.6g} against {golden:.6g}",
            step=self.step,
            target=self.target,
            golden=self.golden,
        )


def loss_gap(comparison: Comparison, step: int | None) -> LossGap | None:
    """Return the first loss of a step that differs by more than its tolerance; None where none was recorded or does."""
    for pair in comparison.pairs:
        for row in pair.rows if pair.matched and pair.target and is_loss(pair.target.parsed) else ():
            values = [item.maximum for item in (row.target, row.golden) if item is not None]
            if row.differs and len(values) == 2 and all(isinstance(value, float) for value in values):
                return LossGap(step, *map(float, values))  # type: ignore[arg-type]
    return None


class Growing(NamedTuple):
    """A node whose error grows; ``first`` and ``last`` are means over the earlier and the later half of the steps."""

    rank: str
    node: str
    first: float
    last: float


class Trend(NamedTuple):
    """One rank's nodes in execution order, each with its error in every step; None in one that did not measure it."""

    rank: str
    steps: Sequence[int]
    rows: Sequence[tuple[str, Sequence[float | None]]]


class Trends:
    """Collects the errors of many ranks and steps on disk, and gives a trend a rank: ``with Trends() as trends``."""

    def __init__(self) -> None:
        self._file: Any = None
        self._numbers: dict[str, int] = {}
        self._parts: dict[str, dict[int, tuple[int, int]]] = {}

    def __enter__(self) -> Trends:
        self._file = tempfile.TemporaryFile(prefix="msprobe_trend_")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, rank: str, step: int, errors: Errors) -> None:
        numbers = array("I", (self._numbers.setdefault(node, len(self._numbers)) for node in errors.nodes))
        self._parts.setdefault(rank, {})[step] = (self._file.seek(0, 2), len(numbers))
        numbers.tofile(self._file)
        errors.ratios.tofile(self._file)

    def tables(self) -> Iterator[Trend]:
        """Yield a trend for each rank with several steps."""
        names = list(self._numbers)
        for rank, parts in self._parts.items():
            if len(parts) > 1:
                steps = sorted(parts)
                columns = [self._column(*parts[step]) for step in steps]
                order = dict.fromkeys(number for column in columns for number in column)
                rows = [(names[number], [column.get(number) for column in columns]) for number in order]
                yield Trend(rank, steps, rows)

    def _column(self, start: int, length: int) -> dict[int, float]:
        self._file.seek(start)
        numbers, ratios = array("I"), array("f")
        numbers.fromfile(self._file, length)
        ratios.fromfile(self._file, length)
        return dict(zip(numbers, ratios, strict=True))


def write_trend(trend: Trend, path: Path) -> None:
    """Write a trend as csv: deviations in tolerances. Raises UsageError: it cannot be written."""
    cells: Iterator[ColouredRow] = (([node, *map(_cell, ratios)], RowColour.NONE) for node, ratios in trend.rows)
    write_table(path, ["NPU Name", *(f"step{step}" for step in trend.steps)], cells, {})


def growing(trend: Trend) -> list[Growing]:
    """Return nodes out of tolerance at the end, whose later half of steps is twice as bad as the earlier; worst first.

    >>> growing(Trend("rank0", [], [("a", [0.5, 0.9, 2.0, 4.0]), ("b", [9.0, 9.0, 9.0]), ("c", [0.1, None, 0.2])]))
    [Growing(rank='rank0', node='a', first=0.7, last=3.0)]
    """
    found = []
    for node, ratios in trend.rows:
        known = [ratio for ratio in ratios if ratio is not None]
        half = len(known) // 2
        if not half or known[-1] <= 1:
            continue
        first, last = _mean(known[:half]), _mean(known[-half:])
        if last >= _GROWTH * first and first < math.inf:
            found.append(Growing(trend.rank, node, first, last))
    return most_growing(found)


def most_growing(found: Sequence[Growing]) -> list[Growing]:
    """Return the worst of them, also of several ranks'."""
    return heapq.nlargest(_NAMED, found, key=lambda each: each.last)


def _mean(ratios: Sequence[float]) -> float:
    return sum(ratios) / len(ratios)


def _cell(ratio: float | None) -> float | str | None:
    if ratio is None:
        return None
    return float(f"{ratio:.6g}") if math.isfinite(ratio) else str(ratio)
