"""A pre-check in a few lines, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msprobe_ms.accuracy.checked import Checked
from msprobe_ms.accuracy.judging.model import Status
from msprobe_ms.support.text import and_more, listed
from msprobe_ms.support.translation import tr, tr_count

#: Results that are wrong, and reasons for which calls were not checked, that are listed.
_MOST_ERRORS, _MOST_WARNINGS, _MOST_REASONS = 10, 3, 8


def verdict_line(dump: Path | str, checked: Checked) -> str:
    """Say how many calls were judged, and how; a call has a status for each direction."""
    counts, judged = checked.statuses, checked.judged
    word = tr("ERROR") if checked.failed else tr("PASS") if judged else tr("NOTHING CHECKED")
    return tr_count(
        "{word}: {dump}: {calls} judged ({forward} forward, {backward} backward): {passed} pass, {warned} warning, "
        "{wrong} error; 1 entry not checked",
        "{word}: {dump}: {calls} judged ({forward} forward, {backward} backward): {passed} pass, {warned} warning, "
        "{wrong} error; {count} entries not checked",
        checked.unchecked.total(),
        word=word,
        dump=dump,
        calls=tr_count("1 API call", "{count} API calls", judged["calls"]),
        forward=judged["forward"],
        backward=judged["backward"],
        passed=counts[Status.PASS],
        warned=counts[Status.WARNING],
        wrong=counts[Status.ERROR],
    )


def status_reason(checked: Checked, *, strict: bool) -> str:
    """Say why ``--exit-code`` makes the exit status 1; "" where it is 0. ``strict``: all calls are to be checked."""
    if checked.failed:
        return tr("exit status 1: an API is wrong")
    if strict and not checked.judged:
        return tr("exit status 1: --strict is given, and nothing was checked")
    if strict and checked.lacking:
        return tr_count(
            "exit status 1: --strict is given, and {count} API call could not be checked",
            "exit status 1: --strict is given, and {count} API calls could not be checked",
            checked.lacking,
        )
    return ""


def summary_lines(dump: Path | str, checked: Checked, *, drawn: bool = False) -> Iterator[str]:
    """Yield the verdict, what is wrong, what was not checked and why, and the files.

    ``drawn``: the inputs were drawn to the recorded statistics
    """
    yield verdict_line(dump, checked)
    if checked.resumed:
        yield tr("  {resumed} of the calls were checked by an earlier run", resumed=checked.resumed)
    wrong = [row for result in checked.results for row in result.details if row.status is Status.ERROR]
    for row in wrong[:_MOST_ERRORS]:
        yield tr("  error: {name}: {what}", name=row.name, what=row.message or row.rule)
    if len(wrong) > _MOST_ERRORS:
        yield tr("  {more} in the table", more=and_more(len(wrong) - _MOST_ERRORS, ""))
    warned = [row for result in checked.results for row in result.details if row.status is Status.WARNING]
    for row in warned[:_MOST_WARNINGS]:
        yield tr("  warning: {name}: {what}", name=row.name, what=row.message or row.rule)
    if len(warned) > _MOST_WARNINGS:
        yield tr("  {more} in the table", more=and_more(len(warned) - _MOST_WARNINGS, ""))
    if drawn and (wrong or warned):
        yield (
            tr(
                "  the inputs were drawn to the recorded statistics: to judge the recorded ones, dump with task tensor "
                "and check again"
            )
        )
    if reasons := checked.unchecked:
        yield tr("  not checked: ") + listed(
            (tr("{count} {reason}", count=count, reason=reason) for reason, count in reasons.most_common()),
            _MOST_REASONS,
        )
    if checked.holds_no_calls:
        yield tr("  the dump holds no API calls: record them at level L1 or mix, then check again")
    for file in checked.files:
        yield tr("file: {file}", file=file)
    if checked.errors is not None and checked.errors.is_dir():
        yield tr("tensors and scripts of wrong calls: {folder}", folder=checked.errors)
        yield from _scriptless(checked.without_script)


def _scriptless(names: Sequence[str]) -> Iterator[str]:
    """How many wrong calls have tensors alone, and why."""
    if names:
        yield tr_count(
            "  1 wrong call has no script, only tensors: a script calls public functions by their names, and calls "
            "recorded as {prefixes} are none",
            "  {count} wrong calls have no script, only tensors: a script calls public functions by their names, and "
            "calls recorded as {prefixes} are none",
            count=len(names),
            prefixes=listed(dict.fromkeys(name.partition(".")[0] for name in names), _MOST_REASONS),
        )
