"""What lies between recorded calls: where a value differs on arrival, though all that was recorded before agrees."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile

import numpy as np

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint, norm_of
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.origin.nodes import Node, error_ratio, is_of_another_form
from msprobe_ms.comparison.origin.rows_of_nodes import RowsOfNodes
from msprobe_ms.comparison.row_fingerprints import number_of
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy, Side
from msprobe_ms.dump.model import Entry, ancestors
from msprobe_ms.dump.names import DEBUG, FORWARD
from msprobe_ms.support.translation import tr, tr_join

#: Part of the norm by which sums in double precision differ in another order of a tensor's elements.
_ORDER = 1e-9
#: Calls of one module that are looked at for the last one with an output of some shape.
_MOST_BEFORE = 1_000


class UnrecordedCode:
    """Calls without a counterpart, and code without calls, around the nodes of a comparison.

    ``golden``: the golden dump's entries in execution order; ``rows``: those of the nodes.
    """

    def __init__(self, rows: RowsOfNodes, pairs: Sequence[Pair], golden: Sequence[Entry]) -> None:
        self._nodes, self._rows, self._pairs, self._golden = rows.nodes, rows, pairs, golden

    def calls(self, pair: Pair) -> str:
        """What stands unpaired between the last pair and this one: "3 in the target (the last …), 1 in the golden (…)".

        "" when nothing does.
        """
        gaps = ((side, list(calls.unpaired_before(entry))) for side, entry, calls in self._sides(pair))
        return _told(gaps, tr("the last "))

    def stands_before(self, pair: Pair) -> bool:
        """Whether anything stands unpaired between the last pair and this one."""
        return any(True for _, entry, calls in self._sides(pair) for _ in calls.unpaired_before(entry))

    def runs_inside(self, pair: Pair) -> bool:
        """Whether anything ran unpaired inside this pair, inside no pair within it."""
        return any(calls.unpaired_inside(entry) for _, entry, calls in self._sides(pair))

    def calls_inside(self, pair: Pair) -> str:
        """What ran unpaired inside this pair, inside no pair within it: "3 in the target (the first …)"; "" if none."""
        inside = ((side, calls.unpaired_inside(entry)) for side, entry, calls in self._sides(pair))
        return _told(inside, tr("the first "))

    def _sides(self, pair: Pair) -> Iterator[tuple[str, Entry, _Calls]]:
        for side, entry, calls in (("target", pair.target, self._ours), ("golden", pair.golden, self._theirs)):
            if entry is not None:
                yield side, entry, calls

    def alone_before(self, pair: Pair) -> list[Entry]:
        """The target's calls that stand unpaired between the last pair and this one, the last first."""
        return list(self._ours.unpaired_before(pair.target)) if pair.target is not None else []

    def alone_before_golden(self, pair: Pair) -> list[Entry]:
        """The same of the golden's calls."""
        return list(self._theirs.unpaired_before(pair.golden)) if pair.golden is not None else []

    def alone_inside(self, pair: Pair) -> list[Entry]:
        """The target's calls that ran unpaired inside this pair, inside no pair within it, the last first."""
        return list(reversed(self._ours.unpaired_inside(pair.target))) if pair.target is not None else []

    def alone_around(self, pair: Pair) -> list[Entry]:
        """The target's unpaired calls that enclose this pair, up to the nearest that is paired, the inner first."""
        return self._ours.unpaired_around(pair.target) if pair.target is not None else []

    def places(self, node: Node, row: Row) -> str:
        """Between which recorded calls the code lies that made this input of ``node``, in words; "" if none ran before.

        A tensor of the same statistics on one side tells where that side has it from, untouched.
        """
        mine, theirs = self._source(node, row, TARGET), self._source(node, row, GOLDEN)
        if mine is not None and theirs is not None:
            if mine.row is theirs.row:
                return tr("both sides pass it unchanged from {text}", text=mine.text)
            if mine.text == theirs.text:
                return tr(
                    "the target takes {suffix} of {text}, the golden {other_suffix}",
                    suffix=mine.suffix,
                    text=mine.text,
                    other_suffix=theirs.suffix,
                )
            return tr(
                "the target takes it from {text}, the golden from {other_text}", text=mine.text, other_text=theirs.text
            )
        if mine is not None:
            return tr(
                "between {text} and {name}: the target passes it on unchanged, the golden does not",
                text=mine.text,
                name=node.name,
            )
        if theirs is not None:
            return tr(
                "between {text} and {name}: the golden passes it on unchanged, the target does not",
                text=theirs.text,
                name=node.name,
            )
        last = self._last_before(node, row)
        return tr("between {last} and {name}", last=last, name=node.name) if last else ""

    def made(self, node: Node, row: Row) -> str:
        """Where code that was not recorded made this input of ``node``; "" where it is a recorded tensor as it was."""
        if any(self._source(node, row, side) for side in (TARGET, GOLDEN)):
            return ""
        last = self._last_before(node, row)
        return tr("between {last} and {name}", last=last, name=node.name) if last else ""

    def handed_on(self, node: Node, row: Row) -> Row | None:
        """The last result before ``node`` that is this value of it on the golden side, but none on the target side.

        What a call gives out is handed on where a call inside it made it.
        """
        wanted = fingerprint(row, GOLDEN)
        made = self._made_by_golden.last_before(node, wanted, ()) if wanted is not None else None
        if made is None or wanted is None or (row.state != "input" and node not in made.ancestors()):
            return None
        if (source := _holds(made, "output", wanted, GOLDEN)) is None:
            return None
        known = fingerprint(source)
        is_held = any(_is_one_tensor(known, fingerprint(each)) for each in node.rows(row.state))
        return None if is_held else source

    def _source(self, node: Node, row: Row, side: Side) -> _Source | None:
        """The nearest earlier place at which ``side`` has this very tensor."""
        wanted = fingerprint(row, side)
        if wanted is None:
            return None
        above = sorted(node.ancestors(), key=lambda up: -up.order)
        given = next((up for up in above if _holds(up, "input", wanted, side) is not None), None)
        results = self._made_by_golden if side is GOLDEN else self._made_by_target
        made = results.last_before(node, wanted, above)
        if given is not None and (made is None or given.order > made.order):
            held = _holds(given, "input", wanted, side)
            return _Source(tr("the input of {name}", name=given.name), held, side) if held is not None else None
        held = _holds(made, "output", wanted, side) if made is not None else None
        return _Source(_with_state(made, held), held, side) if made is not None and held is not None else None

    def _last_before(self, node: Node, row: Row) -> str:
        """The call before it in the same module, the last with an output of this shape if any; else the module."""
        direction = _direction(node.pair.target)
        shape = row.target.shape if row.target else None
        last: Node | None = None
        before = bisect_left(self._nodes, node.order, key=lambda other: other.order)
        beside = (self._nodes[place] for place in range(before - 1, -1, -1))
        called = (other for other in beside if other.parent is node.parent)
        for other in islice((each for each in called if _direction(each.pair.target) == direction), _MOST_BEFORE):
            last = last or other
            if any(_shape(each) == shape for each in other.rows("output")):
                last = other
                break
        if last is not None:
            return _with_state(last, next(last.rows("output"), None))
        return tr("the input of {name}", name=node.parent.name) if node.parent is not None else ""

    @cached_property
    def _made_by_target(self) -> _Results:
        return _Results(self._rows, TARGET)

    @cached_property
    def _made_by_golden(self) -> _Results:
        return _Results(self._rows, GOLDEN)

    @cached_property
    def _ours(self) -> _Calls:
        alone = {pair.target.name for pair in self._pairs if pair.target is not None and not pair.matched}
        silent = {node.name for node in self._nodes if node.children and _tells_nothing(node)}
        return _Calls([pair.target for pair in self._pairs if pair.target is not None], alone, silent)

    @cached_property
    def _theirs(self) -> _Calls:
        counterparts = {pair.golden.name for pair in self._pairs if pair.golden is not None and pair.matched}
        # Of several golden calls that are one of the target the pair names the last.
        groups = (row.golden for pair in self._pairs if pair.how == PairedBy.GROUP for row in pair.rows)
        counterparts |= {item.entry for item in groups if item is not None}
        return _Calls(self._golden, {entry.name for entry in self._golden if entry.name not in counterparts})


