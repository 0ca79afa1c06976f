"""Containers that enclose what the other side computes outside: a projection in the attention here, behind it there.

What such containers give out, or take in, is not the same tensor. A layer whose weights agree is the proof; it holds
for all containers of these two classes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.model import Entry, ancestors

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: Class of the target's container and of the golden's.
_Classes = tuple[str, str]


class CallsAcrossBorders(Surveyed):
    """What a container gives out where the other side's encloses a later layer, and takes in where an earlier one.

    What is made of an input that is another tensor tells nothing either, but where the call outside agrees.
    """

    name: ClassVar[str] = "calls across borders"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        calls = [node for node in evidence.nodes if node.is_module_call and not _is_root(node)]
        if not calls:
            return
        borders = _Borders(evidence, calls)
        across: dict[tuple[_Classes, str], dict[Node, list[Node]]] = defaultdict(lambda: defaultdict(list))
        for node in filter(_holds_equal_weights, calls):
            for container, state in borders.crossed(node):
                across[_classes(container), state][container].append(node)
        if not across:
            return
        back = {
            node.context[0]: node for node in evidence.nodes if node.is_backward and node.is_module and node.context
        }
        number = Counter(map(_classes, calls))
        for node in calls:
            for state in ("input", "output"):
                found = across.get((_classes(node), state), {})
                # Where most of their kind enclose the same, one that does not holds a layer that is mistaken.
                if 2 * len(found) >= number[_classes(node)]:
                    outside = found.get(node, ())
                    self._let_pass(node, state == "input", outside)
                    if node in back:
                        self._let_pass(back[node], state == "output", [back[each] for each in outside if each in back])

    def _let_pass(self, node: Node, taken: bool, outside: Sequence[Node]) -> None:
        """Let pass what ``node`` gives out; where ``taken``, what it takes in, and what is made of that."""
        if not taken:
            for row in node.rows("output"):
                if not any(error_ratio(each) > 1 for each in _handed_on(row, outside)):
                    self.let_pass(row, node)
            return
        for row in node.rows("input"):
            self.let_pass(row, node)
        if not outside or any(each.ratio_out > 1 for each in outside):
            for row in node.rows("output"):
                self.let_pass(row, node)


def _handed_on(row: Row, calls: Sequence[Node]) -> Iterator[Row]:
    """What ``calls`` take in, where one side has it from ``row`` as it is: that is compared with its counterpart."""
    for call in calls:
        for each in call.rows("input"):
            if any((seen := fingerprint(row, side)) is not None and seen == fingerprint(each, side)
                   for side in (TARGET, GOLDEN)):  # fmt: skip
                yield each


class _Borders:
    """Which calls stand in which containers, on either side."""

    def __init__(self, evidence: Evidence, calls: Sequence[Node]) -> None:
        target = [pair.target for pair in evidence.pairs if pair.target is not None]
        golden = evidence.golden or [pair.golden for pair in evidence.pairs if pair.golden is not None]
        self._entries: tuple[Mapping[str, Entry], ...] = tuple(
            {entry.name: entry for entry in entries} for entries in (target, golden)
        )
        self._places = tuple({name: place for place, name in enumerate(entries)} for entries in self._entries)
        self._nodes: tuple[dict[str, Node], dict[str, Node]] = ({}, {})
        for node in calls:
            for side in (TARGET, GOLDEN):
                self._nodes[side][_name(node, side)] = node

    def crossed(self, node: Node) -> Iterator[tuple[Node, str]]:
        """Yield the containers that enclose a call on one side alone, and whether that touches input or output."""
        for side in (TARGET, GOLDEN):
            other = side.other
            around = set(ancestors(self._entries[other], _name(node, other)))
            for name in ancestors(self._entries[side], _name(node, side)):
                container = self._nodes[side].get(name)
                if container is not None and _name(container, other) not in around:
                    later = self._place(node, other) > self._place(container, other)
                    yield container, "output" if later else "input"

    def _place(self, node: Node, side: Side) -> int:
        return self._places[side].get(_name(node, side), -1)


def _name(node: Node, side: Side) -> str:
    entry = node.pair.target if side == TARGET else node.pair.golden
    return entry.name if entry is not None else ""


def _is_root(node: Node) -> bool:
    return node.parsed is not None and node.parsed.is_root


def _classes(node: Node) -> _Classes:
    golden = node.pair.golden.parsed if node.pair.golden is not None else None
    return (node.parsed.class_name if node.parsed else "", golden.class_name if golden else "")


def _holds_equal_weights(node: Node) -> bool:
    return any(_is_telling(row) and error_ratio(row) <= 1 for row in node.rows("parameters"))


def _is_telling(row: Row) -> bool:
    """Whether both sides have it, and it is no constant, as all layers begin with."""
    item = row.target
    return row.deviation is not None and item is not None and (item.maximum is None or item.maximum != item.minimum)
