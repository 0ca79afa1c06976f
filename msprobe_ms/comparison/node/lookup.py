"""Find the node a person names, by entry, item or module alone, and the calls its tensors come from and go to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint_of
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.dump.model import Dump, Entry, Item, ancestors
from msprobe_ms.dump.names import (
    BACKWARD,
    FORWARD,
    PARAMETERS_GRAD,
    EntryName,
    beginnings,
    is_fused,
    parse_entry,
    parts_named,
)
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr, tr_list

_NEAR = 5
_DIRECTIONS = (FORWARD, BACKWARD, PARAMETERS_GRAD)


@dataclass(frozen=True)
class Chosen:
    """One call with everything recorded of it.

    ``pairs``  its forward, backward and parameters_grad, as far as recorded; what was named alone where it is no call
    ``named``  the one of them the name means: the entry, or the forward
    ``row``    the row of the item that was named, None for an entry or a module
    ``others`` the further calls that the name means as well
    """

    pairs: list[Pair]
    named: Pair
    row: Row | None = None
    others: Sequence[str] = ()

    @property
    def rows(self) -> Iterator[Row]:
        return (row for pair in self.pairs for row in pair.rows)

    @property
    def differs(self) -> bool:
        return any(row.differs for row in ([self.row] if self.row is not None else self.rows))


def choose(name: str, pairs: list[Pair]) -> Chosen:
    """What ``name`` means: an entry or an item of either side, the target's first; a module's or function's name.

    Of several calls of a module the one that differs most is chosen.

    :raises UsageError: nothing has this name; names what is near
    """
    entries: dict[str, Pair] = {}
    for pair in pairs:
        if pair.target is not None:
            entries[pair.target.name] = pair
    for pair in pairs:
        if pair.golden is not None:
            entries.setdefault(pair.golden.name, pair)
    if name in entries:
        named = entries[name]
        return Chosen(_call(named, entries), named)
    if (found := _item(name, entries)) is not None:
        return Chosen([found[0]], *found)
    if joined := _joined(name, entries):
        return choose(joined, pairs)
    calls = _calls_named(name, pairs, entries)
    if not calls:
        raise UsageError(_unknown(name, entries))
    worst = max(calls, key=lambda call: max((error_ratio(row) for pair in call for row in pair.rows), default=0.0))
    return Chosen(worst, worst[0], None, [_name(call[0]) for call in calls if call is not worst])


def _joined(name: str, entries: dict[str, Pair]) -> str:
    """The same of all modules that the other side has fused with the one it names; "" where it has not."""
    own = next((own for begin in beginnings(name) if (own := parse_entry(begin)) and own.is_module), None)
    for entry in entries if own is not None else ():
        parsed = parse_entry(entry) if is_fused(entry) else None
        if own is not None and parsed is not None and own.name in parts_named(parsed.name):
            return str(replace(own, name=parsed.name)) + name[len(str(own)) :]
    return ""


def _item(name: str, entries: dict[str, Pair]) -> tuple[Pair, Row] | None:
    """The row of an item by its full name, the target's first."""
    entry = name
    while entry := entry.rpartition(".")[0]:
        if (pair := entries.get(entry)) is not None:
            for side in ("target", "golden"):
                for row in pair.rows:
                    item = getattr(row, side)
                    if item is not None and item.name == name:
                        return pair, row
    return None


def _call(pair: Pair, entries: dict[str, Pair]) -> list[Pair]:
    """``pair`` with what else is recorded of its call, in the order of ``_DIRECTIONS``."""
    parsed = _entry(pair).parsed
    if parsed is None or parsed.direction not in _DIRECTIONS:
        return [pair]
    found: list[Pair] = []
    for direction in _DIRECTIONS:
        other = pair if direction == parsed.direction else _in_direction(parsed, direction, entries)
        if other is not None and other not in found:
            found.append(other)
    return found


def _in_direction(parsed: EntryName, direction: str, entries: dict[str, Pair]) -> Pair | None:
    name = parsed.in_direction(direction)
    # Old dumps number no parameters_grad.
    bare = str(replace(name, index=None))
    return entries.get(str(name)) or (entries.get(bare) if direction == PARAMETERS_GRAD else None)


