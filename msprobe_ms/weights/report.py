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
from msprobe_ms.support.text import listed, relative_to_size
from msprobe_ms.support.translation import tr, tr_count, tr_join
from msprobe_ms.weights.compare import (
    BUFFER,
    CAST,
    CLOSE,
    DIFFERS,
    DIVERGENT,
    EQUAL,
    ONLY_GOLDEN,
    ONLY_TARGET,
    RENAMED,
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
#: Machine epsilons that rounding in gradients sets parameters apart by: 4.5 were measured after three steps of SGD on
#: MindSpore and PyTorch, and later steps add to that.
_OF_ROUNDING = 16.0


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
    for side, word, checkpoint in (
        ("target", tr("target"), comparison.target),
        ("golden", tr("golden"), comparison.golden),
    ):
        yield _side_line(word, checkpoint, comparison.aside.get(side, {}))
    paired = [row for row in comparison.rows if row.target is not None and row.golden is not None]
    measured = (EQUAL, RENAMED, CAST, CLOSE, DIFFERS, SHAPE, UNREADABLE)
    parts = [_counted(comparison, result) for result in measured]
    compared = tr_count("1 parameter compared", "{count} parameters compared", len(paired))
    yield (
        tr("{compared}: {results}", compared=compared, results=tr_join(", ", filter(None, parts)))
        if any(parts)
        else compared
    )
    yield from _verdict(comparison, paired)
    if circles := comparison.exchanged:
        shown = listed([tr_join(tr(" and "), circle) for circle in circles], _TOLD, "; ", tr("; and "))
        yield tr("these look exchanged: {circles}", circles=shown)
    yield from _lone_lines(comparison)
    problems = comparison.problems
    if problems:
        yield tr("could not be read, and was not compared ({count}):", count=len(problems))
        yield from (tr("  {problem}", problem=problem) for problem in problems[:_TOLD])


def _counted(comparison: WeightComparison, result: str) -> str:
    """How many pairs have a result; "" for none."""
    count = len(comparison.with_result(result))
    words = {
        EQUAL: tr("{count} equal", count=count),
        RENAMED: tr("{count} equal under another name", count=count),
        CAST: tr("{count} equal when cast", count=count),
        CLOSE: tr("{count} within one rounding", count=count),
        DIFFERS: tr("{count} differing", count=count),
        SHAPE: tr("{count} of other shape", count=count),
        UNREADABLE: tr("{count} not compared", count=count),
    }
    return words[result] if count else ""


def _side_line(side: str, checkpoint: Checkpoint, left_out: dict[str, int]) -> str:
    others = tr_join(", ", (tr("{what} {count}", what=what, count=count) for what, count in left_out.items()))
    count = len(checkpoint.weights) - sum(left_out[what] - checkpoint.skipped.get(what, 0) for what in left_out)
    told = tr_count(
        "{side}: {path} ({format}): {count} parameter",
        "{side}: {path} ({format}): {count} parameters",
        count,
        side=side,
        path=checkpoint.path,
        format=checkpoint.format,
    )
    return tr("{told}; left out: {others}", told=told, others=others) if others else told


def _verdict(comparison: WeightComparison, paired: Sequence[WeightRow]) -> Iterator[str]:
    differing = [row for row in paired if row.result in (DIFFERS, SHAPE)]
    lone = comparison.with_result(ONLY_TARGET, ONLY_GOLDEN)
    if not paired:
        yield tr(
            "DIVERGENT: no parameter of one has a counterpart in the other; say which is which with -lm, -cm or -dm"
        )
    elif differing:
        yield tr("DIVERGENT: {count} of {all} parameters differ; the first is", count=len(differing), all=len(paired))
        yield from _row_lines(differing[0])
        if len(differing) > 1:
            yield tr("the furthest apart")
            for row in sorted(differing, key=lambda row: -_distance(row))[:_TOLD]:
                yield from _row_lines(row)
        yield from _rounding_line(differing)
    elif lone and (damaged := _may_hold(comparison)):
        yield tr(
            "INCOMPLETE: what was read agrees; the {damaged} is damaged, and what it lacks may be lost", damaged=damaged
        )
    elif lone:
        yield _lone_verdict(comparison)
    elif comparison.problems:
        yield tr("CONSISTENT as far as it could be read")
    elif comparison.with_result(CLOSE):
        agrees = tr("CONSISTENT: no parameter differs by more than one rounding")
        yield tr("{agrees}{other_names}", agrees=agrees, other_names=_other_names(comparison))
    elif comparison.with_result(CAST):
        agrees = tr("CONSISTENT: all parameters are equal, but for the rounding of a cast")
        yield tr("{agrees}{other_names}", agrees=agrees, other_names=_other_names(comparison))
    else:
        agrees = tr("CONSISTENT: all parameters are equal")
        yield tr("{agrees}{other_names}", agrees=agrees, other_names=_other_names(comparison))


def _rounding_line(differing: Sequence[WeightRow]) -> Iterator[str]:
    """That all that differs is as near as trainings are whose gradients differ by rounding, if so."""
    if all(row.result == DIFFERS for row in differing):
        furthest = max(_distance(row) / row.tolerance if row.tolerance else math.inf for row in differing)
        if furthest <= _OF_ROUNDING:
            yield tr(
                "all are at most {furthest:.2g} machine epsilons apart: normal after steps of training, but not after "
                "a conversion or loading",
                furthest=furthest,
            )


def _other_names(comparison: WeightComparison) -> str:
    """How many parameters agree though their names do not; "" where all do."""
    if not comparison.renamed:
        return ""
    return tr_count(
        "; {count} parameter has another name in the golden",
        "; {count} parameters have another name in the golden",
        len(comparison.renamed),
    )


def _lone_verdict(comparison: WeightComparison) -> str:
    """How many parameters have no counterpart, and what to do where both sides have such: they may be the same."""
    ours, theirs = len(comparison.with_result(ONLY_TARGET)), len(comparison.with_result(ONLY_GOLDEN))
    if not (ours and theirs):
        return tr_count(
            "DIVERGENT: {count} parameter of the {side} has no counterpart; what was compared agrees",
            "DIVERGENT: {count} parameters of the {side} have no counterpart; what was compared agrees",
            ours or theirs,
            side=tr("target") if ours else tr("golden"),
        )
    if ours == theirs:
        told = tr_count(
            "DIVERGENT: {count} parameter of each side has no counterpart; what was compared agrees",
            "DIVERGENT: {count} parameters of each side have no counterpart; what was compared agrees",
            ours,
        )
    else:
        told = tr(
            "DIVERGENT: {ours} parameters of the target and {theirs} of the golden have no counterpart; what was "
            "compared agrees",
            ours=ours,
            theirs=theirs,
        )
    return tr("{told}. Pair them with -lm, -cm or -dm", told=told)


def _may_hold(comparison: WeightComparison) -> str:
    """The side or sides that lack parameters, if of each a part could not be read."""
    lacking = {"target": comparison.with_result(ONLY_GOLDEN), "golden": comparison.with_result(ONLY_TARGET)}
    sides = [side for side, rows in lacking.items() if rows]
    words = {"target": tr("target"), "golden": tr("golden")}
    return (
        tr_join(tr(" and the "), (words[side] for side in sides))
        if all(getattr(comparison, side).problems for side in sides)
        else ""
    )


def _distance(row: WeightRow) -> float:
    return math.inf if row.deviation is None else row.deviation


def _row_lines(row: WeightRow) -> Iterator[str]:
    assert row.target is not None and row.golden is not None
    renamed = "" if row.golden.name == row.target.name else tr(" (golden: {name})", name=row.golden.name)
    if row.result == SHAPE:
        told = tr("shape {target} against {golden}", target=_shape(row.target), golden=_shape(row.golden))
    elif row.deviation == math.inf:
        any_reason = tr("no relative deviation: a side holds NaN or infinity, or the golden is zero")
        told = tr("no relative deviation") if row.note else any_reason
    else:
        told = tr(
            "deviates by {size} (tolerance {tolerance:.3g})",
            size=relative_to_size(_distance(row)),
            tolerance=row.tolerance,
        )
    note = tr("; {note}", note=row.note) if row.note else ""
    yield tr("  {name}{renamed}: {told}{note}", name=row.target.name, renamed=renamed, told=told, note=note)


def _shape(weight: Weight) -> str:
    return str(list(weight.shape))


def _lone_lines(comparison: WeightComparison) -> Iterator[str]:
    for result in (ONLY_TARGET, ONLY_GOLDEN):
        if rows := comparison.with_result(result):
            names = listed([row.name for row in rows], _TOLD)
            yield tr("{result} ({count}): {names}", result=result, count=len(rows), names=names)
    if rows := comparison.with_result(RENAMED):
        pairs = listed([f"{row.name} = {row.golden.name}" for row in rows if row.golden is not None], _TOLD)
        yield tr("equal under another name ({count}): {pairs}", count=len(rows), pairs=pairs)
    if buffers := comparison.with_result(BUFFER):
        names = listed([row.name for row in buffers], _TOLD)
        yield tr("buffers of one side alone, no parameters ({count}): {names}", count=len(buffers), names=names)
    if said := comparison.with_result(SAID):
        yield tr(
            "not compared, as the mapping says ({count}): {listed}",
            count=len(said),
            listed=listed([row.name for row in said], _TOLD),
        )
    for row in comparison.with_result(TIED)[:_TOLD]:
        yield tr("tied: {name} has {note}", name=row.name, note=row.note)