@dataclass(frozen=True, eq=False)
class _Source:
    """Where a tensor comes from as it is: in words, and the row that holds it."""

    text: str
    row: Row
    side: Side

    @property
    def suffix(self) -> str:
        item = self.row.golden if self.side == GOLDEN else self.row.target
        return item.suffix if item is not None else ""


def _holds(node: Node, state: str, wanted: Fingerprint, side: Side) -> Row | None:
    """The first row of this state that holds the tensor on this side, and stands beside one of the other."""
    for row in node.pair.rows:
        if norm_of(row, side) == wanted[-1] and row.state == state and row.matched and fingerprint(row, side) == wanted:
            return row
    return None


def _is_one_tensor(one: Fingerprint | None, other: Fingerprint | None) -> bool:
    """Whether they are of one tensor, of which sums round otherwise where its elements lie in another order."""
    if one is None or other is None or one[:3] != other[:3]:
        return False
    apart = [
        abs(a - b) for a, b in zip(one[3:], other[3:], strict=True) if isinstance(a, float) and isinstance(b, float)
    ]
    return isinstance(one[-1], float) and len(apart) == 2 and max(apart) <= _ORDER * one[-1]


class _Results:
    """What the calls of one side gave out, to be found by norm: in arrays, for there may be millions."""

    def __init__(self, rows: RowsOfNodes, side: Side) -> None:
        self._nodes, self._side = rows.nodes, side
        results = rows.matched_in("output")
        norms = rows.norms(side, results)
        by_norm = np.argsort(norms, kind="stable")[: np.count_nonzero(~np.isnan(norms))]  # NaN stands last
        self._norms, self._places = norms[by_norm], rows.nodes_of(results)[by_norm]

    def last_before(self, node: Node, wanted: Fingerprint, above: Container[Node]) -> Node | None:
        """The last call before ``node`` that gave out this tensor, and is none of those ``above``."""
        norm = number_of(wanted[-1])
        begin, end = (int(np.searchsorted(self._norms, norm, side)) for side in ("left", "right"))
        before = bisect_left(self._nodes, node.order, key=lambda other: other.order)
        end = begin + int(np.searchsorted(self._places[begin:end], before))
        for number in range(end - 1, begin - 1, -1):
            other = self._nodes[self._places[number]]
            if other not in above and _holds(other, "output", wanted, self._side) is not None:
                return other
        return None


