"""Every rank and step of two dumps: one comparison each, run by an executor, and one verdict over all of them.

What comes back from a worker is small: a verdict, names of files, and one number a node. The comparisons themselves,
rows and all, end where they were made.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from msprobe_ms.compare.algorithms import Algorithm, Unloaded
from msprobe_ms.compare.collectives import Exchanges, exchanges_of
from msprobe_ms.compare.executors import Lost, Pool, processes, run_in_order
from msprobe_ms.compare.first_rank import FirstRank, first_rank
from msprobe_ms.compare.model import Origin
from msprobe_ms.compare.places import Plan, Twins
from msprobe_ms.compare.report import summary, writing
from msprobe_ms.compare.run import Options, Outcome, compare_dumps, compare_one
from msprobe_ms.compare.trend import Errors, Growing, Trends, errors_of, growing, most_growing, write_trend
from msprobe_ms.compare.verdict import verdict_lines
from msprobe_ms.errors import MsprobeError
from msprobe_ms.store.find import Place
from msprobe_ms.store.reader import read_dump

#: Files named in the terminal; of more, the first and the summary.
_FILES = 8
#: ``Found.verdict`` of a pair that could not be compared.
FAILED = "failed"


class Work(NamedTuple):
    """One comparison, as it is sent to a worker. ``output`` None: no report is written.

    ``algorithms`` are those of the options, which are loaded there.
    """

    twins: Twins
    output: Path | None
    options: Options
    timestamp: str
    with_errors: bool
    algorithms: tuple[Unloaded, ...] = ()


@dataclass(frozen=True)
class Found:
    """What is known of one comparison when it is over.

    ``summary``  the content of its compare_summary.json; ``origins`` those in it
    ``lines``    its verdict in words
    ``errors``   how far each node is out, where a trend is wanted
    ``problem``  why there is none of it: then ``verdict`` is ``failed``
    """

    place: Place
    verdict: str
    summary: dict[str, Any] = field(default_factory=dict)
    origins: list[Origin] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    errors: Errors | None = None
    exchanges: Exchanges = field(default_factory=Exchanges)
    problem: str = ""


def compare_twins(work: Work) -> Found:
    """Runs in a worker: one comparison, its reports, and what is to be known of it."""
    twins = work.twins
    try:
        options = replace(work.options, algorithms=tuple(each.load() for each in work.algorithms))
        if work.output is None:
            ours, theirs = read_dump(twins.target), read_dump(twins.golden)
            outcome = Outcome("", ours, theirs, compare_dumps(ours, theirs, options, alone=False), [])
        else:
            outcome = compare_one(
                twins.target, twins.golden, work.output, options, work.timestamp, twins.suffix, alone=False
            )
    except MsprobeError as error:
        return Found(twins.place, FAILED, problem=str(error))
    comparison = outcome.comparison
    return Found(
        twins.place,
        comparison.verdict,
        summary(comparison),
        comparison.origins,
        list(verdict_lines(replace(outcome, title=""))),
        outcome.files,
        errors_of(comparison) if work.with_errors else None,
        exchanges_of(comparison),
    )


def compare_all(
    plan: Plan, output: Path | None, options: Options, timestamp: str, pool: Pool | None = None
) -> Iterator[Found]:
    """Compare all twins of a plan; results come in its order, whatever order they are computed in.

    Without a ``pool``, processes of this machine do it.
    """
    algorithms = tuple(map(_unloaded, options.algorithms))
    options = replace(options, algorithms=())
    several_steps = len({twins.place.step for twins in plan.twins}) > 1
    absolute = None if output is None else output.absolute()
    work = [
        Work(
            twins._replace(target=twins.target.absolute(), golden=twins.golden.absolute()),
            absolute, options, timestamp, several_steps, algorithms,
        )
        for twins in plan.twins
    ]  # fmt: skip
    own = pool is None
    pool = processes(len(work), largest=max(map(_size, plan.twins), default=0)) if pool is None else pool
    try:
        for one, result in zip(work, run_in_order(compare_twins, work, pool), strict=True):
            yield Found(one.twins.place, FAILED, problem=result.reason) if isinstance(result, Lost) else result
    finally:
        if own:
            pool.close()


def _unloaded(algorithm: Algorithm) -> Unloaded:
    """A worker loads the file again, perhaps from another folder."""
    file, _, name = algorithm.source.rpartition(":")
    return Unloaded(algorithm.name, f"{Path(file).absolute()}:{name}")


def _size(twins: Twins) -> int:
    """Bytes of both dump.json; 0 for one that is not there, which is told when it is read."""
    return sum(path.stat().st_size for path in (twins.target, twins.golden) if path.is_file())


@dataclass(frozen=True)
class Total:
    """The verdict over all pairs.

    ``verdict``     ``divergent`` if one of them is; ``consistent`` if all are; else ``incomplete``
    ``counts``      pairs by verdict, ``failed`` included
    ``first_step``  the first step in which any rank diverges; None where steps are not told apart or none does
    ``first_origin``  where the error begins in it, in the first of its ranks that diverges
    ``first_rank``  which rank of that step was first, and why; None for a single rank
    ``growing``     nodes whose error grows over the steps, worst first
    """

    verdict: str
    counts: Counter[str]
    steps: list[int]
    first_step: int | None
    first_rank: FirstRank | None
    growing: list[Growing]
    files: list[Path]
    first_origin: str = ""

    @property
    def failed(self) -> int:
        """Pairs that could not be compared."""
        return self.counts[FAILED]


class Gathering:
    """Takes results one by one, in the plan's order, and holds only what the total needs: ``with Gathering(…) as …``.

    With an ``output`` it writes ``compare_summary_{timestamp}.json`` and a trend for each rank there.
    """

    def __init__(self, plan: Plan, output: Path | None, timestamp: str) -> None:
        self._plan, self._output, self._timestamp = plan, output, timestamp
        self._steps = sorted({twins.place.step for twins in plan.twins if twins.place.step is not None})
        self._counts: Counter[str] = Counter()
        self._first_step: int | None = None
        self._first_origin = ""
        #: The step whose ranks are looked at: the first that diverges, until then the latest.
        self._current: int | None = None
        self._exchanges: dict[str, Exchanges] = {}
        self._records: IO[bytes]
        self._trends = Trends()

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
        if place.step == self._current and found.verdict != FAILED:
            self._exchanges[rank_name(place)] = found.exchanges
        if found.verdict == "divergent" and self._first_step is None and place.step is not None:
            self._first_step = place.step
            self._first_origin = found.origins[0].target if found.origins else ""
        if found.errors is not None and place.step is not None:
            self._trends.add(rank_name(place), place.step, found.errors)
        text = json.dumps(_record(found), ensure_ascii=True, allow_nan=False)
        self._records.write((",\n" if self._records.tell() else "").encode() + f"  {text}".encode("ascii"))

    def total(self) -> Total:
        """The verdict; and, with an output, the files of it."""
        worst: list[Growing] = []
        files = []
        for trend in self._trends.tables():
            worst = most_growing([*worst, *growing(trend)])
            if self._output is not None:
                files.append(self._output / f"compare_trend{self._suffix(trend.rank)}_{self._timestamp}.csv")
                write_trend(trend, files[-1])
        several = len(self._exchanges) > 1
        total = Total(
            _verdict(self._counts),
            self._counts,
            self._steps,
            self._first_step if len(self._steps) > 1 else None,
            first_rank(self._exchanges) if several else None,
            worst,
            files,
            self._first_origin,
        )
        if self._output is not None:
            path = self._output / f"compare_summary_{self._timestamp}.json"
            self.write_summary(total, path)
            files.append(path)
        return total

    def _suffix(self, rank: str) -> str:
        """Nothing where there is one rank."""
        one = len({rank_name(twins.place) for twins in self._plan.twins}) == 1
        return "" if one else f"_{rank.replace(' ', '_')}"

    def write_summary(self, total: Total, path: Path) -> None:
        """The total, then a line for each pair. Raises UsageError: it cannot be written."""
        head = json.dumps(_head(total, self._plan), indent=1, ensure_ascii=True, allow_nan=False)
        with writing(path) as file:
            file.write(head.removesuffix("\n}").encode("ascii") + b',\n "ranks": [\n')
            self._records.seek(0)
            shutil.copyfileobj(self._records, file)
            file.write(b"\n ]\n}\n")


def _verdict(counts: Counter[str]) -> str:
    if counts["divergent"]:
        return "divergent"
    return "consistent" if set(+counts) == {"consistent"} else "incomplete"


def rank_name(place: Place) -> str:
    """What tells a rank from the others of its step: its folder's name, of a half after the name of that."""
    return " ".join(part for part in (place.half, place.rank) if part)


