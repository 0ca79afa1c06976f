"""Record every pair, plant its faults, compare, and tell how often compare is right.

python -m zoo ROOT                              # pairs worked with; the others: --set-aside
python -m zoo ROOT --pairs resnet18_torchvision --misses
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from zoo import variation
from zoo.jobs import Job, facts
from zoo.pair import names
from zoo.score import MODES, Case, Score, cases, score

ROOT = Path(__file__).parents[1]
#: With these the work began, before there were others.
LOOKED_AT = ("llama_transformers", "resnet18_torchvision")
#: Drawn once, before anybody looked at a result of the others: see ``drawn``.
SET_ASIDE = Path(__file__).parent / "set_aside.txt"


def drawn(pairs: list[str]) -> list[str]:
    """Half of the pairs, by a seed: the draw that wrote ``set_aside.txt``, without those that were looked at before."""
    others = [pair for pair in pairs if pair not in LOOKED_AT]
    order = np.random.default_rng(20261122).permutation(len(others))
    return sorted(others[index] for index in order[: len(pairs) // 2])


def prepared(root: Path, pairs: list[str], *, healthy_alone: bool) -> list[str]:
    """The pairs that agree without the tool; those not checked yet are checked now."""
    agreed = {pair: facts(root, pair) for pair in pairs if (root / pair / "faults.json").exists()}
    missing = [pair for pair in pairs if pair not in agreed or (agreed[pair]["faults"] is None and not healthy_alone)]
    if missing:
        more = ["--healthy-alone"] if healthy_alone else []
        subprocess.run([sys.executable, "-m", "zoo.agree", str(root), *missing, *more], cwd=ROOT, check=False)
    return [pair for pair in pairs if (root / pair / "faults.json").exists()]


def record(root: Path, jobs: Iterable[Job]) -> None:
    """Record what is not recorded yet, in one process for each side."""
    missing = sorted({job for job in jobs if not job.is_done(root)})
    running = []
    for side in ("golden", "target"):
        if texts := [str(job) for job in missing if job.side == side]:
            command = [sys.executable, "-m", f"zoo.{side}_side", str(root), *texts]
            running.append(subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL))
    if any(process.wait() for process in running):
        print(f"{missing[0].pair}: a side could not be recorded", flush=True)


def scores_of(pair: str, options: argparse.Namespace) -> Iterator[Score]:
    """Record a pair, compare each of its cases; its dumps go unless they are to be kept."""
    wanted = [case for case in cases(options.root, pair, options.levels, options.modes) if _chosen(case, options)]
    record(options.root, [job for case in wanted for job in (case.target_job, case.golden_job)])
    root = options.root
    wanted = [case for case in wanted if case.target_job.is_done(root) and case.golden_job.is_done(root)]
    with ProcessPoolExecutor(options.processes, initializer=_quiet) as pool:
        yield from pool.map(partial(score, root=options.root), wanted)
    if not options.keep:
        for job in {job for case in wanted for job in (case.target_job, case.golden_job)}:
            shutil.rmtree(job.folder(options.root), ignore_errors=True)


def _chosen(case: Case, options: argparse.Namespace) -> bool:
    return options.faults is None or case.fault in options.faults


def _quiet() -> None:
    logging.disable(logging.WARNING)


def table(scores: list[Score]) -> Iterator[str]:
    """A line for each level and mode: healthy pairs quiet, faults first, faults named, false CONSISTENT."""
    groups: dict[tuple[str, str], list[Score]] = defaultdict(list)
    for each in scores:
        groups[each.case.level, each.case.mode].append(each)
    yield f"{'':16} {'healthy':>9} {'first':>9} {'named':>9} {'false CONSISTENT':>17} {'s a 1000 rows':>14}"
    for (level, mode), group in sorted(groups.items()):
        healthy = [each for each in group if not each.case.fault]
        faulty = [each for each in group if each.case.fault]
        cost = 1000 * sum(each.seconds for each in group) / max(1, sum(each.rows for each in group))
        quiet, first = _share([each.hit for each in healthy]), _share([each.hit for each in faulty])
        named, false = _share([each.named for each in faulty]), sum(each.false_consistent for each in faulty)
        yield f"{level + ' ' + mode:16} {quiet:>9} {first:>9} {named:>9} {false:>17} {cost:>14.3f}"
    healthy = [each for each in scores if not each.case.fault]
    right, wrong, missed = (sum(getattr(each, name) for each in healthy) for name in ("right", "wrong", "missed"))
    if right:
        yield f"layers with parameters: precision {right / (right + wrong):.3f}, recall {right / (right + missed):.3f}"


def _share(hits: list[bool]) -> str:
    return f"{sum(hits)} of {len(hits)}"


def misses(scores: Iterable[Score]) -> Iterator[str]:
    for each in scores:
        if not each.hit or each.false_consistent:
            false = " FALSE CONSISTENT" if each.false_consistent else ""
            yield f"{each.case}: {' '.join(each.verdicts)}{false}"
            for name, reason in [origin for step in each.origins for origin in step][:3]:
                yield f"    {name}: {reason[:200]}"


def main() -> int:
    parser = argparse.ArgumentParser("python -m zoo", description=__doc__)
    parser.add_argument("root", type=Path, help="folder of weights, faults, dumps and results")
    parser.add_argument("--pairs", nargs="+", choices=names(), metavar="PAIR")
    parser.add_argument("--set-aside", action="store_true", help="the pairs set aside: counted only, never listed")
    parser.add_argument("--faults", nargs="+", metavar="FAULT", help='kind@place; "" for healthy pairs')
    parser.add_argument("--levels", nargs="+", default=["L0", "mix"])
    parser.add_argument("--modes", nargs="+", default=list(MODES[:2]), choices=MODES)
    parser.add_argument("--misses", action="store_true", help="list what was missed")
    parser.add_argument("--keep", action="store_true", help="keep the dumps: the next run only compares")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="other weights, batches and faults for every pair")
    parser.add_argument("--optimizer", default="", choices=["", "other", *variation.OPTIMIZERS], help="for every pair")
    parser.add_argument("--late", action="store_true", help="plant faults before the second step")
    parser.add_argument("--small", action="store_true", help="plant faults that a training hardly feels")
    options = parser.parse_args()
    options.root = options.root.absolute()
    try:
        varied = variation.Variation(options.seed, options.optimizer, options.late, options.small)
        variation.note(varied, options.root)
    except variation.OtherVariation as error:
        parser.error(str(error))
    aside = set(SET_ASIDE.read_text(encoding="utf-8").split())
    chosen = options.pairs or [name for name in names() if (name in aside) == options.set_aside]
    scores: list[Score] = []
    for pair in prepared(options.root, chosen, healthy_alone=options.faults == [""]):
        found = list(scores_of(pair, options))
        scores += found
        hits = f"{sum(each.hit for each in found)} of {len(found)}"
        print(f"{pair}: {hits}", flush=True)
        if options.misses and not options.set_aside:
            print("\n".join(misses(found)), flush=True)
        results = options.root / ("set_aside.json" if options.set_aside else "scores.json")
        results.write_text(json.dumps([each.as_json() for each in scores], indent=1))
    print("\n".join(table(scores)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
