"""Set the details of two devices against each other: is the target's error within a factor of the golden's?

Both tables are joined by the names of outputs. What only one of them has, and what cannot be judged, is a row that says
so. Whatever the order of their rows and columns, verdicts are the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging import findings as own
from msprobe_ms.accuracy.judging.compare_rules import TITLES as VERDICT_TITLES
from msprobe_ms.accuracy.judging.compare_rules import Cells, Side, judge_pair
from msprobe_ms.accuracy.judging.model import Profile, Status, gravest
from msprobe_ms.accuracy.judging.thresholds import Thresholds
from msprobe_ms.accuracy.tables import (
    DEVICE_DTYPES,
    MESSAGE,
    MINDSPORE_TITLES,
    NAME,
    OWN_TITLES,
    PYTORCH_TITLES,
    STATUS,
    Table,
    read_table,
    result_titles,
    status_text,
    write_table,
)
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr, tr_join, tr_list, translated

#: Names of the files begin so, and end in a time of 14 digits.
PREFIX = "api_precision_compare_"

#: Figures without which the details of PyTorch cannot be judged, and those of msprobe's MindSpore checker.
_NEEDED = (
    fig.SMALL_VALUE_ERRORS, fig.ROOT_MEAN_SQUARE, fig.MAX_NORMAL_RELATIVE, fig.MEAN_NORMAL_RELATIVE, fig.ERROR_BALANCE,
    fig.UNEQUAL, fig.NON_FINITE_ERRORS, fig.RELATIVE_ERRORS, fig.ABSOLUTE_ERRORS, fig.MEAN_ULP, fig.MANY_ULPS,
    fig.WITHIN_THOUSANDTH,
)  # fmt: skip
_NEEDED_OF_MINDSPORE = (fig.MAX_ABSOLUTE, fig.MAX_RELATIVE)

_OUTPUT = re.compile(r"(?P<api>.+)\.(?P<direction>forward|backward)\.output\.[^.]+(\..*)?", re.DOTALL)


class Judgement(NamedTuple):
    """One output of both tables: its row of details."""

    name: str
    cells: Cells
    status: Status
    algorithm: str
    rule: str
    message: str
    excess: tuple[float | None, float | None]

    @property
    def api(self) -> str:
        found = _OUTPUT.fullmatch(self.name)
        return found["api"] if found else self.name

    @property
    def is_backward(self) -> bool:
        found = _OUTPUT.fullmatch(self.name)
        return found is not None and found["direction"] == "backward"


@dataclass
class ApiVerdict:
    """One call: the verdict over its outputs in each direction; None for one that neither table has."""

    name: str
    statuses: dict[bool, list[Status]] = field(default_factory=lambda: {False: [], True: []})
    messages: list[str] = field(default_factory=list)

    def status(self, *, backward: bool) -> Status | None:
        return gravest(self.statuses[backward])


@dataclass(frozen=True)
class PrecisionComparison:
    """All outputs of both tables, in the order of the target's, and all calls."""

    rows: list[Judgement]
    apis: list[ApiVerdict]

    @property
    def counts(self) -> Counter[Status]:
        """Calls by their verdict: the graver of both directions."""
        verdicts = (gravest([*api.statuses[False], *api.statuses[True]]) for api in self.apis)
        return Counter(filter(None, verdicts))

    @property
    def failed(self) -> bool:
        return self.counts[Status.ERROR] > 0

    def lines(self) -> Iterator[str]:
        """The outcome for the terminal: totals, and the first calls that do not pass."""
        counts = self.counts
        told = tr_join(", ", (_counted(status, counts[status]) for status in Status))
        yield tr("{told} of {count} API calls", told=told, count=len(self.apis))
        bad = [api for api in self.apis if Status.ERROR in (*api.statuses[False], *api.statuses[True])]
        for api in bad[:10]:
            what = " ".join(" ".join(map(translated, api.messages)).split())[:200]
            yield tr("  error: {name}: {what}", name=api.name, what=what)
        if len(bad) > 10:
            yield tr("  and {count} more", count=len(bad) - 10)


def compare_precision(
    target: Path, golden: Path, thresholds: Thresholds, profile: Profile = "own"
) -> PrecisionComparison:
    """Compare the details of the device under suspicion with those of the one to trust.

    :raises DumpFormatError: a table cannot be read, or lacks columns, which are named
    """
    sides = tuple(_sides(read_table(path)) for path in (target, golden))
    judged = [
        _judged(name, sides[0].get(name), sides[1].get(name), (target, golden), thresholds, profile)
        for name in dict.fromkeys([*sides[0], *sides[1]])
    ]
    apis: dict[str, ApiVerdict] = {}
    for row in judged:
        api = apis.setdefault(row.api, ApiVerdict(row.api))
        api.statuses[row.is_backward].append(row.status)
        if row.message and row.message not in api.messages:
            api.messages.append(row.message)
    return PrecisionComparison(judged, list(apis.values()))


def write_comparison(
    comparison: PrecisionComparison, folder: Path, timestamp: str, profile: Profile = "own"
) -> list[Path]:
    """Write ``api_precision_compare_result_{timestamp}.csv`` and ``…_details_…``; return their paths.

    :raises UsageError: the folder cannot be written
    """
    paths = folder / f"{PREFIX}result_{timestamp}.csv", folder / f"{PREFIX}details_{timestamp}.csv"
    results = (
        [
            api.name,
            *(status_text(api.status(backward=side), profile, "pytorch") for side in (False, True)),
            "\n".join(api.messages),
        ]
        for api in comparison.apis
    )
    write_table(paths[0], result_titles(""), results)
    write_table(paths[1], detail_titles(profile), (_detail(row, profile) for row in comparison.rows))
    return list(paths)


