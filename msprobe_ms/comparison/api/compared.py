"""What ``msprobe_ms.compare`` returns: ``Compared`` for one rank and step, ``ComparedRanks`` for many."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.comparison.api.notebook import comparison_html, imported_pandas, ranks_html
from msprobe_ms.comparison.api.result import ComparisonResult, Key
from msprobe_ms.comparison.many.first_rank import FirstRank
from msprobe_ms.comparison.many.plan import DumpPair, Plan
from msprobe_ms.comparison.many.run import Found, compare_all
from msprobe_ms.comparison.many.summary import Gathering, Total
from msprobe_ms.comparison.many.terminal import found_lines, total_lines
from msprobe_ms.comparison.model import Comparison, Origin, Outcome
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.files import (
    claimed_timestamp,
    pairing,
    row_counts,
    summary,
    table,
    write_table,
    writing,
)
from msprobe_ms.comparison.reporting.terminal import verdict_lines
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.locate import Place, place_of
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.text import counted, one_a_line
from msprobe_ms.support.translation import tr
from msprobe_ms.support.workers import given

if TYPE_CHECKING:
    import pandas


#: Texts of a table for floats that a spreadsheet has no number for.
_NOT_FINITE = frozenset(("inf", "-inf", "nan"))


class Compared(ComparisonResult):
    """Two dumps of one rank and step, compared; ``comparison`` has the pairs and rows.

    ``after``: an earlier step that diverges, whose error what differs in this one inherits.
    """

    def __init__(self, target: Dump, golden: Dump, options: Options, after: int | None = None) -> None:
        self._options = options
        self.target, self.golden = target, golden
        self.comparison: Comparison = compare_dumps(target, golden, options, after=after)

    @property
    def _outcome(self) -> Outcome:
        return Outcome("", self.target, self.golden, self.comparison, [])

    @property
    def verdict(self) -> Verdict:
        """``consistent``, ``divergent`` or ``incomplete``."""
        return self.comparison.verdict

    @property
    def origins(self) -> list[Origin]:
        """Where error begins, in execution order."""
        return self.comparison.origins

    @property
    def pairs(self) -> Mapping[Key, Compared]:
        """This one, by its step and rank: code that takes many takes one as well."""
        return {_numbered(place_of(self.target.path.absolute().parent)): self}

    @property
    def summary(self) -> dict[str, Any]:
        """The content of compare_summary.json."""
        return {**summary(self.comparison), **pairing(self.comparison)}

    @property
    def frame(self) -> pandas.DataFrame:
        """The rows of the report, infinity and NaN as floats; needs pandas (the extra ``dataframe``)."""
        pandas = imported_pandas()
        titles, rows = table(self.comparison, self._options.report)
        columns = [_numbers(cells) for cells in zip(*(row for row, _ in rows), strict=True)]
        return pandas.DataFrame(list(zip(*columns, strict=True)), columns=titles)

    def to_html(self, path: str | Path) -> Path:
        """Write the page to look at. Raises UsageError: it cannot be written."""
        from msprobe_ms.comparison.page.report import write_report_to  # here, as few ask for it

        if Path(path).suffix != ".html":
            raise UsageError(
                tr("{path}: accepted is a file name that ends with .html, as this is one rank and step", path=path)
            )
        write_report_to(Path(path), self._outcome)
        return Path(path)

    def view(self) -> Path:
        """Write the page into a new folder for temporary files and show it in a browser; return the file."""
        path = self.to_html(Path(tempfile.mkdtemp(prefix="msprobe_")) / "compare_report.html")
        webbrowser.open(path.as_uri())
        return path

    def to_xlsx(self, path: str | Path) -> Path:
        """Write the coloured table to a file; of many ranks it is a folder. Raises UsageError: it cannot be written."""
        return self._write(Path(path), ".xlsx")

    def to_csv(self, path: str | Path) -> Path:
        """Write the table, without colours. Raises UsageError: it cannot be written."""
        return self._write(Path(path), ".csv")

    def to_json(self, path: str | Path) -> Path:
        """Write the summary. Raises UsageError: it cannot be written."""
        with writing(Path(path)) as file:
            file.write((json.dumps(self.summary, indent=1, allow_nan=False) + "\n").encode("ascii"))
        return Path(path)

    def _write(self, path: Path, suffix: str) -> Path:
        if path.suffix != suffix:
            raise UsageError(
                tr(
                    "{path}: accepted is a file name that ends with {suffix}, as this is one rank and step",
                    path=path,
                    suffix=suffix,
                )
            )
        titles, rows = table(self.comparison, self._options.report)
        report = self._options.report
        write_table(path, titles, rows, report.colours, legend=report.legend(titles))
        return path

    def __str__(self) -> str:
        """What the command prints."""
        command = self._options.command(self.target.path, self.golden.path)
        return one_a_line(verdict_lines(self._outcome, command))

    def __repr__(self) -> str:
        matched = row_counts(self.comparison)["matched"]
        return tr(
            "<{verdict}: {counted} compared, {other_counted}>",
            verdict=self.verdict,
            counted=counted(matched, "value"),
            other_counted=counted(len(self.origins), "origin"),
        )

    def _repr_html_(self) -> str:
        return comparison_html(self._outcome)


def _numbers(cells: Sequence[Cell]) -> Sequence[Cell]:
    """A column's cells; where all are numbers, nothing, or texts for what is not finite, such texts as floats."""
    texts = {cell for cell in cells if isinstance(cell, str)}
    if not texts or not all(text.strip() in _NOT_FINITE for text in texts):
        return cells
    if any(isinstance(cell, bool) for cell in cells):
        return cells
    return [float(cell) if isinstance(cell, str) else cell for cell in cells]


