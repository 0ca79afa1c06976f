"""Calls right where the first origin shows, of which nothing or not all was compared: it may lie in them.

They are told after the origin itself, as what may have made the value that differs. Of a module without a counterpart
nothing was compared: the other side computes what it does in code of a container, or in functions that were not
recorded. One that takes in what agrees and gives out the very value that differs is all that the target computes
between the two: it comes first. One that gives out what it took in, or what a module inside it gave out, made nothing,
and one whose results are compared elsewhere and agree made no error. One around the call where the difference shows may
have made it before. Of layers that are one on the other side, statistics do not show the order of elements, nor a sum
of gradients.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint, fingerprint_of
from msprobe_ms.comparison.model import Origin, OriginKind
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, error_ratio, is_of_all_elements, worst
from msprobe_ms.comparison.origin.sentences import origin_at
from msprobe_ms.comparison.origin.stages import stage_of
from msprobe_ms.dump.model import Entry
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk

#: Calls of each sort that are told, those nearest to what differs.
_TOLD = 3
#: How much a call is told before what follows from it, in places of the order.
_BEFORE = 0.5
_ALONE = tr(
    "this call has no counterpart, and the first values that differ are computed after it: "
    "compare its settings and its code"
)
_MADE = tr(
    "this call has no counterpart; what it takes in agrees, what it gives out differs: "
    "compare its settings and its code"
)
_JOINED = tr(
    "it is fused with other layers on one side, so its result was not compared by element: look at their order"
)


class LoneCalls:
    """The modules that stand unpaired, or joined, between the last value that agrees and the first that does not."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def find(self, walk: Walk, found: Sequence[tuple[float, Origin]]) -> list[tuple[float, Origin]]:
        """Those before the input or the loss that the first origin is, or inside the call that it is the result of."""
        node = min(walk.origins, key=lambda each: walk.origins[each][0], default=None)
        if node is None or (node.is_save and not node.is_loss) or node.is_update:
            return []
        place, origin = walk.origins[node]
        if origin.kind not in (OriginKind.COMPUTATION, OriginKind.OUTSIDE):
            return []
        if any(other < place for other, _ in found) or (node.is_backward and _has_missing_gradient(found)):
            return []
        shown: Node | None = node
        beside = node.parent.children if node.parent is not None else ()
        if origin.state in RESULTS and not node.is_loss:
            shown, beside = next(filter(_takes_in_error, node.children), None), node.children
        elif origin.state != "input" and not node.is_loss:
            return []
        unrecorded = self._evidence.unrecorded
        calls = unrecorded.alone_before(shown.pair) if shown is not None else unrecorded.alone_inside(node.pair)
        modules = [entry for entry in calls if entry.is_module]
        agreeing = self._agreeing(modules)
        alone = self._makers(modules, agreeing)[:_TOLD]
        rows = node.rows(*RESULTS) if shown is None else shown.rows("input")
        # Operands that differ may stand crosswise.
        differing = {known for row in rows if error_ratio(row) > 1 and (known := fingerprint(row)) is not None}
        culprit = next((each for each in alone if _made_one(each, differing, agreeing)), None)
        if shown is not None:
            alone += [entry for entry in self._around(shown) if entry not in alone]
        joined = [each for each in _before(shown, beside) if _is_unseen(each)][:_TOLD]
        others = (*(_alone(each) for each in alone if each is not culprit), *map(_joined, joined))
        first = [] if culprit is None else [(place - _BEFORE, _alone(culprit, _MADE))]
        return [*first, *((place, each) for each in others)]

    def _around(self, node: Node) -> list[Entry]:
        """The module without a counterpart in which the call is, unless it was given what differs."""
        row = worst(node.rows("input"))
        around = [each for each in self._evidence.unrecorded.alone_around(node.pair) if each.is_module][:1]
        return [each for each in around if row is None or fingerprint(row) not in set(_taken(each))]

    def _agreeing(self, modules: Sequence[Entry]) -> set[Fingerprint]:
        """What these modules take in and give out and what agrees where it was compared."""
        wanted = {each for entry in modules for each in (*_results(entry), *_taken(entry))}
        if not wanted:  # as nearly always
            return set()
        rows = (row for pair in self._evidence.pairs if pair.matched for row in pair.rows)
        # What an origin explains agrees no more than the origin does.
        agree = (row for row in rows if row.deviation is not None and row.deviation <= (row.tolerance or 0.0))
        agreeing = map(fingerprint, agree)
        return {each for each in agreeing if each is not None and each in wanted}

    def _makers(self, modules: Sequence[Entry], agreeing: set[Fingerprint]) -> list[Entry]:
        """Those that give out what nothing inside them did and what agrees nowhere."""
        if not modules:  # as nearly always
            return []
        inside: dict[str | None, set[Fingerprint]] = defaultdict(set)
        for pair in self._evidence.pairs:
            if pair.target is not None and pair.target.parsed is not None and pair.target.parsed.is_module:
                inside[pair.target.parent].update(_results(pair.target))
        return [
            entry
            for entry in modules
            if (made := set(_results(entry)) - inside[entry.name] - set(_taken(entry))) and not made <= agreeing
        ]


def _made_one(entry: Entry, differing: set[Fingerprint], agreeing: set[Fingerprint]) -> bool:
    """Whether a call gives out one of the values that differ, and takes in nothing but what agrees."""
    taken = set(_taken(entry))
    made = differing.intersection(_results(entry)) - agreeing
    return bool(made) and bool(taken) and taken <= agreeing


def _has_missing_gradient(found: Sequence[tuple[float, Origin]]) -> bool:
    """Whether a branch ends that one side has, before which no gradient can be compared."""
    return any(origin.kind == OriginKind.MISSING_GRADIENT for _, origin in found)


def _results(entry: Entry) -> Iterator[Fingerprint]:
    return _prints(entry, "output")


def _taken(entry: Entry) -> Iterator[Fingerprint]:
    return _prints(entry, "input")


def _prints(entry: Entry, state: str) -> Iterator[Fingerprint]:
    return (known for item in entry.in_state(state) if (known := fingerprint_of(item)) is not None)


def _takes_in_error(node: Node) -> bool:
    row = worst(node.rows("input"))
    return row is not None and error_ratio(row) > 1


def _before(node: Node | None, beside: Sequence[Node]) -> list[Node]:
    """Those of the calls ``beside`` that ran before ``node``, the last first; all where there is none."""
    return [each for each in reversed(beside) if node is None or each.order < node.order]


def _is_unseen(node: Node) -> bool:
    """Whether it is joined, and gives out tensors that were not compared by all their elements."""
    results = [row for row in node.rows("output") if row.target is not None and row.target.kind == "tensor"]
    return node.pair.fused and any(row.matched and not is_of_all_elements(row) for row in results)


def _alone(entry: Entry, reason: str = _ALONE) -> Origin:
    item = next((item for item in entry.in_state("output") if item.kind == "tensor"), None)
    name, stage = item.name if item is not None else entry.name, stage_of(entry.name, OriginKind.NOT_COMPARED)
    return Origin(name, "", "output", reason, {}, OriginKind.NOT_COMPARED, stage=stage)


def _joined(node: Node) -> Origin:
    row = next(row for row in node.rows("output") if row.matched)
    return origin_at(row, _JOINED, kind=OriginKind.NOT_COMPARED)
