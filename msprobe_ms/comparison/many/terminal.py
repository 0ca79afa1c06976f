"""Describe the comparisons of all ranks and steps for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msprobe_ms.comparison.many.plan import Plan
from msprobe_ms.comparison.many.run import Found
from msprobe_ms.comparison.many.summary import Total
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.text import listed

#: Files named in the terminal; of more, the first and the summary.
_FILES = 8
#: Ranks and steps named in a line; of more, the first.
_SHOWN = 8


def found_lines(found: Found, *, in_full: bool) -> Iterator[str]:
    """Describe one pair; not ``in_full``: a line where it is not consistent, none where it is.

    The files of one that is consistent nobody needs to open; their names follow from the summary.
    """
    if found.verdict == Verdict.FAILED:
        yield f"{found.place}: NOT COMPARED: {found.problem}"
    elif in_full:
        yield f"{found.place}:"
        yield from found.lines
        if found.verdict != Verdict.CONSISTENT:
            yield from (f"report: {file}" for file in found.files)
    elif found.verdict != Verdict.CONSISTENT:
        exchanges = found.exchanges
        where = f": the error begins at {exchanges.origin}" if exchanges.origin else ""
        if exchanges.handed_by:
            where = f": its error was handed to it by {exchanges.handed_by}"
        where += "".join(f"; {each}" for each in (*found.summary["damage"], *found.summary["ends"]))
        yield f"{found.place}: {found.verdict.upper()}{where}"


def total_lines(total: Total, plan: Plan) -> Iterator[str]:
    """Describe the total: what was compared, which step and rank to look at first, and where the files are."""
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
    if total.first_rank is not None:
        yield total.first_rank.reason
    if total.growing:
        nodes = [f"{each.node} ({each.rank}: {each.first:.2g} → {each.last:.2g})" for each in total.growing]
        yield f"error grows over the steps, in tolerances, at: {listed(nodes)}"
    named = total.files if len(total.files) <= _FILES else total.files[-1:]
    if len(named) < len(total.files):
        yield f"report: {len(total.files) - 1} trends, the first {total.files[0]}"
    if total.mapping is not None:
        yield f"report: {total.mapping}"
    for file in named:
        yield f"report: {file}"


def _step_line(first: int, steps: Sequence[int]) -> str:
    before = [step for step in steps if step < first]
    agreed = ""
    if before:
        shown = listed(before, _SHOWN)
        agreed = f"step {shown} agrees: " if len(before) == 1 else f"steps {shown} agree: "
    later = "; later steps inherit its error through the weights" if first < steps[-1] else ""
    return f"{agreed}look at step {first}, the first that diverges{later}"
