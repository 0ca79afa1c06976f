"""Report a comparison of weights: a table, and the verdict for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from msprobe_ms.arrays.metrics import METRIC_TITLES, TENSOR_METRICS, Missing
from msprobe_ms.comparison.reporting.colours import OWN_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell, figure_cell
from msprobe_ms.comparison.reporting.files import claimed_timestamp, write_table, writing
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.support.text import counted, listed
from msprobe_ms.weights.compare import (
    BUFFER,
    CAST,
    CLOSE,
    DIFFERS,
    DIVERGENT,
    EQUAL,
    ONLY_GOLDEN,
    ONLY_TARGET,
    SAID,
    SHAPE,
    TIED,
    UNREADABLE,
    WeightComparison,
    WeightRow,
)
from msprobe_ms.weights.model import Checkpoint, Weight

_TITLES = (
    "Target Name", "Golden Name", "Result", "Target Dtype", "Golden Dtype", "Target Shape", "Golden Shape", "Deviation",
    "Tolerance",
)  # fmt: skip
#: Parameters told by name in the terminal.
_TOLD = 5


def write_renamed(comparison: WeightComparison, report: Path) -> Path | None:
    """Write the parameters that are equal under another name beside the report, as ``-dm`` takes them, if any are.

    :raises UsageError: the folder cannot be written
    """
    if not comparison.renamed:
        return None
    path = report.with_name(report.stem.replace("compare_weights", "data_mapping") + ".yaml")
    with writing(path) as file:
        file.write(yaml.safe_dump(comparison.renamed, sort_keys=False, allow_unicode=True, width=1000).encode())
    return path


def write_weights(comparison: WeightComparison, folder: Path, *, csv: bool = False) -> Path:
    """Write ``compare_weights_{YYYYmmddHHMMSS}.xlsx`` (or ``.csv``), never over another.

    :raises UsageError: the folder cannot be written
    """
    titles = [*_TITLES, *(METRIC_TITLES[name] for name in TENSOR_METRICS), "Paired By", "Note"]
    with claimed_timestamp(folder) as stamp:
        path = folder / f"compare_weights_{stamp}.{'csv' if csv else 'xlsx'}"
        write_table(path, titles, ((_cells(row), _colour(row)) for row in comparison.rows), OWN_ROWS)
    return path


def _cells(row: WeightRow) -> list[Cell]:
    both = row.target, row.golden
    return [
        *(weight.name if weight else None for weight in both),
        row.result,
        *(weight.dtype if weight else None for weight in both),
        *(str(list(weight.shape)) if weight else None for weight in both),
        _number(row.deviation),
        _number(row.tolerance),
        *(_number(row.metrics.get(name)) for name in TENSOR_METRICS),
        row.how,
        row.note,
    ]


def _number(value: float | Missing | None) -> Cell:
    if isinstance(value, Missing):
        return str(value)
    return figure_cell(value)


def _colour(row: WeightRow) -> RowColour:
    if row.result in DIVERGENT:
        return RowColour.RED
    return RowColour.YELLOW if row.result == UNREADABLE else RowColour.NONE


def weight_lines(comparison: WeightComparison) -> Iterator[str]:
    """Say how many parameters are equal, which differs first and most, which have no counterpart, what was left out."""
    for side, checkpoint in (("target", comparison.target), ("golden", comparison.golden)):
        yield _side_line(side, checkpoint, comparison.aside.get(side, {}))
    paired = [row for row in comparison.rows if row.target is not None and row.golden is not None]
    counts = {
        result: len(comparison.with_result(result)) for result in (EQUAL, CAST, CLOSE, DIFFERS, SHAPE, UNREADABLE)
    }
    words = {CLOSE: "within one rounding", SHAPE: "of other shape", DIFFERS: "differing"}
    told = ", ".join(f"{count} {words.get(result, result)}" for result, count in counts.items() if count)
    yield f"{counted(len(paired), 'parameter')} compared{f': {told}' if told else ''}"
    yield from _verdict(comparison, paired)
    if circles := comparison.exchanged:
        circles_shown = listed([" and ".join(circle) for circle in circles], _TOLD, "; ", "; and ")
        yield f"these look exchanged: {circles_shown}"
    yield from _lone_lines(comparison)
    problems = comparison.problems
    if problems:
        yield f"could not be read, and was not compared ({len(problems)}):"
        yield from (f"  {problem}" for problem in problems[:_TOLD])


def _side_line(side: str, checkpoint: Checkpoint, left_out: dict[str, int]) -> str:
    others = ", ".join(f"{what} {count}" for what, count in left_out.items())
    count = len(checkpoint.weights) - sum(left_out[what] - checkpoint.skipped.get(what, 0) for what in left_out)
    told = f"{side}: {checkpoint.path} ({checkpoint.format}): {counted(count, 'parameter')}"
    return f"{told}; left out: {others}" if others else told


def _verdict(comparison: WeightComparison, paired: Sequence[WeightRow]) -> Iterator[str]:
    differing = [row for row in paired if row.result in (DIFFERS, SHAPE)]
    lone = comparison.with_result(ONLY_TARGET, ONLY_GOLDEN)
    if not paired:
        yield "DIVERGENT: no parameter of one has a counterpart in the other; say which is which with -lm, -cm or -dm"
    elif differing:
        yield f"DIVERGENT: {len(differing)} of {len(paired)} parameters differ; the first is"
        yield from _row_lines(differing[0])
        furthest = sorted(differing, key=lambda row: -_distance(row))[: _TOLD + 1]
        if further := [row for row in furthest if row is not differing[0]][:_TOLD]:
            yield "the furthest apart"
            for row in further:
                yield from _row_lines(row)
    elif lone and (damaged := _may_hold(comparison)):
        yield f"INCOMPLETE: what was read agrees; the {damaged} is damaged, and what it lacks may be lost"
    elif lone:
        without = f"without a counterpart: {counted(len(lone), 'parameter')}"
        yield f"DIVERGENT: what could be compared agrees; {without}{_hint(comparison)}"
    elif comparison.problems:
        yield "CONSISTENT as far as it could be read"
    elif comparison.with_result(CLOSE):
        yield "CONSISTENT: no parameter differs by more than one rounding"
    elif comparison.with_result(CAST):
        yield "CONSISTENT: all parameters are equal, but for the rounding of a cast"
    else:
        yield "CONSISTENT: all parameters are equal"


def _hint(comparison: WeightComparison) -> str:
    """What to do where both sides have parameters alone: they may be the same under other names."""
    both = comparison.with_result(ONLY_TARGET) and comparison.with_result(ONLY_GOLDEN)
    return "; those that are the same under other names are named with -lm, -cm or -dm" if both else ""


def _may_hold(comparison: WeightComparison) -> str:
    """The side or sides that lack parameters, if of each a part could not be read."""
    lacking = {"target": comparison.with_result(ONLY_GOLDEN), "golden": comparison.with_result(ONLY_TARGET)}
    sides = [side for side, rows in lacking.items() if rows]
    return " and the ".join(sides) if all(getattr(comparison, side).problems for side in sides) else ""


def _distance(row: WeightRow) -> float:
    return math.inf if row.deviation is None else row.deviation


def _row_lines(row: WeightRow) -> Iterator[str]:
    assert row.target is not None and row.golden is not None
    renamed = "" if row.golden.name == row.target.name else f" (golden: {row.golden.name})"
    if row.result == SHAPE:
        told = f"shape {_shape(row.target)} against {_shape(row.golden)}"
    elif row.deviation == math.inf:
        told = "differs beyond measure"
    else:
        told = f"deviates by {row.deviation:.3g} (tolerance {row.tolerance:.3g})"
    yield f"  {row.target.name}{renamed}: {told}{f'; {row.note}' if row.note else ''}"


def _shape(weight: Weight) -> str:
    return str(list(weight.shape))


def _lone_lines(comparison: WeightComparison) -> Iterator[str]:
    for result in (ONLY_TARGET, ONLY_GOLDEN):
        if rows := comparison.with_result(result):
            yield f"{result} ({len(rows)}): {listed([row.name for row in rows], _TOLD)}"
    if comparison.renamed:
        pairs = listed([f"{mine} = {theirs}" for mine, theirs in comparison.renamed.items()], _TOLD)
        yield f"of these, equal under another name ({len(comparison.renamed)}): {pairs}"
    if buffers := comparison.with_result(BUFFER):
        names = listed([row.name for row in buffers], _TOLD)
        yield f"buffers of one side alone, no parameters ({len(buffers)}): {names}"
    if said := comparison.with_result(SAID):
        yield f"not compared, as the mapping says ({len(said)}): {listed([row.name for row in said], _TOLD)}"
    for row in comparison.with_result(TIED)[:_TOLD]:
        yield f"tied: {row.name} has {row.note}"