def _head(total: Total, plan: Plan) -> dict[str, Any]:
    first = total.first_rank
    return {
        "verdict": total.verdict,
        "compared": total.counts.total() - total.failed,
        "failed": total.failed,
        "only_in_target": [str(place) for place in plan.only_target],
        "only_in_golden": [str(place) for place in plan.only_golden],
        "first_step": total.first_step,
        "first_rank": None
        if first is None
        else {
            "ranks": first.ranks,
            "origin": first.origin,
            "collective": first.collective,
            "reason": first.reason,
        },
        "growing": [each._replace(last=_finite(each.last))._asdict() for each in total.growing],
    }


def _finite(number: float) -> Any:
    return number if number < float("inf") else "inf"


def _record(found: Found) -> dict[str, Any]:
    """One pair's line of the summary."""
    place = {"step": found.place.step, "rank": found.place.rank}
    if found.place.half:
        place["half"] = found.place.half
    if found.verdict == FAILED:
        return {**place, "verdict": FAILED, "problem": found.problem}
    origins = [{**origin, "metrics": _figures(origin["metrics"])} for origin in found.summary["origins"][:1]]
    counts = {key: found.summary[key] for key in ("mode", "matched", "unmatched_target", "unmatched_golden")}
    return {
        **place,
        "verdict": found.verdict,
        **counts,
        "damage": found.summary["damage"],
        "origins": len(found.summary["origins"]),
        "first_origin": origins[0] if origins else None,
        "handed_by": found.exchanges.handed_by or None,
    }