def detail_titles(profile: Profile) -> list[str]:
    """The columns of details, in order."""
    ours = ["Rule", "Target Error over Allowed", "Golden Error over Allowed"] if profile == "own" else []
    return [NAME, *VERDICT_TITLES, "比对结果", "比对算法", MESSAGE, *ours]


def _detail(row: Judgement, profile: Profile) -> list[Cell]:
    cells = [_spelled(row.cells.get(title), profile) for title in VERDICT_TITLES]
    ours = [row.rule, *(" " if each is None else each for each in row.excess)] if profile == "own" else []
    return [row.name, *cells, status_text(row.status, profile, "pytorch"), row.algorithm, row.message, *ours]


def _counted(status: Status, count: int) -> str:
    words = {
        Status.PASS: tr("{count} pass", count=count),
        Status.WARNING: tr("{count} warning", count=count),
        Status.ERROR: tr("{count} error", count=count),
        Status.SKIP: tr("{count} SKIP", count=count),
    }
    return words[status]


def one_sided(path: Path) -> str:
    """Say that a table lacks an output that the other has."""
    return tr("{table}: has no such output", table=path.name)


def doubled(path: Path, count: int) -> str:
    """Say that a table has an output more than once, with other figures."""
    return tr("{table}: has {count} rows of it that differ", table=path.name, count=count)


def _spelled(cell: Cell | Status, profile: Profile) -> Cell:
    if isinstance(cell, Status):
        return status_text(cell, profile, "pytorch")
    return " " if cell is None else cell


def _judged(
    name: str,
    target: list[Side] | None,
    golden: list[Side] | None,
    paths: tuple[Path, Path],
    thresholds: Thresholds,
    profile: Profile,
) -> Judgement:
    for sides, path in zip((target, golden), paths, strict=True):
        if not sides or len(sides) > 1:
            reason = doubled(path, len(sides)) if sides else one_sided(path)
            return Judgement(name, {}, Status.SKIP, " ", tr("not compared"), reason, (None, None))
    assert target is not None and golden is not None
    verdict = judge_pair(_api(name), target[0], golden[0], thresholds, profile)
    excess = target[0].figures.get(own.EXCESS), golden[0].figures.get(own.EXCESS)
    return Judgement(name, verdict.cells, verdict.status, verdict.algorithm, verdict.rule, verdict.message, excess)


def _api(name: str) -> str:
    """The last part of an API's name: ``Functional.conv2d.0.forward.output.0`` is of ``conv2d``."""
    found = _OUTPUT.fullmatch(name)
    parts = (found["api"] if found else name).split(".")
    return parts[-2] if len(parts) > 1 and parts[-1].isdecimal() else parts[-1]


def _sides(table: Table) -> dict[str, list[Side]]:
    """The rows of a table by output; those that repeat another are left out."""
    dtype = next((title for title in DEVICE_DTYPES if title in table.titles), DEVICE_DTYPES[0])
    _check_columns(table, dtype)
    found: dict[str, list[Side]] = {}
    seen: dict[str, list[Mapping[str, str]]] = {}
    titles = _figure_titles(table.titles)
    for row in table.rows:
        name = row.get(NAME, "").strip()
        if name and row not in seen.setdefault(name, []):
            seen[name].append(row)
            found.setdefault(name, []).append(_side(row, dtype, titles))
    return found


def _check_columns(table: Table, dtype: str) -> None:
    ours = [PYTORCH_TITLES[key] for key in _NEEDED]
    theirs = [MINDSPORE_TITLES.get(key, "") for key in _NEEDED_OF_MINDSPORE]
    of_mindspore = set(theirs) <= set(table.titles) and not set(ours) & set(table.titles)
    missing = [title for title in (NAME, dtype, *(theirs if of_mindspore else ours)) if title not in table.titles]
    if missing:
        raise DumpFormatError(
            tr(
                "{path}: has no column {missing}; accepted is accuracy_checking_details_<time>.csv, the "
                "details of a pre-check",
                path=table.path,
                missing=tr_list(missing),
            )
        )


def _figure_titles(titles: Sequence[str]) -> dict[str, str]:
    """Figure → its column in a table."""
    known = [*PYTORCH_TITLES.items(), *MINDSPORE_TITLES.items(), *OWN_TITLES.items()]
    return {key: title for key, title in known if title in titles}


def _side(row: Mapping[str, str], dtype: str, titles: Mapping[str, str]) -> Side:
    numbers: dict[str, float | None] = {}
    wrong = ""
    for key, title in titles.items():
        text = row.get(title, "").strip()
        try:
            numbers[key] = float(text) if text else None
        except ValueError:
            wrong = wrong or tr("{title}: {text} is no number", title=title, text=repr(text[:60]))
    if fig.MAX_NORMAL_RELATIVE not in titles:  # of msprobe's MindSpore checker
        numbers[fig.MAX_NORMAL_RELATIVE] = numbers.get(fig.MAX_RELATIVE)
        if parse_dtype(row.get(dtype)).kind not in ("float", "complex") and numbers.get(fig.MAX_ABSOLUTE) is not None:
            numbers[fig.UNEQUAL] = float(numbers[fig.MAX_ABSOLUTE] != 0)
    return Side(row.get(dtype, "").strip(), numbers, row.get(STATUS, "").strip(), row.get(MESSAGE, "").strip(), wrong)
