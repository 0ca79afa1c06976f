"""The tensors of rows: loaded, measured, and let go of, a pair at a time, here or in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.custom_metrics import Algorithm, measured_by
from msprobe_ms.arrays.metrics import TensorDifference, tensor_difference
from msprobe_ms.comparison.measuring.deviation import (
    are_filled_otherwise,
    difference_but_for_fills,
    is_filled,
    unfilled_difference,
)
from msprobe_ms.comparison.model import Metrics, Pair, Row
from msprobe_ms.comparison.statistics import contradiction, elements_of, is_broadcast, without_ones
from msprobe_ms.comparison.terms import GOLDEN
from msprobe_ms.dump.model import Item, Tensors
from msprobe_ms.support.errors import ContradictionError, MsprobeError
from msprobe_ms.support.translation import tr

#: ``Row.metrics`` key of a sentence about what could not be measured, for the report.
NOTE = "note"
#: How the note of a tensor file that could not be read begins.
NOT_COMPARED = tr("Real data not compared: ")
#: How that of one begins whose file holds something else than dump.json says.
CONTRADICTS = tr("Real data not compared, as a file contradicts dump.json: ")

#: Elements from which on processes are begun for them: a core measures them in about a second, and a process takes half
#: a second to begin.
_WORTH_PROCESSES = 80_000_000
#: Elements that a process is given at a time.
_AT_A_TIME = 8_000_000
#: Bytes that one element of a pair takes at most while it is measured.
_ELEMENT = 32


class TensorPair(NamedTuple):
    """Two recorded tensors; ``reshaped``: weights of one layer that may have axes of length 1 in other places."""

    target: Item
    golden: Item
    reshaped: bool


class Measured(NamedTuple):
    """What was measured, or, where there is no ``difference``, a note why nothing was."""

    metrics: Metrics
    difference: TensorDifference | None = None


class RealData:
    """Measures the tensors of two dumps; ``more``: ``MORE_METRICS`` as well; ``algorithms`` are the user's own."""

    def __init__(self, target: Tensors, golden: Tensors, more: bool, algorithms: Sequence[Algorithm] = ()) -> None:
        self._target, self._golden, self._more, self._algorithms = target, golden, more, tuple(algorithms)

    def of_rows(
        self, pairs: Sequence[Pair], reshaped: Callable[[Row], bool], *, processes: bool
    ) -> Iterator[tuple[Row, Measured]]:
        """Each row that has two tensors in files, in order, with what they differ by.

        ``processes``: processes may share the work, as this comparison has the machine to itself.
        """
        chunks = _Chunks(pairs, reshaped)
        if processes and not self._algorithms and len(chunks) > 1 and chunks.elements >= _WORTH_PROCESSES:
            yield from self._spread(chunks)
        else:
            for number in range(len(chunks)):
                for row, pair in chunks.rows(number):
                    yield row, self.of(pair)

    def of(self, pair: TensorPair) -> Measured:
        try:
            return self._of(pair)
        except MemoryError:  # of this pair alone; the others may be small
            return Measured({NOTE: _without_memory()})

    def _of(self, pair: TensorPair) -> Measured:
        loaded = _loaded(self._target, self._golden, pair.target, pair.golden)
        if isinstance(loaded, str):
            return Measured({NOTE: loaded})
        target, golden = loaded
        if pair.reshaped and target.size == golden.size:
            target = target.reshape(golden.shape)
        difference = tensor_difference(target, golden, more=self._more)
        if is_broadcast(target.shape, golden.shape):
            whole = tensor_difference(*np.broadcast_arrays(target, golden))
            difference = replace(difference, **_sizes(whole))
        if target.shape != golden.shape and target.size == golden.size:
            difference = replace(difference, **_of_other_layout(target, golden))
        if are_filled_otherwise(pair.target, pair.golden):
            difference = difference_but_for_fills(target, golden, difference)
        elif isinstance(fill := pair.golden.minimum, float) and is_filled(pair.golden.maximum, fill):
            difference = unfilled_difference(target, golden, fill, difference)
        return Measured({**difference.metrics, **measured_by(self._algorithms, target, golden)}, difference)

    def _spread(self, chunks: _Chunks) -> Iterator[tuple[Row, Measured]]:
        from msprobe_ms.support.workers import Lost, processes, run_in_order  # here, as few comparisons need them

        with closing(processes(len(chunks), chunks.largest * _ELEMENT)) as pool:
            for number, result in enumerate(run_in_order(partial(_of_all, self), chunks, pool)):
                lost = Measured({NOTE: f"{NOT_COMPARED}{result.reason}"}) if isinstance(result, Lost) else None
                measured = iter(()) if isinstance(result, Lost) else iter(result)
                for row, _ in chunks.rows(number):
                    yield row, lost or next(measured)


