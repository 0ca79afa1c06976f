"""Names called more often on one side: paired call by call, whatever follows the call too many stands beside another.

The pairing cannot know which call is the surplus; fuzzy matching looks at what happened around it. So an origin at such
a name may be no error at all, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from msprobe_ms.comparison.model import Origin, Pair
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import DEBUG, FORWARD, EntryName, beginnings

#: What pairs calls otherwise than by their number.
_FOUND_THEIR_OWN = (PairedBy.DATA, PairedBy.API, PairedBy.SCOPE, PairedBy.GROUP)

#: A name of a call without its index, and the direction in which its calls are counted.
Name = tuple[str, str, str, str]


def note_shifted_calls(origins: Sequence[Origin], pairs: Sequence[Pair]) -> list[Origin]:
    """Return the origins; where a name is called another number of times on the other side the reason says so."""
    wanted = {origin.target for origin in origins}
    if not origins:
        return []
    entries = {beginning for name in wanted for beginning in beginnings(name)}
    places: dict[str, Pair] = {}
    for pair in pairs:
        if pair.target is not None and pair.target.name in entries:
            places.update((row.target.name, pair) for row in pair.rows if row.target and row.target.name in wanted)
    ours, theirs = _counts(pair.target for pair in pairs), _counts(pair.golden for pair in pairs)
    shifted = {
        _name(pair.target.parsed, pair.target.parsed.direction)
        for pair in pairs
        if pair.target and pair.golden and pair.target.parsed and pair.golden.parsed
        and (pair.target.parsed.index or 0) != (pair.golden.parsed.index or 0)
    }  # fmt: skip
    told = []
    for origin in origins:
        place = places.get(origin.target)
        mine = place.target.parsed if place and place.target else None
        twin = place.golden.parsed if place and place.golden else None
        # A parameter is the same at every call.
        if mine and twin and mine.direction != DEBUG and origin.state in ("input", "output"):
            # A dump of backwards alone has no forward to count.
            direction = FORWARD if ours[_name(mine, FORWARD)] and theirs[_name(twin, FORWARD)] else mine.direction
            here, there = ours[_name(mine, direction)], theirs[_name(twin, direction)]
            # Calls that pair inside their module, or by a mapping, have found their own.
            found = place is not None and place.how in _FOUND_THEIR_OWN
            if here != there and not found and _name(mine, direction) not in shifted:
                origin = replace(origin, reason=f"{origin.reason}; {_sentence(mine, here, there)}")
        told.append(origin)
    return told


def _sentence(mine: EntryName, here: int, there: int) -> str:
    name = ".".join(part for part in (mine.prefix, mine.name, mine.class_name) if part)
    return (
        f"but {name} is called {_times(here)} in the target, {_times(there)} in the golden: from the first call too "
        "many on, each stands beside another call; try -fm, which tells by the calls around them"
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _counts(entries: Iterable[Entry | None]) -> Counter[Name]:
    return Counter(
        _name(entry.parsed, entry.parsed.direction)
        for entry in entries
        if entry is not None and entry.parsed is not None and not entry.recomputed
    )


def _name(parsed: EntryName, direction: str) -> Name:
    return parsed.prefix, parsed.name, parsed.class_name, direction
