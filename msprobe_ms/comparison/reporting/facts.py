"""Say what was compared, what could not be and why, and where the reports of it are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.dtypes import parse_dtype, same_dtype
from msprobe_ms.arrays.metrics import COSINE
from msprobe_ms.comparison.measuring.tensors import CONTRADICTS, NOT_COMPARED, NOTE
from msprobe_ms.comparison.model import Comparison, Outcome, Pair, Row, Shares
from msprobe_ms.comparison.pairing.coverage import (
    lone_statistics,
    said_unmatched,
)
from msprobe_ms.comparison.pairing.elsewhere import with_lone_parameters
from msprobe_ms.comparison.pairing.fused_modules import compared_as_one
from msprobe_ms.comparison.pairing.shares import lone_values, outermost
from msprobe_ms.comparison.reporting.files import compared_count, row_counts
from msprobe_ms.comparison.reporting.mapping_advice import mapping_lines
from msprobe_ms.comparison.row_items import where_sorts
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Mode, PairedBy
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_count, tr_join, tr_list, translated

#: Names that are told; the rest is in the summary.
_TOLD = 3
#: Modules without a counterpart named of each side.
_NAMED = 2


def fact_lines(outcome: Outcome) -> Iterator[str]:
    """Say what was compared, and what could not be and why."""
    if outcome.facts is not None:
        yield from outcome.facts
        return
    comparison = outcome.comparison
    yield pairing_line(comparison)
    yield from _lone_functions_lines(comparison.shares)
    yield from _mapping_lines(comparison)
    yield from _level_lines(outcome)
    yield from _dtype_lines(comparison)
    yield from _unread_lines(comparison)
    yield from _nonsense_lines(comparison)
    yield from comparison.damage
    yield from comparison.ends
    yield from _fused_lines(comparison)
    yield from _statistics_lines(comparison)


def why_alone(outcome: Outcome) -> str:
    """Why values have no counterpart, as far as their calls or the levels of the dumps tell; "" if all have one."""
    counts = row_counts(outcome.comparison)
    alone = counts["unmatched_target"] + counts["unmatched_golden"]
    return tr_join(tr("; "), (*_why_alone(outcome.comparison, alone), *_level_lines(outcome))) if alone else ""


def _level_lines(outcome: Outcome) -> Iterator[str]:
    if outcome.target.level != outcome.golden.level:
        yield tr(
            "the target was dumped at level {level}, the golden at {other_level}",
            level=outcome.target.level,
            other_level=outcome.golden.level,
        )


def report_line(files: Sequence[Path], *, of_many: bool = False) -> str:
    """Name the report to open first, and what names the others beside it; ``of_many``: that of all is opened first."""
    begins = ("compare_report", "compare_result")
    first = next((file for begin in begins for file in files if file.name.startswith(begin)), files[0])
    summary = next((file for file in files if file.name.startswith("compare_summary")), first)
    others = len(files) - 1
    if not others:
        return tr("report: {first}", first=first)
    more = tr_count("1 other file is listed in", "{count} other files are listed in", count=others)
    return tr(
        "report: {first} ({which}{more} {name})",
        first=first,
        which="" if of_many else tr("open it first; "),
        more=more,
        name=summary.name,
    )


def pairing_line(comparison: Comparison) -> str:
    """Say how much was compared, which share of modules and calls, and which modules have no counterpart."""
    counts, shares = row_counts(comparison), comparison.shares
    alone = counts["unmatched_target"] + counts["unmatched_golden"]
    paired = []
    if shares.modules is not None:
        modules, other_modules = shares.modules
        some = tr("{modules} of {other_modules} modules", modules=modules, other_modules=other_modules)
        count = max(map(len, shares.elsewhere))
        only = tr(" (and only the outputs of {count} more)", count=count) if count else ""
        paired.append(tr("{some}{only}", some=some, only=only))
    if shares.calls is not None:
        both, total = shares.calls
        paired.append(tr("100 % of calls") if both == total else tr("{both} of {total} calls", both=both, total=total))
    if not paired:
        paired.append(
            tr("{counts} of {other_counts} values", counts=counts["matched"], other_counts=counts["matched"] + alone)
        )
    compared = tr_count(
        "1 value compared ({mode})",
        "{count} values compared ({mode})",
        count=compared_count(comparison),
        mode=tr(str(comparison.mode)),
    )
    sides = (("target", shares.target), ("golden", shares.golden))
    if alone and (shares.modules is not None or shares.calls is not None):
        compared = with_lone(compared, counts["unmatched_target"], counts["unmatched_golden"])
        if why := tr_join(tr("; "), _why_alone(comparison, alone)):
            compared = tr("{compared} ({why})", compared=compared, why=why)
    line = tr("{compared}; paired: {paired}", compared=compared, paired=tr_join(", ", paired))
    alone_at = [
        tr("{outermost} ({side})", outermost=listed(outermost(names), _NAMED), side=tr(side))
        for side, names in sides
        if names
    ]
    return (
        tr("{line}; without a counterpart: {alone_at}", line=line, alone_at=tr_join(", ", alone_at))
        if alone_at
        else line
    )


def with_lone(compared: str, target: int, golden: int) -> str:
    """Add to what was compared how many values of each side have no counterpart, if any."""
    if target and golden:
        lone = tr("{target} of the target and {golden} of the golden have no counterpart", target=target, golden=golden)
    else:
        lone = tr_count("1 has no counterpart", "{count} have no counterpart", count=target or golden)
    return tr("{compared}, {lone}", compared=compared, lone=lone) if target or golden else compared


def _why_alone(comparison: Comparison, alone: int) -> Iterator[str]:
    """Which values need no counterpart, which belong to paired calls, and of which calls the others are.

    The others are left out where another line names their calls.
    """
    inner = sum(not row.matched for pair in comparison.pairs if pair.how == PairedBy.GROUP for row in pair.rows)
    if inner and inner == alone:
        yield tr("they need none: intermediate results of computations that the two sides split into different calls")
    elif inner:
        yield tr_count(
            "1 needs none: the intermediate result of a computation that the two sides split into different calls",
            "{count} need none: intermediate results of computations that the two sides split into different calls",
            count=inner,
        )
    paired = _by_call(pair for pair in comparison.pairs if pair.matched and pair.how != PairedBy.GROUP)
    if paired:
        yield tr_count(
            "1 is passed or returned by one side only, in calls of {names}",
            "{count} are passed or returned by one side only, in calls of {names}",
            count=sum(paired.values()),
            names=listed(list(paired), _NAMED),
        )
    shares = comparison.shares
    others = _by_call(pair for pair in comparison.pairs if not pair.matched and pair.how != PairedBy.GROUP)
    if others and not any((shares.target, shares.golden, *shares.functions)):
        rest, names = sum(others.values()), listed(list(others), _NAMED)
        of = tr_count("1 is of {names}", "{count} are of {names}", count=rest, names=names)
        yield tr("of {names}", names=names) if rest == alone else of


def _by_call(pairs: Iterable[Pair]) -> Counter[str]:
    """How many values have no counterpart, by module or function, of both sides together."""
    target, golden = lone_values(pairs)
    return Counter(target) + Counter(golden)


def _lone_functions_lines(shares: Shares) -> Iterator[str]:
    """Which functions have no counterpart, and where an error in them would show."""
    sides = zip(shares.functions, (tr("target"), tr("golden")), strict=True)
    named = [tr("{names} ({side})", names=listed(names, 1), side=side) for names, side in sides if names]
    if named:
        yield tr(
            "calls without a counterpart: {named}; an error in them shows in the next value that was compared",
            named=tr_join(", ", named),
        )


def _mapping_lines(comparison: Comparison) -> Iterator[str]:
    """What a mapping says has no counterpart, and that one may be found where modules of both sides have none."""
    if said := said_unmatched(comparison.pairs):
        yield tr("not compared, as the mapping says they have no counterpart: {said}", said=listed(said, _TOLD))
    yield from _outputs_only_lines(comparison)
    yield from mapping_lines(comparison)


def _outputs_only_lines(comparison: Comparison) -> Iterator[str]:
    """Which modules have no counterpart, though what they give out was compared; apart those with parameters."""
    lone = set(with_lone_parameters(comparison.pairs))
    told: dict[bool, list[str]] = {False: [], True: []}
    for side, names in zip((TARGET, GOLDEN), comparison.shares.elsewhere, strict=True):
        for name in names:
            told[(side, name) in lone].append(tr("{name} ({side})", name=name, side=tr(str(side))))
    if told[False]:
        yield tr(
            "modules without a counterpart of which only the outputs were compared: {names}",
            names=listed(told[False], _TOLD),
        )
    if told[True]:
        yield tr(
            "modules without a counterpart of which the outputs were compared, but not the parameters: {names}",
            names=listed(told[True], _TOLD),
        )


def _dtype_lines(comparison: Comparison) -> Iterator[str]:
    """How many values are of another floating dtype on the other side: their tolerance is that of the coarser one."""
    differing = np.flatnonzero(
        where_sorts(comparison.sides, lambda mine, other: _is_other_precision(mine[2], other[2]))
    )
    for place in differing[:1].tolist():
        target, golden = comparison.rows[place].target, comparison.rows[place].golden
        assert target is not None and golden is not None
        yield tr_count(
            "the dtype of 1 value differs: {name} is {dtype}, in the golden {other_dtype}",
            "the dtypes of {count} values differ, the first is {name}: {dtype}, in the golden {other_dtype}",
            count=len(differing),
            name=target.name,
            dtype=target.dtype,
            other_dtype=golden.dtype,
        )


def _is_other_precision(dtype: str | None, other_dtype: str | None) -> bool:
    kinds = {parse_dtype(each).kind for each in (dtype, other_dtype)}
    return kinds == {"float"} and not same_dtype(dtype, other_dtype)


def _unread_lines(comparison: Comparison) -> Iterator[str]:
    """How many tensors could not be read, or are not what was recorded, and what was compared in their place."""
    noted = [row for row in comparison.measured if row.measured and NOTE in row.measured]
    if not noted:
        return
    tensors = sum(COSINE in row.measured for row in comparison.measured if row.measured)
    for beginning, what in (
        (NOT_COMPARED, tr("could not be read")),
        (CONTRADICTS, tr("are not what dump.json says of them")),
    ):
        rows = [row for row in noted if _note(row).startswith(beginning)]
        if not rows:
            continue
        instead = sum(row.deviation is not None for row in rows)
        if instead == len(rows):
            so = tr("their statistics were compared instead, which show less")
        elif instead:
            so = tr(
                "of {instead} the statistics were compared instead; {count} were not compared",
                instead=instead,
                count=len(rows) - instead,
            )
        else:
            so = tr("nothing of them was compared")
        yield tr("{count} of {tensors} tensors {what}; {so}", count=len(rows), tensors=tensors, what=what, so=so)
        yield tr("  the first: {note}", note=_rest(_note(rows[0]), beginning))


def _nonsense_lines(comparison: Comparison) -> Iterator[str]:
    """How many values were recorded so that they cannot be compared, and the first of them."""
    rows = [row for row in comparison.unread if not (row.measured and NOTE in row.measured)]
    for item in [row.target for row in rows[:1]]:
        yield tr_count(
            "1 value was not compared, as its figures, dtype or shape cannot be read: {name}",
            "{count} values were not compared, as their figures, dtypes or shapes cannot be read; the first: {name}",
            count=len(rows),
            name=item.name if item is not None else "",
        )


def _note(row: Row) -> str:
    note = (row.measured or {})[NOTE]
    assert isinstance(note, str)
    return note


def _rest(note: str, beginning: str) -> str:
    """What a note says of one tensor; in the language of the user, as it is the end of a message."""
    return translated(note).removeprefix(translated(beginning))


def _fused_lines(comparison: Comparison) -> Iterator[str]:
    if not (fused := compared_as_one(comparison.pairs)):
        return
    yield tr(
        "fused on one side and compared as one: {names}",
        names=listed([f"{each.target} = {each.golden}" for each in fused], 1),
    )
    if lost := [name for each in fused for name in each.not_compared]:
        why = (
            ""
            if comparison.mode == Mode.TENSOR
            else tr(" (the sum of their gradients can be compared only with real data)")
        )
        count = sum(each.values for each in fused)
        yield tr(
            "  {count} of their {other_count} values were not compared: {lost}{why}",
            count=len(lost),
            other_count=count,
            lost=listed(lost, 1),
            why=why,
        )


def _statistics_lines(comparison: Comparison) -> Iterator[str]:
    """That running statistics could not be compared, and what compares them."""
    if (lone := lone_statistics(comparison.pairs)) is None:
        return
    count = len(lone.modules)
    modules = tr_count(
        "module {modules}", "{count} modules, the first {modules},", count=count, modules=lone.modules[0]
    )
    yield (
        tr(
            "not compared: {names} of {modules} in the {holder}, as the {other} recorded no running "
            "statistics (buffers are no parameters); msprobe compare_weights of both checkpoints "
            "compares them",
            names=tr_list(lone.names),
            modules=modules,
            holder=tr(lone.holder),
            other=tr(lone.other),
        )
    )
