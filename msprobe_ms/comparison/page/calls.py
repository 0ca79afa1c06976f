"""The calls of a page: the pairs of entries in the order they ran, with what encloses them and where they stand."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Pair
from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import BACKWARD, DEBUG, FORWARD, PARAMETER, PARAMETERS_GRAD, beginnings, is_update
from msprobe_ms.page.columns import Codes, Columns, floats, rounded

#: Bits of ``call_flags``.
IN_TARGET, IN_GOLDEN, MODULE, BACKWARDS, GRADIENT, SAVED, UPDATE = (1 << bit for bit in range(7))
#: Frames shown of a call site.
_FRAMES = 12
#: Bits of the fraction of an error ratio: it is told in two digits.
_BITS = 8


class Calls:
    """``pairs`` as columns; ``places``: the number of a call by the name of its entry, the target's first."""

    def __init__(self, pairs: Sequence[Pair], *, stacks: bool = True) -> None:
        self.pairs = pairs
        self.stacks = stacks
        self.places: dict[str, int] = {}
        for side in ("target", "golden"):
            for number, pair in enumerate(pairs):
                entry: Entry | None = getattr(pair, side)
                if entry is not None:
                    self.places.setdefault(entry.name, number)

    def find(self, *names: str) -> int | None:
        """Return the number of the call of an entry or an item, by the first of these names that is known."""
        for name in names:
            for begin in beginnings(name):
                if (place := self.places.get(begin)) is not None:
                    return place
        return None

    def add_to(self, columns: Columns, starts: npt.NDArray[np.intp]) -> None:
        """Add the columns of calls; ``starts``: the number of the first row of each."""
        names: list[str] = []
        goldens: list[str | int | None] = []
        flags, parents = array("B"), array("I")
        hows = Codes("")
        how = array("B")
        for pair in self.pairs:
            entry = pair.target or pair.golden
            assert entry is not None
            golden = pair.golden.name if pair.golden is not None else None
            names.append(entry.name)
            goldens.append(0 if golden == entry.name else golden)
            flags.append(_flags(pair, entry))
            parents.append(self.places.get(entry.parent or "", -1) + 1)
            how.append(hows.code(str(pair.how)))
        columns.add_json("call_names", names)
        columns.add_json("call_goldens", goldens)
        columns.add("call_flags", np.frombuffer(flags, np.uint8))
        columns.add("call_parent", np.frombuffer(parents, np.uint32), delta=True)
        columns.add("call_how", np.frombuffer(how, np.uint8), dictionary="hows")
        columns.add_json("hows", hows.values)
        columns.add("call_rows", starts.astype(np.uint32), delta=True)
        columns.add("call_taken", rounded(floats([pair.taken for pair in self.pairs]), _BITS))
        columns.add("call_given", rounded(floats([pair.given for pair in self.pairs]), _BITS))
        self._add_stacks(columns)

    def _add_stacks(self, columns: Columns) -> None:
        frames, stacks = Codes(), Codes(())
        for side, name in (("target", "call_stack"), ("golden", "call_golden_stack")):
            codes = array("I")
            called: list[Entry | None] = [getattr(pair, side) for pair in self.pairs]
            wanted = any(entry is not None and _lacks_stack(entry) for entry in called)
            entries = {entry.name: entry for entry in called if entry is not None} if wanted else {}
            known: dict[tuple[str, ...], int] = {(): 0}
            for entry in called:
                stack = _stack(entry, entries) if self.stacks else ()
                code = known.get(stack)
                if code is None:
                    shown = (" ".join(frame.split()) for frame in outside_frameworks(stack)[:_FRAMES])
                    code = known[stack] = stacks.code(tuple(map(frames.code, shown)))
                codes.append(code)
            columns.add(name, np.frombuffer(codes, np.uint32), dictionary="stacks")
        columns.add_json("stacks", stacks.values)
        columns.add_json("frames", frames.values)


def _stack(entry: Entry | None, entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """The frames that made a call; of a backward call without any, those of its forward call."""
    if entry is not None and entry.parsed is not None and _lacks_stack(entry):
        entry = entries.get(str(entry.parsed.in_direction(FORWARD)))
    return entry.stack if entry is not None else ()


def _lacks_stack(entry: Entry) -> bool:
    return not entry.stack and entry.parsed is not None and entry.parsed.direction == BACKWARD


def _flags(pair: Pair, entry: Entry) -> int:
    flags = (IN_TARGET if pair.target is not None else 0) | (IN_GOLDEN if pair.golden is not None else 0)
    parsed = entry.parsed
    if parsed is None:
        return flags
    if parsed.is_module:
        flags |= MODULE
    if parsed.direction == BACKWARD:
        flags |= BACKWARDS
    elif parsed.direction == PARAMETERS_GRAD:
        flags |= BACKWARDS | GRADIENT
    elif parsed.direction == DEBUG or parsed.prefix == PARAMETER:
        flags |= SAVED
    return flags | UPDATE if is_update(parsed) else flags
