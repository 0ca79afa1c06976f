"""Compare every rank and step of two dumps: one comparison each, run by an executor, of processes or of a Dask cluster.

What comes back from a worker is small: a verdict, names of files, and one number a node. The comparisons themselves,
rows and all, end where they were made. Layer mappings that were found equal for many pairs are written to one file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from msprobe_ms.arrays.custom_metrics import Algorithm, Unloaded
from msprobe_ms.comparison.many.first_rank import Exchanges, exchanges_of
from msprobe_ms.comparison.many.plan import DumpPair, Plan
from msprobe_ms.comparison.many.trend import Errors, LossGap, errors_of, loss_gap
from msprobe_ms.comparison.model import Origin, Outcome
from msprobe_ms.comparison.pairing.automatic import exchanged_mark
from msprobe_ms.comparison.pairing.coverage import anything_compared
from msprobe_ms.comparison.reporting.facts import why_alone
from msprobe_ms.comparison.reporting.files import summary
from msprobe_ms.comparison.reporting.reasons import most_let_pass
from msprobe_ms.comparison.reporting.terminal import can_be_proved, verdict_lines
from msprobe_ms.comparison.run import Options, compare_dumps, compare_one
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.reading.locate import Place, parts_of
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import MsprobeError, UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_count
from msprobe_ms.support.workers import Lost, Pool, processes, run_in_order

#: Memory that a byte of dump.json takes while it is compared; measured: 1.7, from 5,000 to 80,000 entries.
_MEMORY_A_BYTE = 3


class Work(NamedTuple):
    """One comparison, as it is sent to a worker. ``output`` None: no report is written.

    ``algorithms`` are those of the options, which are loaded there; ``command`` compares this pair alone; ``after`` is
    an earlier step of its rank that diverges, where one is known.
    """

    pair: DumpPair
    output: Path | None
    options: Options
    timestamp: str
    with_errors: bool
    algorithms: tuple[Unloaded, ...] = ()
    command: tuple[str, ...] = ()
    after: int | None = None


@dataclass(frozen=True)
class Found:
    """What is known of one comparison when it is over.

    ``summary``  the content of its compare_summary.json; ``origins`` those in it
    ``lines``    its verdict in words, without the files
    ``errors``   how far each node is out, where a trend is wanted
    ``loss``     the first loss that differs, where it is no drift of two runs that agree
    ``problem``  why there is none of it: then ``verdict`` is ``failed``
    ``unpaired``   nothing could be compared
    ``why_alone``  why values have no counterpart
    ``provable``   the call that its error begins at can be run alone
    ``differing``  of one that is consistent, how many values differ for a reason that is no error of their own
    ``inherits``   the earlier step whose error it inherits, where nothing else is wrong with it
    ``updated``    parameters have been through updates, by their values
    ``hides``      the largest deviation that was accepted after updates of the parameters
    """

    place: Place
    verdict: Verdict
    summary: dict[str, Any] = field(default_factory=dict)
    origins: list[Origin] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    errors: Errors | None = None
    loss: LossGap | None = None
    exchanges: Exchanges = field(default_factory=Exchanges)
    problem: str = ""
    differing: int = 0
    unpaired: bool = False
    why_alone: str = ""
    provable: bool = False
    inherits: int | None = None
    updated: bool = False
    hides: float = 0.0

    @property
    def shows_error(self) -> bool:
        """Whether values differ, which those of later steps may inherit."""
        return self.verdict == Verdict.DIVERGENT and not self.unpaired

    @property
    def without_origin(self) -> str:
        """That values differ by what rounding error grows to in this pair; "" where none do."""
        if self.differing and self.hides:
            return tr_count(
                "1 value differs after updates of the parameters, by {largest:.2g} of its size: an error no larger may "
                "hide",
                "{count} values differ after updates of the parameters, by at most {largest:.2g} of their size: an "
                "error no larger may hide",
                count=self.differing,
                largest=self.hides,
            )
        return (
            tr_count(
                "1 value differs by rounding errors that have added up",
                "{count} values differ by rounding errors that have added up",
                count=self.differing,
            )
            if self.differing
            else ""
        )


def compare_pair(work: Work) -> Found:
    """Make one comparison and its reports, in a worker; return what is to be known of it."""
    pair = work.pair
    try:
        options = replace(work.options, algorithms=tuple(each.load() for each in work.algorithms))
        if work.output is None:
            ours, theirs = read_dump(pair.target), read_dump(pair.golden)
            compared = compare_dumps(ours, theirs, options, one_of_many=True, after=work.after)
            outcome = Outcome("", ours, theirs, compared, [])
        else:
            outcome = compare_one(
                pair.target, pair.golden, work.output, options, work.timestamp, pair.suffix,
                one_of_many=True, after=work.after,
            )  # fmt: skip
    except MsprobeError as error:
        return Found(pair.place, Verdict.FAILED, problem=tr("{error}", error=error))
    comparison = outcome.comparison
    return Found(
        pair.place,
        comparison.verdict,
        summary(comparison),
        comparison.origins,
        list(verdict_lines(replace(outcome, title="", files=[]), work.command)),
        outcome.files,
        errors_of(comparison) if work.with_errors else None,
        loss_gap(comparison, pair.place.step) if comparison.verdict != Verdict.CONSISTENT else None,
        exchanges_of(comparison),
        differing=sum(row.differs for row in comparison.rows) if comparison.verdict == Verdict.CONSISTENT else 0,
        unpaired=not comparison.origins and not anything_compared(comparison.pairs),
        why_alone=why_alone(outcome),
        provable=can_be_proved(outcome),
        inherits=comparison.inherits if comparison.verdict == Verdict.DIVERGENT else None,
        updated=comparison.updated,
        hides=most_let_pass(comparison.rows)[0] if comparison.updated else 0.0,
    )


class WrongSteps:
    """Of each rank the first step that diverges, told in the order of steps: later ones inherit its error."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}

    def before(self, found: Found) -> int | None:
        """Return the step whose error a pair inherits that is consistent of itself and has values that differ."""
        step, rank = found.place.step, found.place.rank
        if step is None:
            return None
        if found.shows_error:
            self._first.setdefault(rank, step)
        first = self._first.get(rank, step)
        return first if first < step and found.differing else None


