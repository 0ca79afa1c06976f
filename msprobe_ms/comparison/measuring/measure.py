"""Measure pairs: fill each row's metrics, its deviation as one number, and the deviation its dtype explains.

The deviation is relative to the tensor's own scale, so that one bound serves a net's loss and its smallest gradient:

* statistics: the largest of |ΔMean| over the golden's root mean square (a mean near zero is the rest of a cancellation
  and no scale of anything), |ΔNorm| over its Norm, and a tenth of |ΔMax|, |ΔMin| over its largest magnitude (all of it
  where one side's statistics show that it was rounded to a narrower float); where both have a sketch at least
  ‖t−g‖₂ / ‖g‖₂ as these estimate it
* tensor: ‖t−g‖₂ / ‖g‖₂; of as many elements in another shape, both in the order of their size
* md5: 0 or inf
* plain values: 0 or inf
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.metrics import MORE_METRICS, TENSOR_METRICS, Missing
from msprobe_ms.comparison.measuring.deviation import least_scale, statistic_deviation
from msprobe_ms.comparison.measuring.gradient_floors import GradientFloors
from msprobe_ms.comparison.measuring.many_rows import ManyRows, Sorts, hold
from msprobe_ms.comparison.measuring.tensors import MeasuredTensors, RealData
from msprobe_ms.comparison.measuring.tolerances import (
    EXCEPTION,
    Carried,
    Tolerances,
    of_several_widths,
)
from msprobe_ms.comparison.measuring.updated import were_updated
from msprobe_ms.comparison.model import Pair, Row, Tables
from msprobe_ms.comparison.row_items import RowItems
from msprobe_ms.comparison.statistics import (
    checksums_comparable,
    holds_value,
    is_broadcast,
    is_comparable,
    is_readable,
    is_unread,
    no_gradient,
    same_value,
    without_ones,
)
from msprobe_ms.dump.columns import Sort
from msprobe_ms.dump.dialects import same_apis
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.names import BACKWARD, PARAMETERS_GRAD, is_fused, is_update, parse_entry

#: Called after each pair with the number of pairs done.
Progress = Callable[[int], object]

#: The relative difference of two settings of optimizers up to which one of them is the other in float32.
_SETTING = 1e-6


def measure(
    pairs: list[Pair],
    target: Dump,
    golden: Dump,
    mode: str,
    progress: Progress | None = None,
    tolerances: Tolerances | None = None,
    *,
    more: bool = False,
    algorithms: Sequence[Algorithm] = (),
    processes: bool = False,
) -> tuple[RowItems, RowItems] | None:
    """Fill ``measured``, ``deviation`` and ``tolerance`` of every row; ``mode`` is statistics, md5 or tensor.

    Of real data ``more`` measures ``MORE_METRICS`` as well, and ``algorithms`` are the user's own.
    A tensor file that cannot be read leaves its row with its statistics and a note. Tensors are loaded a pair at a
    time, by processes of their own where ``processes`` allows it and there are many (threads were measured and
    made it slower); nothing of the dumps is changed. Returns the items of all rows, where they were put side by side.
    """
    tolerances = tolerances or Tolerances()
    floors = GradientFloors(golden.entries, tolerances.gradient_floor)
    names = (*TENSOR_METRICS, *MORE_METRICS) if more else TENSOR_METRICS
    meter = _Meter(target, golden, mode, tolerances, floors, Carried(tolerances, one_sided=_is_narrower(pairs)), names)
    left: Container[int] = range(len(pairs))
    many: ManyRows | None = None
    if mode == "statistics":
        many = ManyRows(pairs)
        left = meter.measure_statistics(pairs, many)
    elif mode == "tensor":
        meter.measure_tensors(pairs, RealData(target.tensors, golden.tensors, more, algorithms), processes=processes)
    for number, pair in enumerate(pairs):
        if number in left:
            meter.measure_pair(pair)
        if progress:
            progress(number + 1)
    meter.allow_for_updates(pairs)
    return None if many is None else many.sides


def _is_narrower(pairs: Sequence[Pair]) -> bool:
    """Whether one side computes in narrower floats than the other as a rule: mixed precision beside full precision."""
    tables = next((row.numbers[0] for pair in pairs for row in pair.rows if row.numbers), None)
    if tables is None or not of_several_widths(tables):
        return False
    alike = other = 0
    for pair in pairs:
        for row in pair.rows if pair.matched else ():
            if row.state == "output" and (numbers := row.numbers):
                both, ours, theirs = numbers
                mine, golden = _epsilon(both[0].sort(ours)[2]), _epsilon(both[1].sort(theirs)[2])
                if mine and golden:
                    alike, other = alike + (mine == golden), other + (mine != golden)
    return other > EXCEPTION * (alike + other)


def _is_gradient(pair: Pair) -> bool:
    parsed = pair.golden.parsed if pair.golden else None
    return parsed is not None and (parsed.direction in (BACKWARD, PARAMETERS_GRAD) or is_update(parsed))


class _Meter:
    def __init__(
        self,
        target: Dump,
        golden: Dump,
        mode: str,
        tolerances: Tolerances,
        floors: GradientFloors,
        carried: Carried,
        metrics: tuple[str, ...],
    ) -> None:
        self.target, self.golden, self.mode = target, golden, mode
        self.tolerances, self.floors, self.carried = tolerances, floors, carried
        self._metrics = metrics
        self._tensors = MeasuredTensors()
        self._same_framework = target.framework == golden.framework
        self._sorts: dict[tuple[int, int, bool], Sorts] = {}
        #: Whether a dtype narrower than another may hand on its rounding.
        self._mixed = True

    def measure_statistics(self, pairs: list[Pair], rows: ManyRows) -> Container[int]:
        """Measure tensors with statistics on both sides, many at once; return the places of pairs that hold others.

        Of these tensors the tolerance waits for its turn where it depends on what was measured before.
        """
        if (tables := rows.tables) is None:
            return range(len(pairs))
        self._mixed = of_several_widths(tables)
        rows.measure(dict(self._floors(pairs)))
        if self._mixed:
            return range(len(pairs))
        rows.hold([*map(_is_gradient, pairs)], lambda *key: self._sorts_of(tables, *key))
        return set(np.flatnonzero(rows.left()).tolist())

    def _floors(self, pairs: list[Pair]) -> Iterator[tuple[int, float]]:
        """The least scales of rows that have one, by their places among all."""
        first = 0
        for pair in pairs:
            if pair.matched and (floors := self.floors.of(pair)):
                for place, row in enumerate(pair.rows, first):
                    if row.golden is not None and (floor := floors.get(row.golden.name, 0.0)):
                        yield place, floor
            first += len(pair.rows)

    def measure_tensors(self, pairs: list[Pair], data: RealData, *, processes: bool) -> None:
        """Have the tensors measured, each when its row's turn comes or before."""
        self._tensors = MeasuredTensors(data.of_rows(pairs, self._same_weights, processes=processes))

    def measure_pair(self, pair: Pair) -> None:
        gradient = _is_gradient(pair)
        floors: dict[str, float] | None = None
        for row in pair.rows:
            if row.deviation is not None and (numbers := row.numbers) is not None:
                self._hold_to_tolerance(row, *numbers, gradient)
            elif not row.matched:
                row.measured = None
            elif row.target is not None and row.golden is not None:
                floors = self.floors.of(pair) if floors is None else floors
                self._measure_row(row, row.target, row.golden, floors.get(row.golden.name, 0.0), gradient)

    def _hold_to_tolerance(self, row: Row, tables: Tables, ours: int, theirs: int, gradient: bool) -> None:
        """The tolerance of a row whose deviation was measured from its statistics."""
        sorts = self._sorts_of(tables, tables[0].sorts[ours], tables[1].sorts[theirs], gradient)
        hold(row, sorts)
        if self._mixed and row.deviation is not None and row.tolerance is not None:
            carried = self.carried.bound(*sorts.dtypes, same_framework=self._same_framework, gradient=gradient)
            row.tolerance = max(row.tolerance, carried)
            if row.deviation <= row.tolerance:
                self.carried.note(*sorts.dtypes, row.deviation)

    def _sorts_of(self, tables: Tables, ours: int, theirs: int, gradient: bool) -> Sorts:
        """What is alike for tensors of these sorts, found once."""
        sorts = self._sorts.get((ours, theirs, gradient))
        if sorts is None:
            both = tables[0].known_sorts[ours], tables[1].known_sorts[theirs]
            sorts = self._sorts[ours, theirs, gradient] = self._compare_sorts(*both, gradient)
        return sorts

    def _compare_sorts(self, ours: Sort, theirs: Sort, gradient: bool) -> Sorts:
        dtypes = ours[2], theirs[2]
        bound = self.tolerances.bound(*dtypes, exact=False, same_framework=self._same_framework, gradient=gradient)
        summed = gradient and is_broadcast(ours[3], theirs[3])
        readable = is_readable(ours[2], ours[3]) and is_readable(theirs[2], theirs[3])
        return Sorts(is_comparable(*dtypes, ours[3], theirs[3]), summed, bound, dtypes, readable)

    def _measure_row(self, row: Row, target: Item, golden: Item, floor: float, gradient: bool) -> None:
        if target.kind == golden.kind == "value" and is_update(parse_entry(golden.entry)):
            row.deviation, row.tolerance = _setting_deviation(target, golden), _SETTING
            return
        if gradient and is_broadcast(target.shape, golden.shape):
            deviation, exact = None, True
        elif target.kind == "tensor" and golden.kind == "tensor":
            deviation, exact = self._tensor_deviation(row, target, golden, floor)
            # Of modules that were joined not every figure follows from those of the parts.
            one_sided = deviation is None and not (is_fused(target.entry) or is_fused(golden.entry))
            row.unread = not exact and (
                is_unread(target, golden) or (one_sided and (holds_value(target) or holds_value(golden)))
            )
        elif gradient and no_gradient(target) and no_gradient(golden):
            deviation, exact = 0.0, True
        else:
            deviation, exact = self._value_deviation(target, golden), True
        row.deviation = deviation
        if deviation is not None:
            row.tolerance = self._tolerance(target, golden, exact, gradient)
            if deviation <= row.tolerance:
                self.carried.note(target.dtype, golden.dtype, deviation)

    def _tolerance(self, target: Item, golden: Item, exact: bool, gradient: bool) -> float:
        dtypes, same_framework = (target.dtype, golden.dtype), self._same_framework
        return max(
            self.tolerances.bound(*dtypes, exact=exact, same_framework=same_framework, gradient=gradient),
            self.carried.bound(*dtypes, same_framework=same_framework, gradient=gradient),
        )

    def allow_for_updates(self, pairs: list[Pair]) -> None:
        """Parameters that have been through updates carry the rounding of gradients; what uses them carries theirs.

        Two trainings start from one checkpoint.
        """
        if not were_updated(pairs):
            return
        rows = [row for pair in pairs for row in pair.rows if row.deviation is not None and row.matched]
        parameters = [row for row in rows if row.state == "parameters"]
        for row in parameters:
            self._widen(row, math.inf)
        largest = max((row.deviation or 0.0 for row in parameters if not row.differs), default=0.0)
        for row in rows:
            self._widen(row, self.tolerances.carried * largest)

    def _widen(self, row: Row, at_most: float) -> None:
        """Give a row of floats the tolerance of a gradient."""
        assert row.target is not None and row.golden is not None and row.tolerance is not None
        if parse_dtype(row.golden.dtype).epsilon:
            wider = self._tolerance(row.target, row.golden, exact=True, gradient=True)
            row.tolerance = max(row.tolerance, min(at_most, wider))

    def _tensor_deviation(self, row: Row, target: Item, golden: Item, floor: float) -> tuple[float | None, bool]:
        """The deviation, and whether every element took part in it."""
        deviation: float | None = None
        exact = False
        if self.mode == "md5" and checksums_comparable(target, golden):
            deviation, exact = self._checksum_deviation(target, golden, floor)
        elif self.mode == "tensor":
            deviation = self._real_data(row, target, golden, floor)
            exact = deviation is not None
        if deviation is None:
            deviation = statistic_deviation(target, golden, floor)
        if not is_comparable(target.dtype, golden.dtype, target.shape, golden.shape):
            deviation = math.inf
        return deviation, exact

    def _same_weights(self, row: Row) -> bool:
        """Whether these are weights of one layer that the frameworks give axes of length 1 in other places (Conv1d)."""
        if self._same_framework or row.state not in ("parameters", "parameters_grad"):
            return False
        target, golden = row.target, row.golden
        assert target is not None and golden is not None
        return without_ones(target.shape) == without_ones(golden.shape)

    def _checksum_deviation(self, target: Item, golden: Item, floor: float) -> tuple[float, bool]:
        """Checksums agree or not; across frameworks, whose bits never agree, the statistics beside them decide."""
        if target.md5 == golden.md5:
            return 0.0, True
        deviation = None if self._same_framework else statistic_deviation(target, golden, floor)
        return (math.inf, True) if deviation is None else (deviation, False)

    def _real_data(self, row: Row, target: Item, golden: Item, floor: float) -> float | None:
        row.measured = dict.fromkeys(self._metrics, Missing.NO_DATA)
        if target.data_name is None or golden.data_name is None:
            return None
        metrics, difference = self._tensors.take(row)
        row.measured.update(metrics)
        if difference is None:
            return None
        scale = max(difference.golden_rms, floor, least_scale(target.dtype, golden.dtype))
        return difference.error_rms / scale if scale > 0 else difference.relative_l2

    def _value_deviation(self, target: Item, golden: Item) -> float | None:
        """Plain values agree or not. Signatures of two frameworks differ, so what differs there says nothing."""
        if target.kind == "null" and golden.kind == "null":
            return None
        if target.kind != "null" and golden.kind != "null" and same_value(target, golden):
            return 0.0
        return math.inf if same_apis(self.target.framework, self.golden.framework) else None


def _setting_deviation(target: Item, golden: Item) -> float:
    """The relative difference of two settings of optimizers, which frameworks hold in other widths of float."""
    mine, other = target.maximum, golden.maximum
    if isinstance(mine, (int, float)) and isinstance(other, (int, float)):
        return abs(mine - other) / max(abs(mine), abs(other)) if mine != other else 0.0
    return 0.0 if same_value(target, golden) else math.inf


def _epsilon(dtype: str | None) -> float:
    return parse_dtype(dtype).epsilon
