"""Describe comparisons of many ranks and steps for the terminal: the first that diverges in full, others in a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msprobe_ms.comparison.many.plan import Plan
from msprobe_ms.comparison.many.run import Found
from msprobe_ms.comparison.many.summary import Total
from msprobe_ms.comparison.model import OriginKind
from msprobe_ms.comparison.reporting.terminal import report_line
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.text import listed

#: Ranks and steps named in a line; of more, the first.
_SHOWN = 8


class Lines:
    """Lines for the pairs of a plan, taken in its order.

    Each pair that is not consistent has one; with ``in_full`` consistent ones too, and the first of each other verdict
    is told in full.
    """

    def __init__(self, *, in_full: bool) -> None:
        self._in_full = in_full
        self._told = set[Verdict]()
        self._first_step: int | None = None

    def of(self, found: Found) -> Iterator[str]:
        """Describe one pair. The report of one that is consistent nobody needs to open; the summary knows its name."""
        place, verdict = found.place, found.verdict
        if verdict == Verdict.FAILED:
            yield f"{place}: NOT COMPARED: {found.problem}"
            return
        follows = self._first_step is not None and place.step is not None and place.step > self._first_step
        if verdict == Verdict.DIVERGENT and self._first_step is None:
            self._first_step = place.step
        if self._in_full and verdict != Verdict.CONSISTENT and verdict not in self._told:
            self._told.add(verdict)
            first, *others = found.lines
            yield f"{place}: {first}"
            yield from others
            if found.files:
                yield report_line(found.files, of_many=True)
        elif self._in_full or verdict != Verdict.CONSISTENT:
            yield f"{place}: {verdict.upper()}{self._where(found, follows=follows)}"

    def _where(self, found: Found, *, follows: bool) -> str:
        exchanges, first = found.exchanges, next(iter(found.origins), None)
        where = f": the error begins at {exchanges.origin}" if exchanges.origin else ""
        if found.differing:
            where = f": {found.without_origin}"
        if first is not None and first.kind == OriginKind.UPDATE:
            where = f": {first.reason} ({first.target})"
        elif exchanges.handed_by:
            where = f": its error was handed to it by {exchanges.handed_by}"
        elif follows and found.verdict == Verdict.DIVERGENT:
            where = f", follows step {self._first_step}"
        return where + "".join(f"; {each}" for each in (*found.summary["damage"], *found.summary["ends"]))


def found_lines(everything: Sequence[Found], *, in_full: bool) -> Iterator[str]:
    """Describe all pairs of a plan."""
    lines = Lines(in_full=in_full)
    for found in everything:
        yield from lines.of(found)


def total_lines(total: Total, plan: Plan) -> Iterator[str]:
    """Describe the total: the verdict, which step and rank to look at first, and what was not compared."""
    done = [f"{total.counts[verdict]} {verdict}" for verdict in Verdict]
    shown = ", ".join(text for text in done if not text.startswith("0 "))
    yield f"{total.verdict.upper()}: {len(plan.pairs)} pairs of dumps: {shown}"
    for side, places in (("target", plan.only_target), ("golden", plan.only_golden)):
        if places:
            yield f"only in the {side}, not compared: {listed(places, _SHOWN)}"
    if total.first_step is not None:
        line = _step_line(total.first_step, total.steps)
        told = total.first_rank is not None or not total.first_origin
        yield line if told else f"{line}; its error begins at {total.first_origin}"
    if total.first_loss is not None:
        yield str(total.first_loss)
    if total.first_rank is not None:
        yield total.first_rank.reason
    if total.growing:
        nodes = [f"{each.node} ({each.rank}: {each.first:.2g} → {each.last:.2g})" for each in total.growing]
        yield f"error grows over the steps, in tolerances, at: {listed(nodes, 2)}"


def total_report_lines(total: Total, page: Path | None = None) -> Iterator[str]:
    """Name the summary of all, which names the other files, and what else to open; last the page, to open first."""
    if total.mapping is not None:
        yield f"report: {total.mapping}"
    yield from _summary_line(total)
    if page is not None:
        yield f"report: {page} (open it first)"


def _summary_line(total: Total) -> Iterator[str]:
    if total.files:
        *trends, summary = total.files
        more = f" and {len(trends) - 1} more" if len(trends) > 1 else ""
        beside = f" (beside it the reports of each pair, and {trends[0].name}{more})" if trends else ""
        yield f"report: {summary}{beside}"


def _step_line(first: int, steps: Sequence[int]) -> str:
    before = [step for step in steps if step < first]
    agreed = ""
    if before:
        shown = listed(before, _SHOWN)
        agreed = f"step {shown} agrees: " if len(before) == 1 else f"steps {shown} agree: "
    later = "; later steps inherit its error through the weights" if first < steps[-1] else ""
    return f"{agreed}look at step {first}, the first that diverges{later}"
