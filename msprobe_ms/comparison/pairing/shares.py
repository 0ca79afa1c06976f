"""Measure how much of two dumps was paired: shares of modules and calls, names without a counterpart, what paired what.

A module counts once, however often it is called; calls are those of forward. Both are shares of the side that has more
of them. Where one side recorded no functions (levels mix and L0), only calls of modules count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.pairing.coverage import expected_alone, has_modules, unmatched_modules
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import FORWARD, parse_entry

#: Module or function of the target, of the golden, and what paired them.
Together = tuple[str, str, str]


@dataclass(frozen=True)
class Shares:
    """Parts of two dumps that were paired.

    ``modules``, ``calls``  how many of how many; None where a side recorded none
    ``target``, ``golden``  paths of the modules without a counterpart, by the side that has them
    """

    modules: tuple[int, int] | None
    calls: tuple[int, int] | None
    target: list[str]
    golden: list[str]


def shares_of(pairs: Sequence[Pair]) -> Shares:
    """Return the shares of modules and calls that were paired; what is rightly without a counterpart does not count."""
    both = [(pair.target, pair.golden) for pair in pairs if pair.target is not None and pair.golden is not None]
    paired = {_path(ours.name) for ours, _ in both if _is_module_call(ours)}
    paired_there = {_path(theirs.name) for _, theirs in both if _is_module_call(theirs)}
    alone, alone_there = unmatched_modules(pairs)
    ours = [path for path in dict.fromkeys(map(_path, alone)) if path not in paired]
    theirs = [path for path in dict.fromkeys(map(_path, alone_there)) if path not in paired_there]
    modules = (len(paired), len(paired) + max(len(ours), len(theirs))) if has_modules(pairs) else None
    return Shares(modules, _calls(pairs), ours, theirs)


def _calls(pairs: Sequence[Pair]) -> tuple[int, int] | None:
    """Forward calls with a counterpart, and all of the side that has more of them; None where there are none."""
    expected = expected_alone(pairs)
    calls = [(pair.target, pair.golden) for pair in pairs if any(map(_is_forward, (pair.target, pair.golden)))]
    counts = _is_forward if all(any(map(_is_function, side)) for side in zip(*calls, strict=True)) else _is_module_call
    both, alone = 0, [0, 0]
    for sides in calls:
        if None not in sides:
            both += counts(sides[0])
            continue
        for side, entry in enumerate(sides):
            alone[side] += entry is not None and counts(entry) and entry.name not in expected[side]
    total = both + max(alone)
    return (both, total) if total else None


def outermost(paths: Sequence[str]) -> list[str]:
    """Return the modules that no other of them encloses: once these have a counterpart, most inside them have one."""
    known = set(paths)
    return [path for path in paths if not any(path[:end] in known for end, sign in enumerate(path) if sign == ".")]


def paired_with(pairs: Iterable[Pair]) -> list[tuple[Together, int]]:
    """Return which module or function was paired with which and by what, each with its number of calls."""
    counts: Counter[Together] = Counter()
    for pair in pairs:
        if pair.target is not None and pair.golden is not None and _is_forward(pair.target):
            counts[_without_index(pair.target), _without_index(pair.golden), str(pair.how or "name")] += 1
    return list(counts.items())


def _path(entry: str) -> str:
    """The path of the module of an entry, of the root its class."""
    parsed = parse_entry(entry)
    return entry if parsed is None else parsed.name or parsed.class_name


def _is_forward(entry: Entry | None) -> bool:
    return entry is not None and entry.parsed is not None and entry.parsed.direction == FORWARD


def _is_module_call(entry: Entry | None) -> bool:
    return entry is not None and entry.parsed is not None and _is_forward(entry) and entry.parsed.is_module


def _is_function(entry: Entry | None) -> bool:
    return _is_forward(entry) and not _is_module_call(entry)


def _without_index(entry: Entry) -> str:
    parsed = entry.parsed
    if parsed is None:
        return entry.name
    return ".".join(filter(None, (parsed.prefix, parsed.name, parsed.class_name)))