def _figures(metrics: dict[str, Any]) -> dict[str, Any]:
    """Of an origin's metrics the two that judge it; the pair's own summary has the rest."""
    return {name: metrics[name] for name in ("deviation", "tolerance") if name in metrics}


def found_lines(found: Found, *, in_full: bool) -> Iterator[str]:
    """One pair in words; not ``in_full``: a line where it is not consistent, none where it is."""
    if found.verdict == FAILED:
        yield f"{found.place}: NOT COMPARED: {found.problem}"
    elif in_full:
        yield f"{found.place}:"
        yield from found.lines
    elif found.verdict != "consistent":
        exchanges = found.exchanges
        where = f": the error begins at {exchanges.origin}" if exchanges.origin else ""
        if exchanges.handed_by:
            where = f": its error was handed to it by {exchanges.handed_by}"
        where += "".join(f"; {each}" for each in found.summary["damage"])
        yield f"{found.place}: {found.verdict.upper()}{where}"


def total_lines(total: Total, plan: Plan) -> Iterator[str]:
    """The total in words: what was compared, which step and rank to look at first, and where the files are."""
    done = [f"{total.counts[verdict]} {verdict}" for verdict in ("consistent", "divergent", "incomplete", FAILED)]
    shown = ", ".join(text for text in done if not text.startswith("0 "))
    yield f"{total.verdict.upper()}: {len(plan.twins)} pairs of dumps: {shown}"
    for side, places in (("target", plan.only_target), ("golden", plan.only_golden)):
        if places:
            yield f"only in the {side}, not compared: {_listed([str(place) for place in places])}"
    if total.first_step is not None:
        line = _step_line(total.first_step, total.steps)
        told = total.first_rank is not None or not total.first_origin
        yield line if told else f"{line}; its error begins at {total.first_origin}"
    if total.first_rank is not None:
        yield total.first_rank.reason
    if total.growing:
        figures = [f"{each.node} ({each.rank}: {each.first:.2g} → {each.last:.2g})" for each in total.growing]
        yield f"error grows over the steps, in tolerances, at: {_listed(figures, 3)}"
    named = total.files if len(total.files) <= _FILES else total.files[-1:]
    if len(named) < len(total.files):
        yield f"report: {len(total.files) - 1} trends, the first {total.files[0]}"
    for file in named:
        yield f"report: {file}"


def _step_line(first: int, steps: Sequence[int]) -> str:
    before = [step for step in steps if step < first]
    agreed = ""
    if before:
        listed = _listed([str(step) for step in before])
        agreed = f"step {listed} agrees: " if len(before) == 1 else f"steps {listed} agree: "
    later = "; later steps inherit its error through the weights" if first < steps[-1] else ""
    return f"{agreed}look at step {first}, the first that diverges{later}"


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