class MeasuredTensors:
    """What the tensors of rows differ by, handed out row by row; those that come before the one asked for wait."""

    def __init__(self, measured: Iterable[tuple[Row, Measured]] = ()) -> None:
        self._measured = iter(measured)
        self._waiting: dict[Row, Measured] = {}

    def take(self, row: Row) -> Measured:
        """Return what the tensors of ``row`` differ by, once.

        :raises KeyError: there are none, or they were taken
        """
        while row not in self._waiting:
            try:
                other, measured = next(self._measured)
            except StopIteration:
                raise KeyError(row) from None
            self._waiting[other] = measured
        return self._waiting.pop(row)


class _Chunks(Sequence[list[TensorPair]]):
    """The pairs of tensors of all rows, some at a time; they are made when they are asked for, and not kept.

    ``elements``: of all of them; ``largest``: of the largest.
    """

    def __init__(self, pairs: Sequence[Pair], reshaped: Callable[[Row], bool]) -> None:
        self._pairs, self._reshaped = pairs, reshaped
        self.elements = self.largest = 0
        self._ends: list[int] = []
        size = 0
        for number, pair in enumerate(pairs, 1):
            for row in pair.rows:
                count = _elements(row) if row.matched else 0
                self.elements, self.largest = self.elements + count, max(self.largest, count)
                size += count
            if size >= _AT_A_TIME or number == len(pairs):
                self._ends.append(number)
                size = 0

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, number: int) -> list[TensorPair]: ...
    @overload
    def __getitem__(self, number: slice) -> list[list[TensorPair]]: ...
    def __getitem__(self, number: int | slice) -> list[TensorPair] | list[list[TensorPair]]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        return [pair for _, pair in self.rows(number)]

    def rows(self, number: int) -> Iterator[tuple[Row, TensorPair]]:
        for pair in self._pairs[self._ends[number - 1] if number else 0 : self._ends[number]]:
            for row in pair.rows:
                if (both := _in_files(row)) is not None:
                    yield row, TensorPair(*both, self._reshaped(row))


def load_both(
    target: Tensors, golden: Tensors, row: Row
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]] | None:
    """The tensors of a row; None where one has no file, cannot be read or contradicts what was recorded."""
    if (both := _in_files(row)) is None:
        return None
    loaded = _loaded(target, golden, *both)
    return None if isinstance(loaded, str) else loaded


def _loaded(
    target: Tensors, golden: Tensors, ours: Item, theirs: Item
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]] | str:
    """Two tensors, or a note why they are not compared."""
    try:
        mine, other = target.load(ours), golden.load(theirs)
    except ContradictionError as error:
        return CONTRADICTS + error.message
    except (MsprobeError, OSError) as error:
        return tr("{not_compared}{error}", not_compared=NOT_COMPARED, error=error)
    except MemoryError:
        return _without_memory()
    for source, item, array in ((target, ours, mine), (golden, theirs, other)):
        if said := contradiction(item, array):
            return tr("{contradicts}{where}: {said}", contradicts=CONTRADICTS, where=source.where(item), said=said)
    return mine, other


def _without_memory() -> str:
    return tr("{not_compared}not enough memory for the tensors", not_compared=NOT_COMPARED)


def _of_other_layout(target: npt.NDArray[np.generic], golden: npt.NDArray[np.generic]) -> dict[str, Any]:
    """The size of the difference of as many elements in another shape: in order where only axes of length 1 differ.

    Else of the elements in the order of their size, as nothing tells which is which; no metric of a report is.
    """
    if without_ones(target.shape) == without_ones(golden.shape):
        whole = tensor_difference(target.reshape(-1), golden.reshape(-1))
    else:
        whole = tensor_difference(np.sort(target, axis=None), np.sort(golden, axis=None))
    return _sizes(whole)


def _sizes(difference: TensorDifference) -> dict[str, Any]:
    return {name: getattr(difference, name) for name in ("relative_l2", "error_rms", "golden_rms")}


def _in_files(row: Row) -> tuple[Item, Item] | None:
    target, golden = row.target, row.golden
    if target is None or golden is None or target.data_name is None or golden.data_name is None:
        return None
    return (target, golden) if target.kind == golden.kind == "tensor" else None


def _elements(row: Row) -> int:
    """Elements of the golden's tensor, told by its column where it stands in one."""
    stored = row.stored(GOLDEN)
    golden = row.golden if stored is None else None
    shape = stored[0].sort(stored[1])[3] if stored is not None else golden.shape if golden is not None else None
    return elements_of(shape)


def _of_all(data: RealData, pairs: list[TensorPair]) -> list[Measured]:
    """Runs in a process of its own."""
    return list(map(data.of, pairs))
