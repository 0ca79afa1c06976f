"""Plan which dump of the target is compared with which of the golden: rank by rank, step by step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msprobe_ms.dump.reading.locate import Place, find_places
from msprobe_ms.support.errors import CompareError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

#: Places named in an error.
_SHOWN = 8


class DumpPair(NamedTuple):
    """Two dumps to compare. ``suffix`` distinguishes the names of their reports; "" where there is one pair."""

    place: Place
    suffix: str
    target: Path
    golden: Path


@dataclass(frozen=True)
class Plan:
    """The pairs in the order step, rank; and the places that only one side has."""

    pairs: list[DumpPair]
    only_target: list[Place]
    only_golden: list[Place]


def plan(
    target: Path,
    golden: Path,
    *,
    ranks: Collection[int] = (),
    steps: Collection[int] = (),
    profile: str = "",
) -> Plan:
    """Pair every rank and step of ``target`` with its counterpart; ``()`` is every rank, every step.

    One rank a side, or one step a side, pairs whatever its name. ``profile`` v110 names reports as 1.1.0 does.

    :raises MsprobeError: there is no dump, or none that both sides have
    """
    ours, theirs = _chosen(target, ranks, steps), _chosen(golden, ranks, steps)
    places = [*ours, *theirs]
    warn_absent("rank", ranks, [place.rank_number for place in places])
    warn_absent("step", steps, [place.step for place in places])
    aligned = _Alignment(ours, theirs)
    pairs = list(aligned.pairs())
    if not pairs:
        raise CompareError(
            tr(
                "no rank and step is in both: {target} has {shown}, {golden} has {other_shown}; name one "
                "dump folder a side to compare these",
                target=target,
                shown=_shown(ours),
                golden=golden,
                other_shown=_shown(theirs),
            )
        )
    _log_other_ranks(target, golden, pairs)
    several = len(pairs) > 1
    several_steps = len({mine.step for mine, _ in pairs}) > 1
    chosen = []
    for mine, other in sorted(pairs, key=lambda pair: _order(pair[0])):
        place = mine._replace(step=mine.step if several_steps else None)
        suffix = _suffix(place, other, profile) if several else ""
        chosen.append(DumpPair(mine, suffix, ours[mine], theirs[other]))
    mine_paired, other_paired = {mine for mine, _ in pairs}, {other for _, other in pairs}
    only_target = sorted((place for place in ours if place not in mine_paired), key=_order)
    only_golden = sorted((place for place in theirs if place not in other_paired), key=_order)
    if not several:  # the verdict over many says it itself
        for side, alone in ((tr("target"), only_target), (tr("golden"), only_golden)):
            if alone:
                logger.warning(tr("only in the {side}, not compared: {shown}", side=side, shown=_shown(alone)))
    return Plan(chosen, only_target, only_golden)


def warn_absent(kind: str, asked: Collection[int], found: Collection[int | None]) -> None:
    """Warn of the steps, or ranks, that were asked for and are in neither dump.

    None among ``found`` is a dump of which nothing tells its step.
    """
    absent = sorted({*asked} - {*found})
    if absent and None not in found:
        names = f"{kind} {absent[0]}" if len(absent) == 1 else f"{kind}s {_ranges(absent)}"
        logger.warning(tr("{names}: asked for, and in neither dump", names=names))


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in ascending order, as they are asked for: ``4-7,9``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def _log_other_ranks(target: Path, golden: Path, pairs: Collection[tuple[Place, Place]]) -> None:
    """One rank a side is compared whatever its number: that need not be what was meant."""
    for mine, other in pairs:
        if None not in (mine.rank_number, other.rank_number) and mine.rank_number != other.rank_number:
            logger.info(
                tr(
                    "{rank} of {target} is compared with {other_rank} of {golden}",
                    rank=mine.rank,
                    target=target,
                    other_rank=other.rank,
                    golden=golden,
                )
            )
            return


def _chosen(root: Path, ranks: Collection[int], steps: Collection[int]) -> dict[Place, Path]:
    """The places asked for; where nothing tells the step of a dump, the choice of steps does not concern it."""
    found = find_places(root)
    chosen = {
        place: path
        for place, path in found.items()
        if (not ranks or place.rank_number in ranks) and (not steps or place.step is None or place.step in steps)
    }
    if not chosen:
        raise CompareError(
            tr("{root}: no rank and step that was asked for: it has {shown}", root=root, shown=_shown(found))
        )
    return chosen


class _Alignment:
    """What makes two places the same one."""

    def __init__(self, ours: Collection[Place], theirs: Collection[Place]) -> None:
        self._sides = ours, theirs
        self._any_step = _single(place.step for place in ours) and _single(place.step for place in theirs)
        self._any_rank = _single(place.rank for place in ours) and _single(place.rank for place in theirs)
        self._nameless = [_single(place.rank for place in side if place.rank_number is None) for side in self._sides]

    def pairs(self) -> Iterator[tuple[Place, Place]]:
        ours, theirs = self._sides
        by_key = {self._key(place, 1): place for place in theirs}
        for mine in ours:
            if (other := by_key.get(self._key(mine, 0))) is not None:
                yield mine, other

    def _key(self, place: Place, side: int) -> object:
        number = place.rank_number
        # A process without a rank stands for the one rank there is, or for that of the other side.
        rank = "" if self._any_rank or (number is None and self._nameless[side]) else place.rank
        return (None if self._any_step else place.step), (rank if number is None else rank and number)


def _single(values: Iterable[object]) -> bool:
    return len(set(values)) == 1


def _suffix(place: Place, other: Place, profile: str) -> str:
    ranks = f"{place.rank}-{other.rank}" if profile == "v110" else place.rank
    parts = ("" if place.step is None else f"step{place.step}", ranks)
    return "".join(f"_{part}" for part in parts if part)


def _order(place: Place) -> tuple[int, int, str]:
    number = place.rank_number
    return place.step or 0, -1 if number is None else number, place.rank


def _shown(places: Collection[Place]) -> str:
    shown = [str(place) for place in sorted(places, key=_order)]
    return tr_list(shown[:_SHOWN]) + (f" … ({len(shown)})" if len(shown) > _SHOWN else "")