def _calls_named(name: str, pairs: list[Pair], entries: dict[str, Pair]) -> list[list[Pair]]:
    calls: list[list[Pair]] = []
    taken: set[int] = set()
    for side in ("target", "golden"):
        for pair in pairs:
            entry = getattr(pair, side)
            if entry is None or id(pair) in taken or name not in _short_names(entry):
                continue
            call = _call(pair, entries)
            taken.update(map(id, call))
            calls.append(call)
        if calls:
            break
    return calls


def _short_names(entry: Entry) -> list[str]:
    """What a person may call an entry, direction and index left out; the plainest first."""
    parsed = entry.parsed
    if parsed is None:
        return []
    if not parsed.is_module:
        whole = _dotted(parsed.prefix, parsed.name)
        return [whole, parsed.name, *([] if parsed.index is None else [f"{whole}.{parsed.index}"])]
    names = [parsed.name, *(parts_named(parsed.name) if is_fused(parsed.name) else ())]
    tails = [tail for name in names for tail in (name, _dotted(name, parsed.class_name)) if tail]
    return [*tails, *(_dotted(parsed.prefix, tail) for tail in tails)]


def _dotted(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _unknown(name: str, entries: dict[str, Pair]) -> str:
    shown = tr("--node {name}: neither dump has an entry, a value or a module of this name", name=repr(name[:200]))
    wanted = name.lower()
    shorts = [short for pair in entries.values() if (short := _short_names(_entry(pair)))]
    # Of each the plainest is told.
    near = [*dict.fromkeys(short[0] for short in shorts if any(wanted in each.lower() for each in short))][:_NEAR]
    names = dict.fromkeys([*(short[0] for short in shorts), *entries])
    near = near or get_close_matches(name, names, n=_NEAR, cutoff=0.6)
    return (
        tr("{shown}; near are {near}", shown=shown, near=tr_list(near))
        if near
        else tr("{shown}; the names are the report's first columns", shown=shown)
    )


def _entry(pair: Pair) -> Entry:
    entry = pair.target or pair.golden
    assert entry is not None
    return entry


def _name(pair: Pair) -> str:
    return _entry(pair).name


class Neighbours:
    """Producers and consumers of some tensors of a dump, found by their figures, as it does not record them."""

    def __init__(self, dump: Dump, items: Iterable[Item]) -> None:
        self._dump = dump
        wanted = {key for item in items if (key := fingerprint_of(item)) is not None}
        self._order: dict[str, int] = {}
        #: Fingerprint → where it was given out, and where taken in: order of the entry, item.
        self._made: dict[Fingerprint, list[tuple[int, Item]]] = defaultdict(list)
        self._used: dict[Fingerprint, list[tuple[int, Item]]] = defaultdict(list)
        for order, entry in enumerate(dump.entries.values() if wanted else ()):
            self._order[entry.name] = order
            for item in entry.items:
                if item.state in ("input", "output") and (key := fingerprint_of(item)) in wanted and key is not None:
                    (self._used if item.state == "input" else self._made)[key].append((order, item))

    def producer(self, item: Item) -> Item | None:
        """The output that ``item`` was, of the nearest call before its own; None where none is recorded or it is
        constant, so that its figures tell nothing."""
        key, place = fingerprint_of(item), self._order.get(item.entry)
        if key is None or place is None:
            return None
        for order, made in reversed(self._made.get(key, ())):
            if order < place and item.entry not in ancestors(self._dump.entries, made.entry):
                return made
        return None

    def consumers(self, item: Item) -> list[Item]:
        """The inputs that ``item`` became, in execution order; of calls inside one another only the outermost."""
        key, place = fingerprint_of(item), self._order.get(item.entry)
        if key is None or place is None:
            return []
        by_entry: dict[str, Item] = {}
        for order, used in self._used.get(key, ()):
            if order > place:
                by_entry.setdefault(used.entry, used)
        own = set(ancestors(self._dump.entries, item.entry))
        return [
            user
            for name, user in by_entry.items()
            if name not in own and by_entry.keys().isdisjoint(ancestors(self._dump.entries, name))
        ]
