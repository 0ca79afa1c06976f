"""One comparison from two paths to a verdict: read → pair → measure → find origins → judge → report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from msprobe_ms.compare.advisor import write_advice
from msprobe_ms.compare.measure import measure
from msprobe_ms.compare.model import Comparison
from msprobe_ms.compare.origin import find_origins
from msprobe_ms.compare.pair import pair
from msprobe_ms.compare.profiles import PROFILES, judge
from msprobe_ms.compare.report import write_summary, write_tables
from msprobe_ms.compare.uneven_calls import tell_uneven_calls
from msprobe_ms.errors import CompareError
from msprobe_ms.log import logger
from msprobe_ms.mapping.files import Mappings
from msprobe_ms.store.find import find_dumps
from msprobe_ms.store.model import Dump
from msprobe_ms.store.reader import read_dump

#: Pairs from which on a progress bar is worth its line; and only real data takes long enough.
_LONG = 500


@dataclass(frozen=True)
class Options:
    """How to compare and what to write. ``profile`` names the columns and thresholds: ``v110`` or ``latest``."""

    mappings: Mappings = field(default_factory=Mappings)
    fuzzy: bool = False
    profile: str = "latest"
    csv: bool = False
    stack: bool = False
    advice: bool = False


@dataclass(frozen=True)
class Outcome:
    """One comparison and the files that tell of it."""

    title: str
    target: Dump
    golden: Dump
    comparison: Comparison
    files: list[Path]


def compare(target: Path, golden: Path, output: Path, options: Options) -> Iterator[Outcome]:
    """Compare every rank of ``target`` with its twin in ``golden``; each a dump.json, a rank or a step folder.

    Reports go to ``output``, which is created. Raises MsprobeError: what cannot be read, paired or written.
    """
    timestamp = unused_timestamp(output)
    for suffix, ours, theirs in _rank_pairs(target, golden, options.profile):
        yield _compare_one(ours, theirs, output, options, timestamp, suffix)


def unused_timestamp(output: Path) -> str:
    """Now, or the next second that no report in ``output`` bears: a report is never overwritten."""
    moment = time.time()
    while any(output.glob(f"compare_*{(text := time.strftime('%Y%m%d%H%M%S', time.localtime(moment)))}*")):
        moment += 1
    return text


def compare_dumps(target: Dump, golden: Dump, options: Options) -> Comparison:
    """Pair, measure and judge two dumps already read."""
    if target.mode == golden.mode:
        mode = target.mode
    else:
        mode = "statistics"
        logger.info("target is a %s dump and golden a %s dump: statistics are compared", target.mode, golden.mode)
    pairs = pair(target, golden, options.mappings, fuzzy=options.fuzzy)
    with tqdm(total=len(pairs), unit="entry", disable=None if len(pairs) >= _LONG else True) as bar:
        measure(pairs, target, golden, mode, progress=lambda done: bar.update(done - bar.n))
    found = find_origins(pairs, list(golden.entries.values()))
    random = [origin for origin in found if origin.kind == "random"]
    origins = [origin for origin in found if origin.kind != "random"]
    comparison = Comparison(mode, pairs, origins if options.fuzzy else tell_uneven_calls(origins, pairs), random)
    judge(comparison, PROFILES[options.profile])
    return comparison


def _compare_one(target: Path, golden: Path, output: Path, options: Options, timestamp: str, suffix: str) -> Outcome:
    ours, theirs = read_dump(target), read_dump(golden)
    comparison = compare_dumps(ours, theirs, options)
    tables = write_tables(
        comparison, PROFILES[options.profile], output, timestamp,
        csv=options.csv, stack=options.stack, name_suffix=suffix,
    )  # fmt: skip
    files = [*tables, write_summary(comparison, output, timestamp, suffix)]
    # Where nothing was compared there is nothing to advise; 1.1.0 would say that all is well.
    if options.advice and any(row.matched for row in comparison.rows):
        files.append(write_advice(comparison, output, timestamp, suffix))
    return Outcome(suffix.removeprefix("_"), ours, theirs, comparison, files)


def _rank_pairs(target: Path, golden: Path, profile: str) -> list[tuple[str, Path, Path]]:
    """``(suffix of the report's name, target, golden)`` of each pair of ranks; one dump a side needs no suffix."""
    ours, theirs = find_dumps(target), find_dumps(golden)
    if len(ours) == len(theirs) == 1:
        return [("", next(iter(ours.values())), next(iter(theirs.values())))]
    common = [rank for rank in ours if rank in theirs]
    if not common:
        raise CompareError(
            f"no rank is in both: {target} has {', '.join(ours)}, {golden} has {', '.join(theirs)}; "
            "name one dump folder a side to compare these"
        )
    alone = [rank for rank in (*ours, *theirs) if rank not in common]
    if alone:
        logger.warning("only in one of the two, not compared: %s", ", ".join(alone))
    return [(f"_{rank}-{rank}" if profile == "v110" else f"_{rank}", ours[rank], theirs[rank]) for rank in common]