#: Comparisons of single ranks that are kept once they were asked for.
_KEPT = 4


class ComparedRanks(Mapping[Key, Compared], ComparisonResult):
    """``(step, rank)`` → the comparison of that pair, made when it is asked for.

    A process without a rank is rank -1: ``comparison[0, -1]``.

    ``found``  of every pair in the order step, rank: its verdict, origins and summary; that is all that is held. What
               could not be compared has the verdict ``failed`` and a ``problem``
    ``total``  what is known of all: counts, the first step that diverges, the first rank
    """

    def __init__(self, plan: Plan, options: Options, executor: Executor | None) -> None:
        self._plan, self._options = plan, options
        self._pairs = dict(zip(_keys(plan.pairs), plan.pairs, strict=True))
        self._compared = lru_cache(_KEPT)(self._compare_one)
        self.found, self.total = self._compare_all(None, options, executor)

    @property
    def verdict(self) -> Verdict:
        """``divergent`` where one pair is, ``consistent`` where all are, else ``incomplete``."""
        return self.total.verdict

    @property
    def origins(self) -> list[Origin]:
        """The origins of all pairs, in the order step, rank."""
        return [origin for found in self.found for origin in found.origins]

    @property
    def pairs(self) -> Mapping[Key, Compared]:
        """This mapping itself."""
        return self

    @property
    def first(self) -> Key | None:
        """The first pair that diverges: of the first step, the first rank to differ by itself."""
        ranks = self.total.first_rank.ranks if self.total.first_rank is not None else []
        verdicts = {key: found.verdict for key, found in zip(self._pairs, self.found, strict=True)}
        divergent = [key for key, verdict in verdicts.items() if verdict == Verdict.DIVERGENT]
        chosen = [key for key in divergent if key[0] == divergent[0][0] and self._pairs[key].place.rank in ranks]
        return next(iter(chosen or divergent), None)

    @property
    def first_rank(self) -> FirstRank | None:
        """The rank that was the first to differ, in the first step that does, and the reason; None where none does."""
        return self.total.first_rank

    @property
    def failed(self) -> dict[Key, str]:
        """The pairs that could not be compared, and why."""
        return {key: found.problem for key, found in zip(self._pairs, self.found, strict=True) if found.problem}

    @property
    def frame(self) -> pandas.DataFrame:
        """The rows of all reports, after their ``Step`` and ``Rank``; needs pandas, and memory for all rows."""
        pandas = imported_pandas()
        frames = []
        for key, compared in self.items():
            frame = compared.frame
            frame.insert(0, "Rank", self._pairs[key].place.rank)
            frame.insert(0, "Step", self._pairs[key].place.step)
            frames.append(frame)
        return pandas.concat(frames, ignore_index=True)

    def to_html(self, folder: str | Path) -> list[Path]:
        """Write the page of every pair that could be compared. Raises UsageError: the folder cannot be written."""
        return [self[key].to_html(Path(folder) / f"compare_report{self._pairs[key].suffix}.html") for key in self]

    def to_xlsx(self, folder: str | Path, executor: Executor | None = None) -> list[Path]:
        """Write every pair's table and summary, the trends and the summary of all into a folder, as the command does.

        Rows are not kept, so all is compared once more. Raises UsageError: the folder cannot be written.
        """
        return self._reports(Path(folder), replace(self._options, csv=False), executor)

    def to_csv(self, folder: str | Path, executor: Executor | None = None) -> list[Path]:
        """As ``to_xlsx``, the tables as csv."""
        return self._reports(Path(folder), replace(self._options, csv=True), executor)

    def to_json(self, path: str | Path) -> Path:
        """Write the summary of all. Raises UsageError: it cannot be written."""
        with Gathering(self._plan, None, "") as gathering:
            for found in self.found:
                gathering.add(found)
            gathering.write_summary(self.total, Path(path))
        return Path(path)

    def _reports(self, folder: Path, options: Options, executor: Executor | None) -> list[Path]:
        found, total = self._compare_all(folder, options, executor)
        return [*dict.fromkeys(file for each in found for file in each.files), *total.files]

    def _compare_all(
        self, output: Path | None, options: Options, executor: Executor | None
    ) -> tuple[list[Found], Total]:
        pool = None if executor is None else given(executor)
        everything = []
        with (
            nullcontext("") if output is None else claimed_timestamp(output) as timestamp,
            Gathering(self._plan, output, timestamp) as gathering,
        ):
            for found in compare_all(self._plan, output, options, timestamp, pool):
                gathering.add(found)
                everything.append(replace(found, errors=None))
            return everything, gathering.total()

    def _compare_one(self, key: Key) -> Compared:
        pair = self._pairs[key]
        after = next((found.inherits for found in self.found if found.place == pair.place), None)
        return Compared(read_dump(pair.target), read_dump(pair.golden), self._options, after)

    def __getitem__(self, key: Key) -> Compared:
        return self._compared(key)

    def __contains__(self, key: object) -> bool:
        """Whether the pair could be compared."""
        return key in self._pairs and key not in self.failed

    def __iter__(self) -> Iterator[Key]:
        """The pairs that could be compared."""
        return (key for key, found in zip(self._pairs, self.found, strict=True) if not found.problem)

    def __len__(self) -> int:
        return sum(not found.problem for found in self.found)

    def __str__(self) -> str:
        """What the command prints of many."""
        return one_a_line([*total_lines(self.total, self._plan), *found_lines(self.found, in_full=False)])

    def __repr__(self) -> str:
        return tr(
            "<{verdict}: {count} pairs of dumps, {counted}>",
            verdict=self.verdict,
            count=len(self._pairs),
            counted=counted(len(self.origins), "origin"),
        )

    def _repr_html_(self) -> str:
        return ranks_html(self.found, list(total_lines(self.total, self._plan)))


def _keys(pairs: Sequence[DumpPair]) -> Iterator[Key]:
    """One of its own for each."""
    numbered = [_numbered(each.place) for each in pairs]
    counts = Counter(numbered)
    for each, key in zip(pairs, numbered, strict=True):
        yield (each.place.step, each.place.rank) if counts[key] > 1 else key


def _numbered(place: Place) -> Key:
    number = place.rank_number
    return place.step or 0, -1 if number is None else number