def compare_all(
    plan: Plan, output: Path | None, options: Options, timestamp: str, pool: Pool | None = None
) -> Iterator[Found]:
    """Compare all pairs of a plan; results come in its order, whatever order they are computed in.

    Without a ``pool``, processes of this machine do it. Equal layer mappings that were found become one file.
    """
    algorithms = tuple(map(_unloaded, options.algorithms))
    options = replace(options, algorithms=())
    several_steps = len({pair.place.step for pair in plan.pairs}) > 1
    absolute = None if output is None else output.absolute()
    work = [
        Work(
            pair._replace(target=pair.target.absolute(), golden=pair.golden.absolute()),
            absolute, options, timestamp, several_steps, algorithms, options.command(pair.target, pair.golden),
        )
        for pair in plan.pairs
    ]  # fmt: skip
    mapping = SharedMapping(output, timestamp) if output is not None and options.align else None
    own = pool is None
    largest = _MEMORY_A_BYTE * max(map(_size, plan.pairs), default=0)
    pool = processes(len(work), largest) if pool is None else pool
    try:
        wrong = WrongSteps()
        for one, result in zip(work, run_in_order(compare_pair, work, pool), strict=True):
            if not isinstance(result, Lost) and (after := wrong.before(result)) is not None:
                (result,) = run_in_order(compare_pair, [one._replace(after=after)], pool)
            if isinstance(result, Lost):
                yield Found(one.pair.place, Verdict.FAILED, problem=result.reason)
                continue
            # A worker may stand elsewhere; here they are named as the folder was.
            files = [output / file.name for file in result.files] if output is not None else []
            yield replace(result, files=mapping.files(files) if mapping else files)
    finally:
        if own:
            pool.close()


