"""Find the rank that went wrong first, through the collectives that handed its error to the others.

A collective is one event for all ranks of its group: the k-th call of a group on one rank is the k-th on every other.
Replaying these events gives every moment of every rank a place in one order (Lamport, "Time, clocks, and the ordering
of events in a distributed system", 1978). Of the ranks whose first error is their own, the one at the earliest moment
is the first; a rank whose first error came out of a collective it had fed rightly was handed it.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from msprobe_ms.comparison.model import Comparison, Origin, Pair
from msprobe_ms.dump.dialects import COLLECTIVE_PREFIXES, JIT, PRIMITIVE
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import EntryName
from msprobe_ms.support.translation import tr, tr_join

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
    """Collectives of one rank, and where its first error stands among them.

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
    """Return the target's collectives and where its first error stands among them."""
    first = comparison.origins[0] if comparison.origins else None
    entries = (pair.target for pair in comparison.pairs)
    if first is None:
        return exchanges_among(entries, None, "", "")
    return exchanges_among(entries, _pair_of(first, comparison.pairs), first.state, first.target)


def exchanges_among(entries: Iterable[Entry | None], place: int | None, state: str, origin: str) -> Exchanges:
    """Return the collectives among ``entries``, in execution order, and where the rank's first error stands.

    ``place`` is its entry's number, None without an error; ``state`` is ``input`` or ``output``; ``origin`` its name.
    """
    groups: dict[str, int] = {}
    calls = array("I")
    before: int | None = None
    arriving = handed_by = ""
    for number, entry in enumerate(entries):
        call = collective_of(entry) if entry is not None else ""
        if number == place:
            before = len(calls)
            if call and state == "output":
                handed_by = entry.name if entry is not None else ""
            elif state == "input":
                handed_by = arriving
        if entry is None or not call:
            continue
        if call in _ARRIVE_LATER:
            arriving = entry.name
        if call not in _MESSAGES:
            calls.append(groups.setdefault(_group(entry), len(groups)))
    return Exchanges(list(groups), calls, before, origin, handed_by)


def collective_of(entry: Entry) -> str:
    """Return the function or the class of the primitive that exchanges tensors; "" for any other call."""
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


#: Ranks named in a sentence.
_SHOWN = 8

#: The k-th call of one process group.
Event = tuple[str, int]


@dataclass(frozen=True)
class FirstRank:
    """``ranks`` begin to differ by themselves at the earliest moment, at ``origin`` (of the first of them).

    ``collective`` is set where no rank does: all its members feed it rightly and get something else from it.
    """

    ranks: list[str] = field(default_factory=list)
    origin: str = ""
    collective: str = ""
    reason: str = ""


def first_rank(exchanges: Mapping[str, Exchanges]) -> FirstRank | None:
    """Find the first rank to diverge in one step, by the exchanges of every compared rank in rank order.

    Returns None where no rank diverges.
    """
    divergent = {rank: each for rank, each in exchanges.items() if each.before is not None}
    if not divergent:
        return None
    ranks = first_by_themselves(exchanges)
    if not ranks:
        return _by_collective(exchanges, divergent)
    origin = divergent[ranks[0]].origin
    return FirstRank(ranks, origin, "", _sentence(ranks, origin, exchanges, divergent))


def first_by_themselves(exchanges: Mapping[str, Exchanges]) -> list[str]:
    """Return the ranks that were handed no error and whose own began at the earliest moment."""
    moments = _moments(exchanges)
    own = {rank: moments[rank] for rank, each in exchanges.items() if each.before is not None and not each.handed_by}
    return [rank for rank, moment in own.items() if moment == min(own.values())]