def _tells_nothing(node: Node) -> bool:
    """Whether a call gives out tensors, none of which stands beside one of its shape and can be compared."""
    results = [row for row in node.rows("output") if row.is_tensor(TARGET)]
    return bool(results) and all(row.deviation is None or is_of_another_form(row) for row in results)


def _with_state(node: Node, row: Row | None) -> str:
    return tr("{name} (agrees)", name=node.name) if row is None or error_ratio(row) <= 1 else node.name


def _shape(row: Row) -> object:
    return row.target.shape if row.target else None


class _Calls:
    """One dump's entries in execution order, and the names of those ``alone``, which have no counterpart.

    The model itself without a counterpart is left out: it is no call between others. ``silent`` are containers whose
    results cannot be compared, behind which what ran at their end is as near as if it stood there.
    """

    def __init__(self, all_entries: Sequence[Entry], alone: Set[str], silent: Set[str] = frozenset()) -> None:
        self._alone, self._silent = alone, silent
        self._entries = [
            each for each in all_entries if each.name not in alone or each.parsed is None or not each.parsed.is_root
        ]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {each.name: number for number, each in enumerate(self._entries)}

    @cached_property
    def _by_name(self) -> Mapping[str, Entry]:
        return {each.name: each for each in self._entries}

    def unpaired_before(self, entry: Entry) -> Iterator[Entry]:
        """The unpaired calls in the direction of ``entry`` before it, the last first; calls inside it are none."""
        for number in reversed(range(self._places.get(entry.name, 0))):
            each = self._entries[number]
            if _direction(each) != _direction(entry) or entry.name in ancestors(self._by_name, each.name):
                continue
            if each.name in self._silent:
                continue
            if each.name not in self._alone:
                return
            yield each

    def unpaired_inside(self, entry: Entry) -> Sequence[Entry]:
        """The unpaired calls whose nearest enclosing call with a counterpart is ``entry``, in execution order."""
        return self._alone_inside.get(entry.name, ())

    def unpaired_around(self, entry: Entry) -> list[Entry]:
        """The unpaired calls around ``entry`` up to the nearest that has a counterpart, the inner first."""
        above = takewhile(lambda name: not self._has_counterpart(name), ancestors(self._by_name, entry.name))
        return [self._by_name[name] for name in above if name in self._by_name]

    @cached_property
    def _alone_inside(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = defaultdict(list)
        for each in self._entries:
            if each.name in self._alone and each.parsed is not None:
                around = ancestors(self._by_name, each.name)
                if (outer := next(filter(self._has_counterpart, around), None)) is not None:
                    found[outer].append(each)
        return dict(found)

    def _has_counterpart(self, name: str) -> bool:
        return name in self._by_name and name not in self._alone


def _told(found: Iterable[tuple[str, Sequence[Entry]]], which: str) -> str:
    """Return "3 in the target (the first …), 1 in the golden (…)"; ``which`` says which of several is named."""
    return tr_join(
        ", ",
        [
            tr(
                "{count} in the {side} ({which}{name})",
                count=len(calls),
                side=tr(side),
                which=which if len(calls) > 1 else "",
                name=calls[0].name,
            )
            for side, calls in found
            if calls
        ],
    )


def _direction(entry: Entry | None) -> str:
    """Its direction; a value that is saved is computed in forward."""
    direction = entry.parsed.direction if entry is not None and entry.parsed is not None else ""
    return FORWARD if direction == DEBUG else direction
