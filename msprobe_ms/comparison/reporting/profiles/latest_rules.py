"""How today's report judges a row: pass, warning or error, with one reason.

The rules of 26.x (docs/format.md, "Judgement of latest") with two changes. None fires on a row whose difference its
dtype explains, so float noise is never an error; and a row that differs without breaking any rule is a warning, so
that nothing hides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.metrics import COSINE, ONE_THOUSANDTH
from msprobe_ms.comparison.comparable import checksums_comparable, same_value
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Comparison, Pair, Row
from msprobe_ms.comparison.reporting.profiles.base import NO_BENCH
from msprobe_ms.comparison.reporting.profiles.wording import differences
from msprobe_ms.comparison.statistics import RELATIVES, non_finite_ends
from msprobe_ms.dump.model import Item

PASS, WARNING, ERROR = "pass", "warning", "error"
_SEVERITY = {PASS: 0, WARNING: 1, ERROR: 2}
_COLOURS = {PASS: "", WARNING: "yellow", ERROR: "red"}

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
    """The figures of 26.x (docs/format.md, "Judgement of latest")."""

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


def judge_pair(pair: Pair, mode: str, limit: LatestThresholds) -> None:
    """Fill result, reason and colour of the rows of one entry."""
    api = _api(pair)
    outputs = [row for row in pair.rows if _state(row) == "output"]
    inputs = [row for row in pair.rows if _state(row) in ("input", "parameters") and row.matched]
    for row in pair.rows:
        row.colour = row.reason = ""
        if row.target is None or row.golden is None:
            row.result, row.reason = "N/A", NO_BENCH
            if mode == "md5":
                _set(row, Finding(WARNING, NO_BENCH))
            continue
        row.result = PASS
        if api in IGNORED or (api in INPUTS_IGNORED and _state(row) == "input"):
            continue
        findings = list(_row_findings(row, row.target, row.golden, mode))
        if mode != "md5" and _state(row) == "output" and row.differs:
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


def _row_findings(row: Row, target: Item, golden: Item, mode: str) -> Iterator[Finding]:
    """What the row's own two items show."""
    if target.kind == "tensor" and golden.kind == "tensor":
        if mode == "md5":
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
    inputs: list[Row], output: Row, first: bool, mode: str, limit: LatestThresholds
) -> Iterator[Finding]:
    """What an output that differs shows beside the inputs of its entry."""
    before, after = _numbers(inputs, RELATIVES[-1]), output.metrics.get(RELATIVES[-1])
    if before and isinstance(after, (int, float)) and after == after:
        worst = max(before)
        if worst < limit.good_relative and after > limit.bad_relative:
            yield Finding(ERROR, f"The Norm is off by {after:.3g} (relative), in the inputs by {worst:.3g} at most.")
        elif first and (after > limit.relative_growth * worst if worst > 0 else after > limit.relative_from_nothing):
            yield Finding(WARNING, f"The Norm's relative error grows from {worst:.3g} in the inputs to {after:.3g}.")
    if mode != "tensor" or not first:
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
    """The smallest figure of the inputs; -inf, so that no rule fires, where there is none."""
    return min(_numbers(rows, metric), default=-math.inf)


def _value(item: Item) -> str:
    """A plain value as a person writes it; sizes and slices have only their shape's text."""
    return str(item.maximum if item.maximum is not None else item.shape)
