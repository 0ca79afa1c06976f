"""Measure how much of two dumps was paired: shares of modules and calls, names without a counterpart, what paired what.

A module counts once, however often it is called, also one that is compared by its outputs only; calls are those of
forward. Both are shares of the side that has more of them. Where one side recorded no functions (levels mix and L0),
only calls of modules count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msprobe_ms.comparison.model import Pair, Shares
from msprobe_ms.comparison.pairing.coverage import expected_alone, has_modules
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import FORWARD, is_update

#: Module or function of the target, of the golden, and what paired them.
Together = tuple[str, str, str]
#: The parts of a name without the number of the call.
Parts = tuple[str, ...]


def shares_of(pairs: Sequence[Pair]) -> Shares:
    """Return the shares of modules and calls that were paired.

    What is rightly without a counterpart does not count, but for modules that are compared by their outputs.
    """
    expected = expected_alone(pairs)
    paired, alone = (set[str](), set[str]()), (dict[str, None](), dict[str, None]())
    elsewhere = dict[str, None](), dict[str, None]()
    for pair in pairs:
        for side, entry in ((TARGET, pair.target), (GOLDEN, pair.golden)):
            if entry is None or not _is_module_call(entry):
                continue
            if pair.matched:
                paired[side].add(_path(entry))
            elif entry.name not in expected[side]:
                alone[side][_path(entry)] = None
            elif pair.how == PairedBy.ELSEWHERE and not (entry.parsed is not None and entry.parsed.is_root):
                elsewhere[side][_path(entry)] = None
    ours, theirs = ([path for path in alone[side] if path not in paired[side]] for side in (TARGET, GOLDEN))
    both = len(paired[TARGET])
    mine, others = (
        [path for path in elsewhere[side] if path not in paired[side] and path not in alone[side]]
        for side in (TARGET, GOLDEN)
    )
    total = both + max(len(ours) + len(mine), len(theirs) + len(others))
    modules = (both, total) if has_modules(pairs) else None
    calls, functions = _calls(pairs, expected)
    return Shares(modules, calls, ours, theirs, (mine, others), functions)


def _calls(
    pairs: Sequence[Pair], expected: tuple[set[str], set[str]]
) -> tuple[tuple[int, int] | None, tuple[list[str], list[str]]]:
    """Forward calls with a counterpart, and all of the side that has more of them; None where there are none.

    None, too, where one side alone recorded functions. And the names of functions that count and have none.
    """
    calls = [(pair.target, pair.golden) for pair in pairs if _is_forward(pair.target) or _is_forward(pair.golden)]
    sides = list(zip(*calls, strict=True))
    with_functions = [any(map(_is_function, side)) for side in sides]
    counts = _is_forward if all(with_functions) else _is_module_call
    both, alone, functions = 0, [0, 0], (list[str](), list[str]())
    for target, golden in calls:
        if target is not None and golden is not None:
            both += counts(target)
            continue
        for side, entry in ((TARGET, target), (GOLDEN, golden)):
            if entry is not None and counts(entry) and entry.name not in expected[side]:
                alone[side] += 1
                if not _is_module_call(entry):
                    functions[side].append(entry.name)
    total = both + max(alone)
    # Of modules beside modules and functions, the share of modules says it all.
    modules_alone = len(set(with_functions)) > 1 and all(any(map(_is_module_call, side)) for side in sides)
    return (both, total) if total and not modules_alone else None, functions


def outermost(paths: Sequence[str]) -> list[str]:
    """Return the modules that no other of them encloses: once these have a counterpart, most inside them have one."""
    known = set(paths)
    return [path for path in paths if not any(path[:end] in known for end, sign in enumerate(path) if sign == ".")]


def paired_with(pairs: Iterable[Pair]) -> list[tuple[Together, int]]:
    """Return which module or function was paired with which and by what, each with its number of calls."""
    counts = Counter(
        (_parts(pair.target), _parts(pair.golden), pair.how)
        for pair in pairs
        if pair.target is not None and pair.golden is not None and _is_forward(pair.target)
    )
    told: Counter[Together] = Counter()
    for (target, golden, how), count in counts.items():
        told[_joined(target), _joined(golden), str(how or "name")] += count
    return list(told.items())


def lone_values(pairs: Iterable[Pair]) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many values have no counterpart, by module or function, of the target and of the golden."""
    counts = Counter[str](), Counter[str]()
    for pair in pairs:
        for row in pair.rows:
            if not row.matched:
                side = TARGET if row.in_target else GOLDEN
                if (entry := (pair.target, pair.golden)[side]) is not None:
                    counts[side][_without_index(entry)] += 1
    return dict(counts[TARGET]), dict(counts[GOLDEN])


def _path(entry: Entry) -> str:
    """The path of the module of an entry, of the root its class."""
    return entry.name if entry.parsed is None else entry.parsed.name or entry.parsed.class_name


def _is_forward(entry: Entry | None) -> bool:
    parsed = entry.parsed if entry is not None else None
    return parsed is not None and parsed.direction == FORWARD and (parsed.is_module or not is_update(parsed))


def _is_module_call(entry: Entry | None) -> bool:
    parsed = entry.parsed if entry is not None else None
    return parsed is not None and parsed.is_module and parsed.direction == FORWARD


def _is_function(entry: Entry | None) -> bool:
    return _is_forward(entry) and not _is_module_call(entry)


def _without_index(entry: Entry) -> str:
    return _joined(_parts(entry))


def _parts(entry: Entry) -> Parts:
    parsed = entry.parsed
    return (entry.name,) if parsed is None else (parsed.prefix, parsed.name, parsed.class_name)


def _joined(parts: Parts) -> str:
    return ".".join(filter(None, parts))
