"""The report of msprobe 26.x: how it judges rows (pass, warning or error, with one reason), its columns and tokens.

The rules of 26.x (docs/format.md, "Judgement of latest") with two changes. None fires on a row whose difference its
dtype explains, so float noise is never an error; and a row that differs without breaking any rule is a warning, so
that nothing hides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.metrics import COSINE, METRICS, ONE_THOUSANDTH, Missing
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Comparison, Pair, Row
from msprobe_ms.comparison.reporting.colours import MSPROBE_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.profiles.base import (
    BENCH_TITLES,
    DIFFERENCE_TITLES,
    NO_BENCH,
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
from msprobe_ms.comparison.reporting.profiles.wording import differences
from msprobe_ms.comparison.statistics import (
    DIFFERENCES,
    RELATIVES,
    STATISTICS,
    checksums_comparable,
    non_finite_ends,
    same_value,
)
from msprobe_ms.comparison.terms import Mode, RowColour
from msprobe_ms.dump.model import Item

_MD5, _TENSOR, _UNCOLOURED = Mode.MD5, Mode.TENSOR, RowColour.NONE
NOT_AVAILABLE = "N/A"
PASS, WARNING, ERROR = "pass", "warning", "error"
_SEVERITY = {PASS: 0, WARNING: 1, ERROR: 2}
_COLOURS = {PASS: _UNCOLOURED, WARNING: RowColour.YELLOW, ERROR: RowColour.RED}

#: APIs whose values are undefined or a mere copy: never judged (docs/format.md, "Judgement of latest").
IGNORED = frozenset(
    {
        "__setitem__",
        "empty",
        "empty_like",
        "empty_strided",
        "empty_with_format",
        "new_empty",
        "new_empty_strided",
        "numpy",
        "to",
    }
)
#: Collectives that write into their inputs: those are not judged.
INPUTS_IGNORED = frozenset({"_reduce_scatter_base", "_all_gather_base", "all_to_all_single", "batch_isend_irecv"})


@dataclass(frozen=True)
class LatestThresholds:
    """The thresholds of 26.x (docs/format.md, "Judgement of latest")."""

    #: Error: relative error of the Norm below the first in every input and beyond the second in an output.
    good_relative: float = 0.1
    bad_relative: float = 0.5
    #: Error: share of elements within a thousandth above the first in every input and below the second in the output
    #: (26.x itself compares with 0.1 and says 0.6; 0.6 is meant).
    good_thousandth: float = 0.9
    bad_thousandth: float = 0.6
    #: Warning: the output's relative error this many times an input's, or beyond the second from nothing.
    relative_growth: float = 10.0
    relative_from_nothing: float = 0.1
    #: Warning: cosine above the first in every input falls by the second.
    good_cosine: float = 0.9
    cosine_fall: float = 0.1


class Finding(NamedTuple):
    level: str
    reason: str


def judge_pair(pair: Pair, mode: Mode, limit: LatestThresholds) -> None:
    """Fill result, reason and colour of the rows of one entry."""
    api = _api(pair)
    outputs = [row for row in pair.rows if _state(row) == "output"]
    inputs = [row for row in pair.rows if _state(row) in ("input", "parameters") and row.matched]
    for row in pair.rows:
        row.colour, row.reason = _UNCOLOURED, ""
        if row.target is None or row.golden is None:
            row.result, row.reason = NOT_AVAILABLE, NO_BENCH
            if mode == _MD5:
                _set(row, Finding(WARNING, NO_BENCH))
            continue
        row.result = PASS
        if api in IGNORED or (api in INPUTS_IGNORED and _state(row) == "input"):
            continue
        findings = list(_row_findings(row, row.target, row.golden, mode))
        if mode != _MD5 and _state(row) == "output" and row.differs:
            findings += _output_findings(inputs, row, row is outputs[0], mode, limit)
        if not findings and row.differs:
            findings = [Finding(WARNING, f"{next(differences(row, row.target, row.golden, mode))}.")]
        if findings:
            worst = max(findings, key=lambda finding: _SEVERITY[finding.level])
            note = str((row.measured or {}).get(NOTE, ""))
            _set(row, worst if note in worst.reason else Finding(worst.level, f"{worst.reason} {note}"))


def mark_origins(comparison: Comparison) -> None:
    """Make every origin that was found an error, whatever the rules say: the differing rows it names."""
    origins = {origin.target: origin for origin in comparison.origins}
    for pair in comparison.pairs if origins else ():
        whole = origins.get(pair.target.name) if pair.target else None
        for row in pair.rows:
            origin = origins.get(row.target.name) if row.target else None
            if origin is None and whole is not None and row.differs and _state(row) == whole.state:
                origin = whole
            if origin is not None:
                _set(row, Finding(ERROR, f"The error begins here: {origin.reason}"))


def _set(row: Row, finding: Finding) -> None:
    row.result, row.reason, row.colour = finding.level, finding.reason, _COLOURS[finding.level]


def _state(row: Row) -> str:
    item = row.target or row.golden
    return item.state if item else ""


def _api(pair: Pair) -> str:
    parsed = pair.target.parsed if pair.target else None
    return parsed.name if parsed and not parsed.is_module else ""


def _row_findings(row: Row, target: Item, golden: Item, mode: Mode) -> Iterator[Finding]:
    """What the row's own two items show."""
    if target.kind == "tensor" and golden.kind == "tensor":
        if mode == _MD5:
            if not checksums_comparable(target, golden):
                yield Finding(WARNING, f"No checksums of one dtype: {target.dtype} and {golden.dtype}.")
            elif row.differs:
                yield Finding(ERROR, f"The checksums differ: {target.md5} and {golden.md5}.")
        else:
            yield from _tensor_findings(row, target, golden)
        if note := (row.measured or {}).get(NOTE):
            yield Finding(WARNING, str(note))
    elif target.kind == "null" or golden.kind == "null":
        if target.kind != golden.kind and row.deviation != 0:
            missing, level = ("target" if target.kind == "null" else "golden"), ERROR if row.differs else WARNING
            yield Finding(level, f"The {missing} has no value here, the other side has one.")
    elif not same_value(target, golden):
        level = ERROR if row.differs else WARNING
        yield Finding(level, f"The parameter is {_value(target)} here and {_value(golden)} in the golden.")


