"""A pre-check in a few lines, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msprobe_ms.accuracy.checked import Checked
from msprobe_ms.accuracy.judging.model import Status
from msprobe_ms.support.text import and_more, listed

#: Results that are wrong, and reasons for which calls were not checked, that are listed.
_MOST_ERRORS, _MOST_REASONS = 10, 8


def verdict_line(dump: Path | str, checked: Checked) -> str:
    """Say how many results were judged, and how."""
    counts = checked.statuses
    judged = sum(counts[status] for status in (Status.PASS, Status.WARNING, Status.ERROR))
    word = "ERROR" if checked.failed else "PASS" if judged else "NOTHING CHECKED"
    return (
        f"{word}: {dump}: {judged} results judged: {counts[Status.PASS]} pass, {counts[Status.WARNING]} warning, "
        f"{counts[Status.ERROR]} error; {counts[Status.SKIP]} not checked"
    )


def summary_lines(dump: Path | str, checked: Checked) -> Iterator[str]:
    """Yield the verdict, what is wrong, what was not checked and why, and the files."""
    yield verdict_line(dump, checked)
    if checked.resumed:
        yield f"  {checked.resumed} of the calls were checked by an earlier run"
    wrong = [row for result in checked.results for row in result.details if row.status is Status.ERROR]
    for row in wrong[:_MOST_ERRORS]:
        yield f"  error: {row.name}: {row.message or row.rule}"
    if len(wrong) > _MOST_ERRORS:
        yield f"  {and_more(len(wrong) - _MOST_ERRORS, '')} in the table"
    if reasons := checked.unchecked:
        yield "  not checked: " + listed(
            (f"{count} {reason}" for reason, count in reasons.most_common()), _MOST_REASONS
        )
    for file in checked.files:
        yield f"file: {file}"