def _unloaded(algorithm: Algorithm) -> Unloaded:
    """A worker loads the file again, perhaps from another folder."""
    file, _, name = algorithm.source.rpartition(":")
    return Unloaded(algorithm.name, f"{Path(file).absolute()}:{name}")


def _size(pair: DumpPair) -> int:
    """Bytes of both dump.json; 0 for one that is not there, which is told when it is read."""
    return sum(part.stat().st_size for path in (pair.target, pair.golden) for part in parts_of(path) if part.is_file())


#: How the name of every such file begins.
_BEGINNING = "layer_mapping"


class SharedMapping:
    """Shares the mapping file of the first pair, ``layer_mapping_{timestamp}.yaml``, among those of equal mapping.

    A pair of the same mapping, confidences apart, loses its file to it; any other keeps its own.
    """

    def __init__(self, output: Path, timestamp: str) -> None:
        self.path = output / f"{_BEGINNING}_{timestamp}.yaml"
        self._content: list[str] | None = None

    def files(self, files: list[Path]) -> list[Path]:
        """Return the files of a pair as they are afterwards."""
        return [self._kept(file) if file.name.startswith(f"{_BEGINNING}_") else file for file in files]

    def _kept(self, file: Path) -> Path:
        try:
            content = list(_meaning(file.read_text(encoding="utf-8")))
            if content == self._content:
                file.unlink()
                return self.path
            kept = file
            if self._content is None:
                kept, self._content = file.replace(self.path), content
        except OSError:  # it is there, but cannot be changed: better twice than not at all
            return file
        _warn(content, kept)
        return kept


def _warn(content: list[str], file: Path) -> None:
    told = [line for line in content if line.startswith(exchanged_mark())]
    if told:
        logger.warning(
            tr(
                "-lm: weights look exchanged ({count}, see {file}): {circles}",
                count=len(told),
                file=file,
                circles=told[0].removeprefix(exchanged_mark()),
            )
        )


def _meaning(text: str) -> Iterator[str]:
    """Its rules, and which weights look exchanged."""
    for line in text.splitlines():
        if line.startswith(exchanged_mark()):
            yield line
        elif rule := line.partition("  # ")[0].partition("# ")[0].rstrip():
            yield rule


#: Seconds to wait for the scheduler, and for a first worker.
_PATIENCE = 60


@contextmanager
def cluster(address: str) -> Iterator[Pool]:
    """Yield the workers of the scheduler at ``address`` (``tcp://host:8786``, or the path of its scheduler file).

    Workers read the dumps and write the reports themselves: they need the same paths, and msprobe_ms.

    :raises UsageError: distributed is not installed, nothing answers at the address, or there is no worker
    """
    try:
        from distributed import Client
        from distributed import TimeoutError as NoAnswer  # before Python 3.11 another one than Python's
    except ImportError as error:
        raise UsageError(tr('--scheduler: needs Dask: pip install "msprobe-ms[cluster]"')) from error
    try:
        where = {"scheduler_file": _awaited(address)} if address.endswith(".json") else {"address": address}
        client = Client(**where, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, NoAnswer) as error:
        raise UsageError(
            tr(
                "--scheduler {address}: no Dask scheduler answers there ({error}); accepted is an address "
                "such as tcp://host:8786, or a scheduler file",
                address=address,
                error=error,
            )
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except NoAnswer as error:
            raise UsageError(
                tr("--scheduler {address}: it has no worker; start some with: dask worker {address}", address=address)
            ) from error
        width = sum(client.nthreads().values())
        with client.get_executor(pure=False) as executor:
            yield Pool(executor, width)


def _awaited(file: str) -> str:
    """A scheduler's file, which it writes when it is ready; distributed itself would wait for ever."""
    deadline = time.monotonic() + _PATIENCE
    while not Path(file).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return str(Path(file).resolve(strict=True))
