"""Describe comparisons of many ranks and steps for the terminal: the first that diverges in full, others in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msprobe_ms.comparison.many.plan import Plan
from msprobe_ms.comparison.many.run import Found
from msprobe_ms.comparison.many.summary import Total
from msprobe_ms.comparison.model import OriginKind
from msprobe_ms.comparison.reporting.facts import report_line, with_lone
from msprobe_ms.comparison.reporting.terminal import HEADS, proof_line
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_count, tr_join

#: Ranks and steps named in a line; of more, the first.
_SHOWN = 8


class Lines:
    """Lines for the pairs of a plan, taken in its order.

    Each pair that is not consistent has one; with ``in_full`` consistent ones too, and the first of each other verdict
    is told in full. Why values have no counterpart is told once where it is the same in later pairs.
    """

    def __init__(self, *, in_full: bool) -> None:
        self._in_full = in_full
        self._told = set[Verdict]()
        self._reasons = set[str]()
        self._first_step: int | None = None

    def of(self, found: Found) -> Iterator[str]:
        """Describe one pair. The report of one that is consistent nobody needs to open; the summary knows its name."""
        place, verdict = found.place, found.verdict
        if verdict == Verdict.FAILED:
            yield tr("{place}: NOT COMPARED: {problem}", place=place, problem=found.problem)
            return
        follows = self._first_step is not None and place.step is not None and place.step > self._first_step
        if found.shows_error and self._first_step is None:
            self._first_step = place.step
        if self._in_full and verdict != Verdict.CONSISTENT and verdict not in self._told:
            self._told.add(verdict)
            self._reasons.add(found.why_alone)
            first, *others = found.lines
            yield tr("{place}: {first}", place=place, first=first)
            yield from others
            if found.files:
                yield report_line(found.files, of_many=True)
        elif self._in_full or verdict != Verdict.CONSISTENT:
            yield tr(
                "{place}: {verdict}{where}",
                place=place,
                verdict=HEADS[verdict],
                where=self._where(found, follows=follows),
            )

    def _where(self, found: Found, *, follows: bool) -> str:
        exchanges, first = found.exchanges, next(iter(found.origins), None)
        inherits = self._first_step if follows and found.shows_error else found.inherits
        where = tr(": the error begins at {origin}", origin=exchanges.origin) if exchanges.origin else ""
        if found.verdict == Verdict.CONSISTENT:
            told = filter(None, (self._compared(found), found.without_origin))
            where = tr(": {told}", told=tr_join("; ", told))
        if first is not None and first.kind == OriginKind.UPDATE:
            where = tr(": {reason} ({target})", reason=first.reason, target=first.target)
        elif exchanges.handed_by:
            where = tr(": it received its error through {handed_by}", handed_by=exchanges.handed_by)
        elif inherits is not None:
            where = tr(", inherits the error of step {first_step}", first_step=inherits)
        return tr_join(tr("; "), [where, *found.summary["damage"], *found.summary["ends"]])

    def _compared(self, found: Found) -> str:
        told, why = compared(found.summary), found.why_alone
        if not why or why in self._reasons:
            return told
        self._reasons.add(why)
        return tr("{compared} ({why})", compared=told, why=why)


def compared(summary: Mapping[str, Any]) -> str:
    """How many values of a pair were compared, by its summary, and how many have no counterpart."""
    count = summary["matched"] - summary["not_compared"]
    told = tr_count("1 value compared", "{count} values compared", count=count)
    return with_lone(told, summary["unmatched_target"], summary["unmatched_golden"])


def found_lines(everything: Sequence[Found], *, in_full: bool) -> Iterator[str]:
    """Describe all pairs of a plan."""
    lines = Lines(in_full=in_full)
    for found in everything:
        yield from lines.of(found)


def total_lines(total: Total, plan: Plan) -> Iterator[str]:
    """Describe the total: the verdict, which step and rank to look at first, and what was not compared."""
    counts = total.counts
    done = [tr("{count} {verdict}", count=counts[each], verdict=tr(each)) for each in Verdict if counts[each]]
    shown = tr_join(", ", done)
    yield tr(
        "{verdict}: {count} pairs of dumps: {shown}", verdict=HEADS[total.verdict], count=len(plan.pairs), shown=shown
    )
    for side, places in (("target", plan.only_target), ("golden", plan.only_golden)):
        if places:
            yield tr("only in the {side}, not compared: {places}", side=tr(side), places=listed(places, _SHOWN))
    if total.first_step is not None:
        line = _step_line(total.first_step, total.steps, inherited=total.inherited)
        told = total.first_rank is not None or not total.first_origin
        yield (
            line
            if told
            else tr("{line}; its error begins at {first_origin}", line=line, first_origin=total.first_origin)
        )
    if total.first_loss is not None:
        yield total.first_loss.sentence
    if total.first_rank is not None:
        yield total.first_rank.reason
    if total.growing and total.verdict != Verdict.CONSISTENT:  # there it is explained; the trend's table has it
        nodes = [f"{each.node} ({each.rank}: {each.first:.2g} → {each.last:.2g})" for each in total.growing]
        yield tr(
            "the error ratio (deviation / tolerance) grows over the steps at: {nodes}; the error need not begin there",
            nodes=listed(nodes, 2),
        )


def total_report_lines(total: Total, page: Path | None = None) -> Iterator[str]:
    """Name the summary of all, which names the other files, the page to open first, and what to do next."""
    if total.mapping is not None:
        yield tr("also written: {path}", path=total.mapping)
    yield from _summary_line(total)
    if page is not None:
        yield tr("report: {page} (open it first)", page=page)
    if total.provable and total.files:
        yield proof_line(total.files[-1])


def _summary_line(total: Total) -> Iterator[str]:
    if total.files:
        *trends, summary = total.files
        more = tr(" and {count} more", count=len(trends) - 1) if len(trends) > 1 else ""
        beside = (
            tr(" (beside it the reports of each pair, and {name}{more})", name=trends[0].name, more=more)
            if trends
            else ""
        )
        yield tr("also written: {summary}{beside}", summary=summary, beside=beside)


def _step_line(first: int, steps: Sequence[int], *, inherited: bool) -> str:
    before = [step for step in steps if step < first]
    agreed = ""
    if before:
        shown = listed(before, _SHOWN)
        agreed = tr_count("step {shown} agrees: ", "steps {shown} agree: ", count=len(before), shown=shown)
    later = tr("; later steps inherit its error through the weights") if inherited and first < steps[-1] else ""
    return tr("{agreed}look at step {first}, the first that diverges{later}", agreed=agreed, first=first, later=later)
