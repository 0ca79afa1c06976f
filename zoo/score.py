"""Compare the dumps of a pair and ask whether the first origin is what was planted."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from msprobe_ms.comparison.model import Comparison, Origin
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import BACKWARD, beginnings, is_fused, parse_entry, parts_named
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from torture.faults.alignment import called, module_pairs
from torture.faults.score import entry_of, module_of
from zoo.jobs import GOLDEN, TARGET, Job, facts, steps_of

#: What is compared: statistics with sketches, all elements, or the four statistics alone.
MODES = ("statistics", "tensor", "plain")
#: Words that say it is what trained the network, not the network.
_UPDATE = re.compile(r"learning rate|weight decay|optimizer|updates? of|bias correction|clip")


@dataclass(frozen=True, order=True)
class Case:
    """``fault``: as the catalogue writes it; "" for a healthy pair. ``task``: what is recorded for it."""

    pair: str
    fault: str
    level: str
    mode: str
    task: str = "tensor"

    @property
    def target_job(self) -> Job:
        return Job(self.pair, TARGET, self.fault, self.level, self.task)

    @property
    def golden_job(self) -> Job:
        return Job(self.pair, GOLDEN, "", self.level, self.task)

    def __str__(self) -> str:
        return f"{self.pair}/{self.fault or 'healthy'}/{self.level}/{self.mode}"


@dataclass
class Score:
    """What came of a case.

    ``hit``: the planted fault is named first, or a healthy pair is quiet in both steps. ``named``: it is among the
    origins. ``false_consistent``: a fault that changes values, and the verdict is CONSISTENT.
    """

    case: Case
    hit: bool
    named: bool
    false_consistent: bool
    verdicts: list[str]
    origins: list[list[tuple[str, str]]]
    seconds: float
    rows: int
    right: int = 0
    wrong: int = 0
    missed: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Step:
    target: Dump
    golden: Dump
    comparison: Comparison
    seconds: float
    quiet: bool = field(init=False)

    def __post_init__(self) -> None:
        self.quiet = self.comparison.verdict in ("consistent", "incomplete") and not self.comparison.origins


def cases(root: Path, pair: str, levels: list[str], modes: list[str]) -> Iterator[Case]:
    """Every case of a pair; all elements are recorded only where one of the modes compares them."""
    task = "tensor" if "tensor" in modes else "statistics"
    for fault in ("", *(each["fault"] for each in facts(root, pair)["faults"] or ())):
        for level in levels:
            for mode in modes:
                yield Case(pair, fault, level, mode, task)


def score(case: Case, root: Path) -> Score:
    """Compare both steps, the modules aligned automatically."""
    about = facts(root, case.pair)
    fault = next((each for each in about["faults"] or () if each["fault"] == case.fault), None)
    steps = [_compare(case, root, number) for number in range(steps_of(case.target_job, root))]
    verdicts = [str(step.comparison.verdict) for step in steps]
    origins = [[(each.target, each.reason) for each in step.comparison.origins[:8]] for step in steps]
    seconds, rows = sum(step.seconds for step in steps), sum(1 for step in steps for _ in step.comparison.rows)
    if fault is None:
        hit = all(step.quiet for step in steps)
        right, wrong, missed = _alignment(steps[0], about["parameters"])
        return Score(case, hit, hit, False, verdicts, origins, seconds, rows, right, wrong, missed)
    shown = next((step for step in steps if not step.quiet), steps[-1])
    judged = [_is_planted(origin, fault, shown) for origin in shown.comparison.origins]
    if fault["seen"] == "update":
        judged = judged or [bool(_UPDATE.search(shown.comparison.growth))]
    consistent = all(verdict == "consistent" for verdict in verdicts)
    return Score(case, bool(judged) and judged[0], any(judged), consistent, verdicts, origins, seconds, rows)


def told(steps: Iterable[tuple[Dump, Dump]]) -> list[str]:
    """What is told of healthy steps, each a target and a golden, a line each; [] where all are quiet."""
    lines = []
    for step, sides in enumerate(steps):
        comparison = compare_dumps(*sides, Options(align=True), one_of_many=True)
        if comparison.origins or comparison.verdict == "divergent":
            lines.append(f"step {step}: {comparison.verdict}")
            lines += [f"    {origin.target}: {origin.reason}" for origin in comparison.origins[:3]]
    return lines


def _compare(case: Case, root: Path, number: int) -> _Step:
    jobs, plain = (case.target_job, case.golden_job), case.mode == "plain"
    mode = "statistics" if plain else case.mode
    target, golden = (replace(_read(job.step(root, number), sketches=not plain), mode=mode) for job in jobs)
    began = time.perf_counter()
    comparison = compare_dumps(target, golden, Options(align=True), one_of_many=True)
    return _Step(target, golden, comparison, time.perf_counter() - began)


@lru_cache(maxsize=4)
def _read(step: Path, *, sketches: bool) -> Dump:
    (path,) = find_dumps(step).values()
    return read_dump(path, sketches=sketches)


def _is_planted(origin: Origin, fault: dict[str, Any], step: _Step) -> bool:
    """Whether an origin is what was planted."""
    place, seen = fault["place"], fault["seen"]
    entry = entry_of(origin.target, step.target)
    module = module_of(entry, step.target) if entry is not None else _fused_module(origin.target)
    if seen == "module":
        # Layers that are one on the other side have the name of all, `attn.q + k + v`, which tells what holds them too.
        parts = _parts(module) if module is not None else []
        return module == place or place in parts or any(part.startswith(f"{place}.") for part in parts)
    if seen == "inside":
        around = place + "."
        return module is not None and any(
            each == place or each.startswith(around) for each in (module, *_parts(module))
        )
    if seen == "parameter":
        holder = place.rpartition(".")[0]
        parts = [holder, *([place] if place else [])]
        return module is not None and any(part in (module, *_parts(module)) for part in parts)
    if seen == "weights":
        return origin.state in ("parameters", "weights") or "checkpoint" in origin.reason
    if seen == "data":
        return origin.state == "input" and module is not None and module in ("", *fault["first"])
    if seen == "loss":
        if origin.state == "loss" or entry is None or entry.parsed is None:
            return origin.state == "loss"
        outside = not entry.parsed.is_module and module == ""
        return outside or (entry.parsed.direction == BACKWARD and module in ("", *fault["last"]))
    return bool(_UPDATE.search(origin.reason))


def _fused_module(name: str) -> str | None:
    """The module of an entry that stands for several, which the dump itself does not hold."""
    parsed = next(filter(None, map(parse_entry, beginnings(name))), None)
    return parsed.name if parsed is not None and parsed.is_module else None


def _parts(module: str) -> list[str]:
    """What the layers of a fused module may be called; [] of any other."""
    return sorted(parts_named(module)) if is_fused(module) else []


def _alignment(step: _Step, parameters: dict[str, str]) -> tuple[int, int, int]:
    """Right, wrong and missed pairs of modules that own parameters."""
    truth = {ours.rpartition(".")[0]: theirs.rpartition(".")[0] for ours, theirs in parameters.items()}
    ours, theirs = called(step.target), called(step.golden)
    expected = {(mine, other) for mine, other in truth.items() if mine and mine in ours and other in theirs}
    pairs, known = module_pairs(step.comparison.pairs), {other for _, other in expected}
    # Layers that are one on the other side are paired with it together.
    every = [(_parts(mine) or [mine], _parts(other) or [other]) for mine, others in pairs.items() for other in others]
    found = {
        (mine, other)
        for ours, theirs in every
        for mine in ours if truth.get(mine)
        for other in theirs if other in known
        # A layer that uses the weights of those below it stands beside what does so with their counterparts.
        if not truth[mine].startswith(other + ".")
    }  # fmt: skip
    return len(found & expected), len(found - expected), len(expected - found)
