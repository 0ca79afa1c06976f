"""Leave modules of one side out of kept dumps of healthy pairs, as other implementations lack them: all must be quiet.

python -m zoo ROOT --faults "" --modes statistics --keep
python -m zoo.other_modules ROOT [--pairs PAIR…] [--levels LEVEL…] [--draws N] [--layers]

A container is code of what is around it, an activation a function. Which side and which modules is drawn by the name of
the pair and the number of the draw: all modules of some classes, or some of all. Modules with parameters stay; with
--layers those of one class, or some of all that enclose nothing, are functions as well.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from random import Random

from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import FORWARD, PARAMETERS, PARAMETERS_GRAD
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from zoo.__main__ import SET_ASIDE
from zoo.jobs import STEPS, Job
from zoo.pair import names
from zoo.score import Case, told

#: How likely a class, or else a module, is left out; and of layers with parameters that one class is, or else a layer.
_CLASSES, _MODULES, _ONE_CLASS, _LAYERS = 0.35, 0.3, 0.6, 0.15


@dataclass(frozen=True)
class Draw:
    """``number``: of the draw; each pair and level has draws of its own. ``layers``: of those with parameters too."""

    pair: str
    level: str
    number: int
    layers: bool

    @property
    def case(self) -> Case:
        return Case(self.pair, "", self.level, "statistics", "statistics")


def without_some(dumps: Sequence[Dump], random: Random, *, layers: bool) -> list[Dump]:
    """The steps of one side without some modules, the same in each; what they enclosed is in what is around them."""
    gone = _drawn(dumps[0], random, layers=layers)
    return [_without(dump, gone) for dump in dumps]


def _drawn(dump: Dump, random: Random, *, layers: bool) -> set[str]:
    calls = [entry for entry in dump.entries.values() if entry.parsed is not None and entry.parsed.is_module]
    owners = {entry.parsed.name for entry in calls if entry.parsed is not None and _holds_parameters(entry)}
    around = {entry.parent for entry in dump.entries.values()}
    forward = [(entry.parsed, entry.name) for entry in calls if entry.parsed is not None]
    modules = {each.name: each.class_name for each, _ in forward if each.direction == FORWARD and each.name}
    enclosing = {each.name for each, name in forward if name in around}
    owning = {name: modules[name] for name in modules if name in owners - enclosing}
    gone = _drawn_layers(owning, random) if layers and owning else set()
    free = {name: class_name for name, class_name in modules.items() if name not in owners}
    if random.random() < 0.5:
        classes = {each for each in sorted(set(free.values())) if random.random() < _CLASSES}
        return gone | {name for name, class_name in free.items() if class_name in classes}
    return gone | {name for name in free if random.random() < _MODULES}


def _drawn_layers(owning: Mapping[str, str], random: Random) -> set[str]:
    if random.random() < _ONE_CLASS:
        one = random.choice(sorted(set(owning.values())))
        return {name for name, class_name in owning.items() if class_name == one}
    return {name for name in owning if random.random() < _LAYERS}


def _holds_parameters(entry: Entry) -> bool:
    of_parameters = entry.parsed is not None and entry.parsed.direction == PARAMETERS_GRAD
    return of_parameters or any(item.state == PARAMETERS for item in entry.items)


def _without(dump: Dump, gone: set[str]) -> Dump:
    lost = {
        name: entry.parent
        for name, entry in dump.entries.items()
        if entry.parsed is not None and entry.parsed.is_module and entry.parsed.name in gone
    }

    def around(name: str | None) -> str | None:
        while name in lost:
            name = lost[name]
        return name

    kept = {name: entry for name, entry in dump.entries.items() if name not in lost}
    return replace(dump, entries={name: replace(entry, parent=around(entry.parent)) for name, entry in kept.items()})


def told_of(draw: Draw, root: Path) -> list[str] | None:
    """What is told of a draw, a line each, [] for nothing; None where the pair was not recorded."""
    jobs = draw.case.target_job, draw.case.golden_job
    if not all(job.is_done(root) for job in jobs):
        return None
    sides = [[_read(job, root, step) for step in range(STEPS)] for job in jobs]
    random = Random(f"{draw.pair} {draw.level} {draw.number}{' layers' if draw.layers else ''}")
    side = random.randrange(2)
    sides[side] = without_some(sides[side], random, layers=draw.layers)
    return told(zip(*sides, strict=True))


def _read(job: Job, root: Path, step: int) -> Dump:
    (path,) = find_dumps(job.step(root, step)).values()
    return read_dump(path)


def main() -> int:
    aside = set(SET_ASIDE.read_text(encoding="utf-8").split())
    parser = argparse.ArgumentParser("python -m zoo.other_modules", description=__doc__)
    parser.add_argument("root", type=Path, help="folder of the dumps")
    parser.add_argument("--pairs", nargs="+", default=[name for name in names() if name not in aside], metavar="PAIR")
    parser.add_argument("--levels", nargs="+", default=["L0", "mix"])
    parser.add_argument("--draws", type=int, default=3, help="of each pair and level")
    parser.add_argument("--layers", action="store_true", help="leave out layers that hold parameters as well")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    places = product(options.pairs, options.levels, range(options.draws))
    draws = [Draw(*place, layers=options.layers) for place in places]
    quiet: dict[str, list[bool]] = defaultdict(list)
    with ProcessPoolExecutor() as pool:
        for draw, lines in zip(draws, pool.map(partial(told_of, root=options.root.absolute()), draws), strict=True):
            if lines is not None:
                quiet[draw.level].append(not lines)
            if lines:
                print(f"{draw.pair}/{draw.level}, draw {draw.number}", *lines, sep="\n", flush=True)
    for level, each in quiet.items():
        print(f"{level:4} quiet {sum(each)} of {len(each)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