def _tensor_findings(row: Row, target: Item, golden: Item) -> Iterator[Finding]:
    mine, theirs = parse_dtype(target.dtype), parse_dtype(golden.dtype)
    frameworks_differ = target.type.partition(".")[0] != golden.type.partition(".")[0]
    if target.shape != golden.shape:
        yield Finding(ERROR, f"The shapes differ: {list(target.shape or ())} and {list(golden.shape or ())}.")
    if mine.kind != theirs.kind:
        yield Finding(ERROR, f"The dtypes differ in kind: {target.dtype} and {golden.dtype}.")
    elif mine != theirs and (mine.epsilon or not frameworks_differ):
        yield Finding(WARNING, f"The dtypes differ: {target.dtype} and {golden.dtype}.")
    odd = non_finite_ends(target)
    if odd and row.differs and not non_finite_ends(golden):
        yield Finding(ERROR, f"The tensor holds {odd[0]}, the golden's figures are finite.")
    if None not in (target.requires_grad, golden.requires_grad) and target.requires_grad != golden.requires_grad:
        level = WARNING if frameworks_differ else ERROR
        yield Finding(level, f"requires_grad is {target.requires_grad} here and {golden.requires_grad} in the golden.")


def _output_findings(
    inputs: list[Row], output: Row, first: bool, mode: Mode, limit: LatestThresholds
) -> Iterator[Finding]:
    """What an output that differs shows beside the inputs of its entry."""
    before, after = _numbers(inputs, RELATIVES[-1]), output.metrics.get(RELATIVES[-1])
    if before and isinstance(after, (int, float)) and after == after:
        worst = max(before)
        if worst < limit.good_relative and after > limit.bad_relative:
            yield Finding(ERROR, f"The Norm is off by {after:.3g} (relative), in the inputs by {worst:.3g} at most.")
        elif first and (after > limit.relative_growth * worst if worst > 0 else after > limit.relative_from_nothing):
            yield Finding(WARNING, f"The Norm's relative error grows from {worst:.3g} in the inputs to {after:.3g}.")
    if mode != _TENSOR or not first:
        return
    least, after = _least(inputs, ONE_THOUSANDTH), output.metrics.get(ONE_THOUSANDTH)
    if isinstance(after, float) and least > limit.good_thousandth and after < limit.bad_thousandth:
        yield Finding(ERROR, f"Elements within a thousandth: {least:.3g} in the inputs, {after:.3g} here.")
    least, after = _least(inputs, COSINE), output.metrics.get(COSINE)
    if isinstance(after, float) and least > limit.good_cosine and least - after > limit.cosine_fall:
        yield Finding(WARNING, f"The cosine falls from {least:.6g} in the inputs to {after:.6g}.")


def _numbers(rows: list[Row], metric: str) -> list[float]:
    values = (row.metrics.get(metric) for row in rows)
    return [float(value) for value in values if isinstance(value, (int, float)) and value == value]


def _least(rows: list[Row], metric: str) -> float:
    """The smallest value of the inputs; -inf, so that no rule fires, where there is none."""
    return min(_numbers(rows, metric), default=-math.inf)


def _value(item: Item) -> str:
    """A plain value as a person writes it; sizes and slices have only their shape's text."""
    return str(item.maximum if item.maximum is not None else item.shape)


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
    colours: ClassVar[Mapping[RowColour, str]] = MSPROBE_ROWS
    thresholds: LatestThresholds = field(default_factory=LatestThresholds)
    algorithms: tuple[Algorithm, ...] = ()

    def columns(self, mode: Mode, *, stack: bool) -> list[Column]:
        middle, after = {
            _MD5: (_CHECKSUMS, ()),
            _TENSOR: ((*_REAL, *_STATISTICS), (column("Data_name", _data_name),)),
            Mode.STATISTICS: ((*_DIFFERENCES, *_STATISTICS), ()),
        }[mode]
        stacks = (column("NPU_Stack_Info", stack_text),) if stack else ()
        return [*_BASIC, *middle, *_VERDICT, *stacks, *after, *algorithm_columns(self.algorithms, mode)]

    def judge(self, comparison: Comparison) -> None:
        for pair in comparison.pairs:
            judge_pair(pair, comparison.mode, self.thresholds)
        mark_origins(comparison)


def _text(value: Statistic | Missing) -> Cell:
    """A statistic: nothing is ``N/A``, bools are text, infinities start with a space."""
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
    """Statistics that are no numbers (texts of plain values): 0 when equal, else ``Diff``."""
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

_STATISTICS = (
    *map(column, NPU_TITLES, map(_of_target, map(attrgetter, STATISTICS))),
    *map(column, BENCH_TITLES, map(_of_golden, map(attrgetter, STATISTICS))),
)

_CHECKSUMS = (column("NPU MD5", _of_target(attrgetter("md5"))), column("BENCH MD5", _of_golden(attrgetter("md5"))))

_VERDICT = (
    column("Requires_grad Consistent", _requires_grad_consistent),
    column("Result", lambda line: line.row.result),
    column("Err_message", _message),
)
