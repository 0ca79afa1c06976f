"""What one rank exchanged with others, and whether its first error is its own or was handed to it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from msprobe_ms.comparison.model import Comparison, Origin, Pair
from msprobe_ms.dump.dialects import COLLECTIVE_PREFIXES, JIT, PRIMITIVE
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import EntryName

#: Primitives that do, by class.
_PRIMITIVES = frozenset(
    {
        "AllGather", "AllGatherV", "AllReduce", "AllToAll", "AllToAllV", "AlltoAll", "AlltoAllV", "Barrier",
        "Broadcast", "CollectiveGather", "CollectiveScatter", "NeighborExchange", "NeighborExchangeV2", "Receive",
        "Reduce", "ReduceScatter", "ReduceScatterV", "Send",
    }
)  # fmt: skip
#: Messages between two ranks: none of a group's common calls.
_MESSAGES = frozenset({"send", "recv", "isend", "irecv", "batch_isend_irecv", "Send", "Receive"})
#: Messages under way whose tensor is first seen where it is used.
_ARRIVE_LATER = frozenset({"irecv", "batch_isend_irecv"})


@dataclass(frozen=True)
class Exchanges:
    """What is to be known of one rank to tell which was first.

    ``groups``   the process groups it took part in
    ``calls``    one number a collective of the rank, in execution order: the place of its group in ``groups``
    ``before``   how many of them had run when the first error began; None where there is none
    ``origin``   the item or entry where that was
    ``handed_by``  the entry that handed the error to this rank, "" where the rank computed it itself
    """

    groups: Sequence[str] = ()
    calls: array[int] = field(default_factory=lambda: array("I"))
    before: int | None = None
    origin: str = ""
    handed_by: str = ""


def exchanges_of(comparison: Comparison) -> Exchanges:
    """The target's collectives and where its first error stands among them."""
    first = comparison.origins[0] if comparison.origins else None
    place = _pair_of(first, comparison.pairs) if first is not None else None
    groups: dict[str, int] = {}
    calls = array("I")
    before: int | None = None
    arriving = handed_by = ""
    for number, pair in enumerate(comparison.pairs):
        entry = pair.target
        call = _called(entry) if entry is not None else ""
        if number == place and first is not None:
            before = len(calls)
            if call and first.state == "output":
                handed_by = pair.target.name if pair.target is not None else ""
            elif first.state == "input":
                handed_by = arriving
        if entry is None or not call:
            continue
        if call in _ARRIVE_LATER:
            arriving = entry.name
        if call not in _MESSAGES:
            calls.append(groups.setdefault(_group(entry), len(groups)))
    return Exchanges(list(groups), calls, before, first.target if first is not None else "", handed_by)


def _called(entry: Entry) -> str:
    """The name of the function or the class of the primitive that exchanges tensors; "" for any other call."""
    parsed: EntryName | None = entry.parsed
    if parsed is None:
        return ""
    last = parsed.name.rpartition(".")[2]
    if parsed.prefix in COLLECTIVE_PREFIXES or (parsed.prefix == PRIMITIVE and last in _PRIMITIVES):
        return last
    # Compiled functions are known by the group they were given.
    return last if parsed.prefix == JIT and _group(entry) else ""


def _group(entry: Entry) -> str:
    """The process group as it was recorded; "" where it was not, which stands for all ranks."""
    for item in entry.items:
        if item.keyword and item.path == ("group",):
            return str(item.maximum) if item.kind == "value" and isinstance(item.maximum, str) else ""
    return ""


def _pair_of(origin: Origin, pairs: Sequence[Pair]) -> int | None:
    """The number of the pair that the origin's item belongs to: of the longest name that it begins with."""
    wanted = {origin.target[:end] for end, sign in enumerate(origin.target) if sign == "."} | {origin.target}
    numbers = [
        (len(pair.target.name), number)
        for number, pair in enumerate(pairs)
        if pair.target is not None and pair.target.name in wanted
    ]
    return max(numbers)[1] if numbers else None
