"""A side that ends before the other does, as that of a step which an exception ended.

No dump says that its step was left by an exception. It shows: what the other side has more all comes after the last
call that both have, and the call around that one never ended, or of backward there is nothing, or most is missing.
A dump of calls that were chosen has gaps instead, unless they are the first ones: then the lines say so as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.pairing.coverage import expected_alone, has_modules, sides_without_values
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD

#: Calls without a twin before the end, as a share of those with one, up to which what is missing is the end alone:
#: wrappers and layers of a framework's own lie in between as well.
_FEW = 0.25


@dataclass(frozen=True)
class _Side:
    """One dump; ``alone``: the names of its entries without a twin, ``twins`` of others those of their twins."""

    name: str
    dump: Dump
    alone: set[str]
    twins: dict[str, str]
    modules_only: bool
    expected: set[str]

    def calls(self, direction: str) -> list[Entry]:
        """The entries that count: where both dumps recorded modules only those."""
        return [
            entry
            for entry in self.dump.entries.values()
            if entry.parsed is not None
            and entry.parsed.direction == direction
            and (entry.parsed.is_module or not self.modules_only)
            and not entry.recomputed
            and not (entry.name in self.alone and entry.name in self.expected)
        ]

    @property
    def has_gradients(self) -> bool:
        entries = self.dump.entries.values()
        return any(entry.parsed and entry.parsed.direction in (BACKWARD, PARAMETERS_GRAD) for entry in entries)


def early_ends(pairs: Sequence[Pair], target: Dump, golden: Dump) -> list[str]:
    """Which side ends early, in sentences: its last call, and what the other goes on with; none where both are whole.

    ``target`` and ``golden`` are the dumps as they were paired.
    """
    if not any(pair.matched for pair in pairs) or sides_without_values(pairs):
        return []
    if all(pair.matched for pair in pairs) or any(map(_holds_kernels, (target, golden))):
        return []
    modules_only, expected = has_modules(pairs), expected_alone(pairs)
    ours = {pair.target.name: pair.golden.name for pair in pairs if pair.target is not None and pair.golden is not None}
    mine = {pair.target.name for pair in pairs if pair.target is not None and pair.golden is None}
    others = {pair.golden.name for pair in pairs if pair.golden is not None and pair.target is None}
    theirs = {twin: name for name, twin in ours.items()}
    sides = (
        _Side("target", target, mine, ours, modules_only, expected[0]),
        _Side("golden", golden, others, theirs, modules_only, expected[1]),
    )
    return [line for side, other in (sides, sides[::-1]) for line in _lines(side, other)]


def _lines(side: _Side, other: _Side) -> Iterator[str]:
    none = other.has_gradients and not side.has_gradients
    end = _end(side, other, FORWARD)
    if end is not None and (none or _is_left_open(side, other, end.last) or len(end.missing) > end.compared):
        backward = f"; it has gradients, the {side.name} has none" if none else ""
        yield f"the {side.name} ends early: {end.told(other)}{backward}"
    elif none:
        yield f"the {side.name} ends before its backward: the {other.name} has gradients, the {side.name} has none"
    elif (end := _end(side, other, BACKWARD)) is not None and len(end.missing) > end.compared:
        yield f"the backward of the {side.name} ends early: {end.told(other)}"


@dataclass(frozen=True)
class _End:
    """``last``: of the calls of one side that the other has too; ``missing`` are those of the other behind it."""

    last: Entry
    missing: list[Entry]
    compared: int

    def told(self, other: _Side) -> str:
        more = f" and {len(self.missing) - 1} more calls" if len(self.missing) > 1 else ""
        return f"its last call is {self.last.name}, the {other.name} goes on with {self.missing[0].name}{more}"


def _end(side: _Side, other: _Side, direction: str) -> _End | None:
    """Where a side ends; None where what it lacks, or has of its own, is not at the end alone."""
    mine, theirs = side.calls(direction), other.calls(direction)
    places = [number for number, entry in enumerate(theirs) if entry.name not in other.alone]
    last = next((number for number in range(len(mine) - 1, -1, -1) if mine[number].name not in side.alone), None)
    if not places or last is None:
        return None
    missing = theirs[places[-1] + 1 :]
    gaps, own = places[-1] + 1 - len(places), len(mine) - 1 - last
    if not missing or gaps > _FEW * len(places) or own > _FEW * len(missing):
        return None
    return _End(mine[last], missing, len(places))


def _is_left_open(side: _Side, other: _Side, last: Entry) -> bool:
    """Whether the call around a side's last one began there and did not end, as it did on the other side."""
    twin = other.dump.entries.get(side.twins.get(last.name, ""))
    if twin is None or last.parent is None or last.parent in side.dump.entries:
        return False
    return twin.parent in other.alone


def _holds_kernels(dump: Dump) -> bool:
    """Kernels of forward and backward are another in other ages of a framework and modes of execution."""
    return any(entry.parsed is not None and entry.parsed.prefix == "Kernel" for entry in dump.entries.values())
