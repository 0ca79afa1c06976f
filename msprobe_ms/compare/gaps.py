"""Calls without a twin right before a pair whose input differs: recorded, not compared, and so the first suspects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msprobe_ms.compare.model import Pair
from msprobe_ms.store.model import Entry


def calls_between(pair: Pair, pairs: Sequence[Pair], golden: Sequence[Entry]) -> str:
    """What stands unpaired between the last pair and this one: "3 in the target (the last …), 1 in the golden (…)".

    "" when nothing does. ``golden`` is the golden dump in execution order.
    """
    ours = [each.target for each in pairs if each.target is not None]
    paired = [each for each in pairs if each.matched]
    told = []
    for side, entry, entries, twins in (
        ("target", pair.target, ours, {each.target.name for each in paired if each.target is not None}),
        ("golden", pair.golden, golden, {each.golden.name for each in paired if each.golden is not None}),
    ):
        gap = list(_unpaired_before(entry, entries, twins)) if entry is not None else []
        if gap:
            told.append(f"{len(gap)} in the {side} ({'the last ' if len(gap) > 1 else ''}{gap[0].name})")
    return ", ".join(told)


def _unpaired_before(entry: Entry, entries: Sequence[Entry], twins: set[str]) -> Iterator[Entry]:
    """The unpaired calls in the direction of ``entry`` before it, the last first; calls inside it are none of them."""
    parents = {each.name: each.parent for each in entries}
    place = next((number for number, each in enumerate(entries) if each.name == entry.name), 0)
    for each in reversed(entries[:place]):
        if _direction(each) != _direction(entry) or _is_inside(each, entry, parents):
            continue
        if each.name in twins:
            return
        yield each


def _direction(entry: Entry) -> str:
    return entry.parsed.direction if entry.parsed is not None else ""


def _is_inside(entry: Entry, outer: Entry, parents: dict[str, str | None]) -> bool:
    name, seen = entry.parent, set[str]()
    while name is not None and name not in seen:
        if name == outer.name:
            return True
        seen.add(name)
        name = parents.get(name)
    return False
