"""Say what was compared, what could not be and why, and where the reports of it are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msprobe_ms.arrays.metrics import COSINE
from msprobe_ms.comparison.measuring.tensors import CONTRADICTS, NOT_COMPARED, NOTE
from msprobe_ms.comparison.model import Comparison, Outcome, Row
from msprobe_ms.comparison.pairing.coverage import (
    lone_statistics,
    said_unmatched,
    unmatched_modules,
)
from msprobe_ms.comparison.pairing.elsewhere import with_lone_parameters
from msprobe_ms.comparison.pairing.fused_modules import compared_as_one
from msprobe_ms.comparison.pairing.shares import outermost
from msprobe_ms.comparison.reporting.files import row_counts
from msprobe_ms.comparison.terms import GOLDEN, Mode, PairedBy
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_count, tr_join, translated

#: Names that are told; the rest is in the summary.
_TOLD = 3
#: Modules without a counterpart named of each side.
_NAMED = 2


def fact_lines(outcome: Outcome) -> Iterator[str]:
    """Say what was compared, and what could not be and why."""
    comparison = outcome.comparison
    yield pairing_line(comparison)
    yield from _mapping_lines(comparison)
    if outcome.target.level != outcome.golden.level:
        yield tr(
            "the target was dumped at level {level}, the golden at {other_level}",
            level=outcome.target.level,
            other_level=outcome.golden.level,
        )
    yield from _unread_lines(comparison)
    yield from comparison.damage
    yield from comparison.ends
    yield from _fused_lines(comparison)
    yield from _statistics_lines(comparison)


def report_line(files: Sequence[Path], *, of_many: bool = False) -> str:
    """Name the report to open first, and what names the others beside it; ``of_many``: that of all is opened first."""
    begins = ("compare_report", "compare_result")
    first = next((file for begin in begins for file in files if file.name.startswith(begin)), files[0])
    summary = next((file for file in files if file.name.startswith("compare_summary")), first)
    others = len(files) - 1
    if not others:
        return tr("report: {first}", first=first)
    more = tr_count("1 more file", "{count} more files", count=others)
    return tr(
        "report: {first} ({which}{more} beside it, see {name})",
        first=first,
        which="" if of_many else tr("open it first; "),
        more=more,
        name=summary.name,
    )


def pairing_line(comparison: Comparison) -> str:
    """Say how much was compared, which share of modules and calls, and which modules have no counterpart."""
    counts, shares = row_counts(comparison), comparison.shares
    paired = []
    if shares.modules is not None:
        paired.append(
            tr("{modules} of {other_modules} modules", modules=shares.modules[0], other_modules=shares.modules[1])
        )
    if shares.calls is not None:
        paired.append(tr("{calls} % of calls", calls=100 * shares.calls[0] // shares.calls[1]))
    if not paired:
        alone = counts["unmatched_target"] + counts["unmatched_golden"]
        paired.append(
            tr("{counts} of {other_counts} values", counts=counts["matched"], other_counts=counts["matched"] + alone)
        )
    line = tr(
        "{counts} values compared ({mode}); paired: {paired}",
        counts=counts["matched"],
        mode=tr(str(comparison.mode)),
        paired=tr_join(", ", paired),
    )
    sides = (("target", shares.target), ("golden", shares.golden))
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


def _mapping_lines(comparison: Comparison) -> Iterator[str]:
    """What a mapping says has no counterpart, and that one may be found where modules of both sides have none."""
    if said := said_unmatched(comparison.pairs):
        yield tr("not compared, as the mapping says they have no counterpart: {said}", said=listed(said, _TOLD))
    if lone := with_lone_parameters(comparison.pairs):
        names = [f"{name} ({tr('golden') if side is GOLDEN else tr('target')})" for side, name in lone]
        yield tr(
            "modules with parameters but no counterpart, compared by their results: {names}", names=listed(names, _TOLD)
        )
    if all(unmatched_modules(comparison.pairs)) and all(pair.how != PairedBy.AUTOMATIC for pair in comparison.pairs):
        yield tr("try -lm without a file: it finds out which module is which (proposed_mapping in the summary)")


def _unread_lines(comparison: Comparison) -> Iterator[str]:
    """How many tensors could not be read, or are not what was recorded, and what was compared in their place."""
    noted = [row for row in comparison.rows if row.measured and NOTE in row.measured]
    if not noted:
        return
    tensors = sum(COSINE in row.measured for row in comparison.rows if row.measured)
    for beginning, what in (
        (NOT_COMPARED, tr("could not be read")),
        (CONTRADICTS, tr("are not what dump.json says of them")),
    ):
        rows = [row for row in noted if _note(row).startswith(beginning)]
        if not rows:
            continue
        instead = sum(row.deviation is not None for row in rows)
        if instead == len(rows):
            so = tr("their statistics were compared instead, which tell less")
        elif instead:
            so = tr(
                "of {instead} the statistics were compared instead, of {count} nothing",
                instead=instead,
                count=len(rows) - instead,
            )
        else:
            so = tr("nothing of them was compared")
        yield tr("{count} of {tensors} tensors {what}; {so}", count=len(rows), tensors=tensors, what=what, so=so)
        yield tr("  the first: {note}", note=_rest(_note(rows[0]), beginning))


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
        why = "" if comparison.mode == Mode.TENSOR else tr(" (of the sum of gradients only real data tells)")
        count = sum(each.values for each in fused)
        yield tr(
            "  not compared are {count} of their {other_count} values: {lost}{why}",
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
            names=", ".join(lone.names),
            modules=modules,
            holder=tr(lone.holder),
            other=tr(lone.other),
        )
    )
