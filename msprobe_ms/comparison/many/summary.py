"""Gather one verdict over all ranks and steps from their comparisons, one by one, and write its summary."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from msprobe_ms.comparison.many.first_rank import Exchanges, FirstRank, first_rank
from msprobe_ms.comparison.many.page import PairTold, TrendColumns, pair_told, write_many
from msprobe_ms.comparison.many.plan import Plan
from msprobe_ms.comparison.many.run import Found
from msprobe_ms.comparison.many.trend import Growing, LossGap, Trends, growing, most_growing, write_trend
from msprobe_ms.comparison.reporting.files import without_time, writing
from msprobe_ms.comparison.statistics import is_non_finite
from msprobe_ms.comparison.terms import Verdict


@dataclass(frozen=True)
class Total:
    """Verdict over all pairs, and what led to it.

    ``verdict``     ``divergent`` if one of them is; ``consistent`` if all are; else ``incomplete``
    ``counts``      pairs by verdict, ``failed`` included
    ``first_step``  the first step in which any rank diverges; None where steps are not told apart or none does
    ``inherited``   whether values of later steps may inherit an error of it
    ``first_origin``  where the error begins in it, in the first of its ranks that diverges
    ``first_loss``  the first step in which losses differ; None where steps are not told apart or none do
    ``first_rank``  which rank of that step was first, and why; None for a single rank
    ``growing``     nodes whose error grows over the steps, worst first
    ``provable``    the call that the command prove takes from the summary of all can be run alone
    ``mapping``     the layer mapping that was found for more than one of the pairs
    """

    verdict: Verdict
    counts: Counter[Verdict]
    steps: list[int]
    first_step: int | None
    first_rank: FirstRank | None
    growing: list[Growing]
    files: list[Path]
    first_origin: str = ""
    mapping: Path | None = None
    first_loss: LossGap | None = None
    inherited: bool = False
    provable: bool = False

    @property
    def failed(self) -> int:
        """Pairs that could not be compared."""
        return self.counts[Verdict.FAILED]


class Gathering:
    """Takes results one by one, in the plan's order, and holds only what the total needs: ``with Gathering(…) as …``.

    With an ``output`` it writes ``compare_summary_{timestamp}.json`` and a trend for each rank there, and gathers,
    where ``html``, what the page to look at tells.
    """

    def __init__(
        self, plan: Plan, output: Path | None, timestamp: str, *, html: bool = False, stacks: bool = True
    ) -> None:
        self._stacks = stacks
        self._plan, self._output, self._timestamp = plan, output, timestamp
        self._steps = sorted({pair.place.step for pair in plan.pairs if pair.place.step is not None})
        self._counts: Counter[Verdict] = Counter()
        self._first_step: int | None = None
        self._first_origin = ""
        self._inherited = False
        #: Step and rank of each pair that diverges, and whether the call its error begins at can be run alone.
        self._provable: list[tuple[int | None, str, bool]] = []
        self._first_loss: LossGap | None = None
        #: The step whose ranks are looked at: the first that diverges, until then the latest.
        self._current: int | None = None
        self._exchanges: dict[str, Exchanges] = {}
        self._records: IO[bytes]
        self._trends = Trends()
        self._mapping: Path | None = None
        self._html = html
        self._told: list[PairTold] = []
        self._trend_columns = TrendColumns()
        self._suffixes = {pair.place: pair.suffix.removeprefix("_") for pair in plan.pairs}

    def __enter__(self) -> Gathering:
        self._records = tempfile.TemporaryFile(prefix="msprobe_ranks_")
        self._trends.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._records.close()
        self._trends.__exit__()

    def add(self, found: Found) -> None:
        place = found.place
        self._counts[found.verdict] += 1
        if self._first_step is None and place.step != self._current:
            self._current, self._exchanges = place.step, {}
        if place.step == self._current and found.verdict != Verdict.FAILED:
            self._exchanges[place.rank] = found.exchanges
        if found.verdict == Verdict.DIVERGENT:
            self._provable.append((place.step, place.rank, found.provable))
        if found.verdict == Verdict.DIVERGENT and self._first_step is None and place.step is not None:
            self._first_step, self._inherited = place.step, found.shows_error
            self._first_origin = found.origins[0].target if found.origins else ""
        if found.loss is not None and place.step is not None:
            self._first_loss = self._first_loss or found.loss
        if found.errors is not None and place.step is not None:
            self._trends.add(place.rank, place.step, found.errors)
        if self._html:
            self._told.append(pair_told(found, place.rank, paths=self._stacks))
        shared = f"layer_mapping_{self._timestamp}.yaml"
        self._mapping = next((file for file in found.files if file.name == shared), self._mapping)
        text = json.dumps(_record(found, self._suffixes.get(place, "")), ensure_ascii=True, allow_nan=False)
        self._records.write((",\n" if self._records.tell() else "").encode() + f"  {text}".encode("ascii"))

    def total(self) -> Total:
        """Return the total, and write its files where there is an output."""
        worst: list[Growing] = []
        files = []
        for trend in self._trends.tables():
            worst = most_growing([*worst, *growing(trend)])
            if self._html:
                self._trend_columns.add(trend)
            if self._output is not None:
                files.append(self._output / f"compare_trend{self._suffix(trend.rank)}_{self._timestamp}.csv")
                write_trend(trend, files[-1])
        several = len({pair.place.rank for pair in self._plan.pairs}) > 1
        rank = first_rank(self._exchanges) if several and len(self._exchanges) > 1 else None
        step = self._first_step if len(self._steps) > 1 else None
        total = Total(
            _verdict(self._counts),
            self._counts,
            self._steps,
            step,
            rank,
            worst,
            files,
            self._first_origin,
            self._mapping,
            self._first_loss if len(self._steps) > 1 else None,
            inherited=self._inherited,
            provable=self._is_first_provable(step, rank),
        )
        if self._output is not None:
            path = self._output / f"compare_summary_{self._timestamp}.json"
            self.write_summary(total, path)
            files.append(path)
        return total

    def _is_first_provable(self, step: int | None, first: FirstRank | None) -> bool:
        """Whether the call can be run alone that the command prove chooses: of the first step, in its first rank."""
        pairs = [each for each in self._provable if each[0] == step] or self._provable
        ranks = first.ranks if first is not None else []
        chosen = next((each for each in pairs if each[1] in ranks), next(iter(pairs), None))
        return chosen is not None and chosen[2]

    def _suffix(self, rank: str) -> str:
        """Nothing where there is one rank."""
        one = len({pair.place.rank for pair in self._plan.pairs}) == 1
        return "" if one else f"_{rank.replace(' ', '_')}"

    def write_page(self, total: Total, lines: Sequence[str]) -> Path | None:
        """Write the page, where it was asked for, once there is the total; ``lines``: that in words.

        :raises UsageError: the folder cannot be written
        """
        if self._output is None or not self._html:
            return None
        path = self._output / f"compare_report_{self._timestamp}.html"
        write_many(path, lines, self._told, total.verdict, self._trend_columns)
        return path

    def write_summary(self, total: Total, path: Path) -> None:
        """The total, then a line for each pair. Raises UsageError: it cannot be written."""
        head = json.dumps(_head(total, self._plan, self._timestamp), indent=1, ensure_ascii=True, allow_nan=False)
        with writing(path) as file:
            file.write(head.removesuffix("\n}").encode("ascii") + b',\n "ranks": [\n')
            self._records.seek(0)
            shutil.copyfileobj(self._records, file)
            file.write(b"\n ]\n}\n")


def _verdict(counts: Counter[Verdict]) -> Verdict:
    if counts[Verdict.DIVERGENT]:
        return Verdict.DIVERGENT
    return Verdict.CONSISTENT if set(+counts) == {Verdict.CONSISTENT} else Verdict.INCOMPLETE


def _head(total: Total, plan: Plan, timestamp: str) -> dict[str, Any]:
    first = total.first_rank
    return {
        "verdict": total.verdict,
        "compared": total.counts.total() - total.failed,
        "failed": total.failed,
        "only_in_target": [str(place) for place in plan.only_target],
        "only_in_golden": [str(place) for place in plan.only_golden],
        "first_step": total.first_step,
        "first_loss": None if total.first_loss is None else _loss(total.first_loss),
        "first_rank": None
        if first is None
        else {
            "ranks": first.ranks,
            "origin": first.origin,
            "collective": first.collective,
            "reason": first.reason,
        },
        "growing": [each._replace(last=_finite(each.last))._asdict() for each in total.growing],
        "files": [without_time(file, timestamp) for file in (*filter(None, (total.mapping,)), *total.files)],
    }


def _loss(gap: LossGap) -> dict[str, Any]:
    numbers = {"target": gap.target, "golden": gap.golden}
    return {"step": gap.step, **{side: str(each) if is_non_finite(each) else each for side, each in numbers.items()}}


def _finite(number: float) -> Any:
    return number if number < float("inf") else "inf"


def _record(found: Found, reports: str) -> dict[str, Any]:
    """One pair's line of the summary; ``reports`` is what the names of its files have before the time."""
    place = {"step": found.place.step, "rank": found.place.rank}
    if found.verdict == Verdict.FAILED:
        return {**place, "verdict": Verdict.FAILED, "problem": found.problem}
    origins = [{**origin, "metrics": _judging(origin["metrics"])} for origin in found.summary["origins"][:1]]
    counts = {key: found.summary[key] for key in ("mode", "matched", "unmatched_target", "unmatched_golden")}
    return {
        **place,
        "verdict": found.verdict,
        **counts,
        "damage": found.summary["damage"],
        "ends": found.summary["ends"],
        "inherits": found.inherits,
        "origins": len(found.summary["origins"]),
        "first_origin": origins[0] if origins else None,
        "handed_by": found.exchanges.handed_by or None,
        "reports": reports,
    }


def _judging(metrics: dict[str, Any]) -> dict[str, Any]:
    """Of an origin's metrics the two that judge it; the pair's own summary has the rest."""
    return {name: metrics[name] for name in ("deviation", "tolerance") if name in metrics}