def _sentence(
    ranks: list[str], origin: str, exchanges: Mapping[str, Exchanges], divergent: Mapping[str, Exchanges]
) -> str:
    handed = {rank: each.handed_by for rank, each in divergent.items() if each.handed_by}
    silent = not any(each.calls for each in exchanges.values())
    if len(ranks) == 1:
        text = tr("{ranks} differs first, by its own computation, at {origin}", ranks=ranks[0], origin=origin)
        if handed:
            through = next(iter(handed.values()))
            text += tr(
                "; {names_of} received the error through {through}", names_of=names_of(list(handed)), through=through
            )
        elif len(divergent) == 1:
            text += tr("; no other rank diverges")
    elif len(ranks) == len(exchanges):
        whose = tr("both ranks") if len(ranks) == 2 else tr("all {count} ranks", count=len(ranks))
        text = tr(
            "{whose} differ by their own computation, {where}", whose=whose, where=_where(ranks, origin, divergent)
        )
        text += tr(": the fault lies in what they share (code, weights, data)")
    else:
        text = tr(
            "{names_of} differ first, each by its own computation, {where}",
            names_of=names_of(ranks),
            where=_where(ranks, origin, divergent),
        )
    others = [rank for rank in divergent if rank not in ranks and rank not in handed]
    if others:
        text += tr("; by their own computation, but later, also {names_of}", names_of=names_of(others))
    if silent and len(divergent) > 1:
        text += tr(
            " (what ranks exchanged is unknown: no collective was recorded; levels L1 and mix record "
            "them between start and stop)"
        )
    return text


def _where(ranks: list[str], origin: str, divergent: Mapping[str, Exchanges]) -> str:
    alone = len({divergent[rank].origin for rank in ranks}) == 1
    return tr("at {origin}", origin=origin) if alone else tr("at {origin} and elsewhere", origin=origin)


def _by_collective(exchanges: Mapping[str, Exchanges], divergent: Mapping[str, Exchanges]) -> FirstRank:
    """Every rank was handed its error: the collective itself is wrong, or a rank is that was not compared."""
    handed_at: dict[Event, list[str]] = defaultdict(list)
    for rank, each in divergent.items():
        event = next(islice(_events(each), each.before, None), None)
        if event is not None:
            handed_at[event].append(rank)
    members = Counter(event for each in exchanges.values() for event in _events(each) if event in handed_at)
    for event, ranks in handed_at.items():
        if members[event] == len(ranks) > 1:
            name = divergent[ranks[0]].handed_by
            reason = tr(
                "{names_of} pass the same input to {name} as the golden and get another result: the "
                "collective itself differs (operation, group or scaling), or a rank of its group that "
                "was not compared",
                names_of=names_of(ranks),
                name=name,
            )
            return FirstRank([], "", name, reason)
    rank = next(iter(divergent))
    reason = tr(
        "every divergent rank received its error from another rank, {rank} through {handed_by}; "
        "the rank that computed it was not compared",
        rank=rank,
        handed_by=divergent[rank].handed_by,
    )
    return FirstRank([], "", divergent[rank].handed_by, reason)


def _moments(exchanges: Mapping[str, Exchanges]) -> dict[str, int]:
    """For each divergent rank the moment of the last collective before its first error; 0 before any."""
    members = Counter(event for each in exchanges.values() for event in _events(each))
    events = {rank: _events(each) for rank, each in exchanges.items()}
    clocks = dict.fromkeys(events, 0)
    done = dict.fromkeys(events, 0)
    moments: dict[str, int] = {}
    waiting: dict[Event, list[str]] = defaultdict(list)
    ready = deque(events)
    while ready or waiting:
        if not ready:
            # Ranks that do not agree on the order of their calls: let the first that waits go on, alone.
            ready.extend(_happen(next(iter(waiting)), waiting, clocks, done))
        rank = ready.popleft()
        if done[rank] == exchanges[rank].before:
            moments[rank] = clocks[rank]
        event = next(events[rank], None)
        if event is not None:
            waiting[event].append(rank)
            if len(waiting[event]) == members[event]:
                ready.extend(_happen(event, waiting, clocks, done))
    return moments


def _happen(event: Event, waiting: dict[Event, list[str]], clocks: dict[str, int], done: dict[str, int]) -> list[str]:
    ranks = waiting.pop(event)
    moment = 1 + max(clocks[rank] for rank in ranks)
    for rank in ranks:
        clocks[rank] = moment
        done[rank] += 1
    return ranks


def _events(exchanges: Exchanges) -> Iterator[Event]:
    counts: dict[int, int] = defaultdict(int)
    for group in exchanges.calls:
        yield exchanges.groups[group], counts[group]
        counts[group] += 1


def names_of(ranks: Sequence[str]) -> str:
    """Return names of ranks for a sentence: ``rank0, rank2 and rank3``."""
    shown = ranks if len(ranks) <= _SHOWN + 1 else [*ranks[:_SHOWN], tr("{count} more", count=len(ranks) - _SHOWN)]
    return shown[0] if len(shown) == 1 else tr("{first} and {last}", first=tr_join(", ", shown[:-1]), last=shown[-1])
