"""What an export shows: the calls of one dump and what flows between them, or those of two with what was judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msprobe_ms.comparison.export.edges import Edge, edges_of
from msprobe_ms.comparison.export.tree import Node, tree_of
from msprobe_ms.comparison.model import Comparison, Pair, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.reporting.profiles import own
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy, Side, Standing
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import is_fused, parse_entry, parts_named
from msprobe_ms.dump.reading.locate import Place

#: The results of rows that say it, the first that any row has.
_STANDINGS = (
    (Standing.ORIGIN, {own.ORIGIN}),
    (Standing.INHERITED, {own.INHERITED, own.DIFFERS, own.RANDOM}),
    (Standing.AGREES, {own.AGREES, own.NOT_JUDGED}),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a comparison says of a call.

    ``ratio``         the largest error ratio of its values: a deviation over its tolerance
    ``counterparts``  the numbers of the other side's nodes that it was compared with
    ``rows``          its values beside those of the counterparts
    ``side``          which side of the rows it is
    """

    standing: Standing
    ratio: float = 0.0
    how: PairedBy = PairedBy.NOTHING
    counterparts: Sequence[int] = ()
    rows: Sequence[Row] = ()
    side: Side = TARGET

    @property
    def reason(self) -> str:
        """Why it is what it is, of the first value that is."""
        wanted = next((results for standing, results in _STANDINGS if standing == self.standing), None)
        return next((row.reason for row in self.rows if wanted and row.result in wanted and row.reason), "")

    def rows_by_name(self) -> dict[str, Row]:
        """Return its rows by the names of its own values."""
        items = ((row.golden if self.side else row.target, row) for row in self.rows)
        return {item.name: row for item, row in items if item is not None}


@dataclass(frozen=True)
class Graph:
    """One dump: its nodes, the edges between them, and what was judged of each node, if anything was."""

    title: str
    dump: Dump
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    judged: dict[int, Judged] = field(default_factory=dict)


@dataclass(frozen=True)
class Topology:
    """One dump, or the two of a comparison, target first.

    ``place``   which step and rank it is; ``suffix`` tells it from others in names of files
    ``couples`` nodes of the target and those of the golden that they were compared with
    """

    graphs: Sequence[Graph]
    place: Place
    suffix: str = ""
    comparison: Comparison | None = None
    couples: Sequence[tuple[list[int], list[int]]] = ()


def topology_of_dump(dump: Dump, place: Place, suffix: str = "") -> Topology:
    """Return the topology of one dump alone."""
    nodes = tree_of(dump)
    return Topology([Graph("dump", dump, nodes, edges_of(nodes))], place, suffix)


def topology_of_comparison(
    target: Dump, golden: Dump, comparison: Comparison, place: Place, suffix: str = ""
) -> Topology:
    """Return the topology of both sides of a comparison that was judged by our own rules.

    Calls that were compared as one, as those of modules that the other side has fused, are nodes of their own here.
    """
    members = [_Members(target, TARGET, comparison.pairs), _Members(golden, GOLDEN, comparison.pairs)]
    judged: tuple[dict[int, Judged], dict[int, Judged]] = ({}, {})
    couples: list[tuple[list[int], list[int]]] = []
    for pair in comparison.pairs:
        both = members[TARGET].of(pair), members[GOLDEN].of(pair)
        standing, ratio = _standing(pair), max(map(error_ratio, pair.rows), default=0.0)
        if all(both):
            couples.append(both)
        for side in (TARGET, GOLDEN):
            found = Judged(standing, ratio, pair.how, both[side.other], pair.rows, side)
            for number in both[side]:
                # A call of a group may have a pair of its own, which says that it has no counterpart.
                if pair.matched or number not in judged[side]:
                    judged[side][number] = found
    graphs = []
    for dump, of_side, title in zip((target, golden), judged, ("target", "golden"), strict=True):
        nodes = tree_of(dump)
        graphs.append(Graph(title, dump, nodes, edges_of(nodes), of_side))
    return Topology(graphs, place, suffix, comparison, couples)


def _standing(pair: Pair) -> Standing:
    if not pair.matched:
        return Standing.UNMATCHED
    results = {row.result for row in pair.rows}
    return next((standing for standing, said in _STANDINGS if results & said), Standing.NOT_COMPARED)


class _Members:
    """Which calls of one dump, by their numbers, a pair is of."""

    def __init__(self, dump: Dump, side: Side, pairs: Sequence[Pair]) -> None:
        self._side = side
        self._numbers = {name: number for number, name in enumerate(dump.entries)}
        named = {entry.name for pair in pairs if (entry := self._entry(pair)) is not None}
        #: Calls that are in no pair by their own name, by path, direction and index: they were joined with others.
        self._joined: dict[tuple[str, str, int | None], int] = {}
        for name, number in self._numbers.items():
            if name not in named and (parsed := parse_entry(name)) is not None and parsed.is_module:
                self._joined[parsed.name, parsed.direction, parsed.index] = number

    def of(self, pair: Pair) -> list[int]:
        """The calls that a pair is of; several where they were compared as one."""
        entry = self._entry(pair)
        if entry is None:
            return []
        names = [entry.name] if pair.how != PairedBy.GROUP else [*dict.fromkeys([*self._grouped(pair), entry.name])]
        found = [number for name in names for number in self._calls(name)]
        return sorted(set(found))

    def _entry(self, pair: Pair) -> Entry | None:
        return pair.golden if self._side else pair.target

    def _grouped(self, pair: Pair) -> Iterator[str]:
        for row in pair.rows:
            item = row.golden if self._side else row.target
            if item is not None:
                yield item.entry

    def _calls(self, name: str) -> Iterator[int]:
        if name in self._numbers:
            yield self._numbers[name]
        elif (parsed := parse_entry(name)) is not None and is_fused(parsed.name):
            for part in parts_named(parsed.name):
                number = self._joined.get((part, parsed.direction, parsed.index))
                if number is not None:
                    yield number
