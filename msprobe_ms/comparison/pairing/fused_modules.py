"""Join the parts of modules that are one on one side and several on the other: ``qkv`` beside ``q, k, v``.

The side of the parts is compared as if it had one module of that name, ``attention.q + k + v``: to all that pairs
modules it is a module like any other.

Of each call of the parts an entry is made, whose tensors are theirs one behind another. The statistics of such a tensor
follow from those of its parts, so a fault in a fused module is found in statistics as well as in real data. Parts that
take in one tensor each hand back a share of its gradient: of their sum only real data tells.

Further parts may take in what the first ones made, as the projection behind an attention does: such an entry takes in
what the first parts do, and gives out what the last one does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.pairing.fused_tensors import JoinedTensors, Layout, Recipe, joining_axis
from msprobe_ms.comparison.pairing.fusions import Fusion, find_fusions
from msprobe_ms.comparison.pairing.modules import Module
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.statistics import element_count, no_gradient
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, JOINED, PARAMETERS_GRAD, parse_entry

#: How far apart the norms of one tensor may be that several modules took in, or that several make.
_SAME = 1e-3

#: Maximum, minimum, mean, norm.
_Statistics = tuple[Statistic, Statistic, Statistic, Statistic]
_NO_STATISTICS: _Statistics = (None, None, None, None)


def join_fused(target: Dump, golden: Dump, mappings: Mappings) -> tuple[Dump, Dump]:
    """Return the two dumps with the parts of fused modules joined; the dumps given are not changed."""
    ours, theirs = find_fusions(target, golden, mappings)
    joined = _Joining(target, golden, ours).run() if ours else target
    return joined, _Joining(golden, target, theirs).run() if theirs else golden


class FusedModules(NamedTuple):
    """The paths that were compared as one, how many values, and the names of those of which nothing was."""

    target: str
    golden: str
    values: int
    not_compared: list[str]


def compared_as_one(pairs: Sequence[Pair]) -> list[FusedModules]:
    """List what was fused on one side, of measured pairs."""
    found: dict[tuple[str, str], FusedModules] = {}
    for pair in pairs:
        if pair.fused and pair.target and pair.golden and pair.target.parsed and pair.golden.parsed:
            key = pair.target.parsed.name, pair.golden.parsed.name
            items = [(row, row.target or row.golden) for row in pair.rows]
            tensors = [(row, item) for row, item in items if item is not None and item.kind == "tensor"]
            lost = [item.name for row, item in tensors if row.deviation is None]
            known = found.get(key, FusedModules(*key, 0, []))
            found[key] = FusedModules(*key, known.values + len(tensors), known.not_compared + lost)
    return list(found.values())


class _Joining:
    """``parts`` is the dump that has the parts, ``whole`` the other."""

    def __init__(self, parts: Dump, whole: Dump, fusions: Sequence[Fusion]) -> None:
        self.parts, self.whole = parts, whole
        self.tensors = JoinedTensors(parts.tensors)
        self.fusions = {module: fusion for fusion in fusions for module in fusion.parts}
        self.layouts = {fusion.path: Layout(parts.tensors, whole.tensors) for fusion in fusions}

    def run(self) -> Dump:
        """A joined entry stands where the last of its parts stood; what was called in one of them, in it."""
        joined = {name: entry for entry, parts in self._joined() for name in parts}
        waiting = Counter(entry.name for entry in joined.values())
        entries: dict[str, Entry] = {}
        for name, entry in self.parts.entries.items():
            if (made := joined.get(name)) is not None:
                waiting[made.name] -= 1
                if not waiting[made.name]:
                    entries[made.name] = made
            elif (around := joined.get(entry.parent or "")) is not None:
                entries[name] = replace(entry, parent=around.name)
            else:
                entries[name] = entry
        return replace(self.parts, entries=entries, tensors=self.tensors)

    def _joined(self) -> Iterator[tuple[Entry, list[str]]]:
        """Joined entries and the names of their parts, of the calls that all parts and the whole made."""
        wholes = self._calls(self.whole, {fusion.whole for fusion in self.fusions.values()})
        calls: dict[tuple[str, str, int], tuple[Fusion, dict[Module, Entry]]] = {}
        for (module, direction, number), entry in self._calls(self.parts, set(self.fusions)).items():
            fusion = self.fusions[module]
            calls.setdefault((fusion.path, direction, number), (fusion, {}))[1][module] = entry
        begins = {
            (path, number): _beginning(fusion, found, wholes.get((fusion.whole, direction, number)))
            for (path, direction, number), (fusion, found) in calls.items()
            if direction == FORWARD
        }
        for (path, direction, number), (fusion, found) in calls.items():
            whole = wholes.get((fusion.whole, direction, number))
            begin = begins.get((path, number), len(fusion.parts))
            together = fusion.parts if direction in (FORWARD, BACKWARD) else fusion.parts[:begin]
            parts = {module: found[module] for module in together if module in found}
            first = [parts[module] for module in fusion.parts[:begin] if module in parts]
            # A gradient may not reach all parts; they are called all or they are none.
            if whole is not None and first and (direction == FORWARD or _hand_back_alike(first)):
                yield self._join(fusion, parts, begin, whole), [part.name for part in parts.values()]

    @staticmethod
    def _calls(dump: Dump, modules: set[Module]) -> dict[tuple[Module, str, int], Entry]:
        """The calls of these modules by direction and number."""
        return {
            ((parsed.name, parsed.class_name), parsed.direction, parsed.index or 0): entry
            for entry in dump.entries.values()
            if (parsed := entry.parsed) and parsed.is_module and (parsed.name, parsed.class_name) in modules
        }

    def _join(self, fusion: Fusion, parts: Mapping[Module, Entry], begin: int, whole: Entry) -> Entry:
        entries = list(parts.values())
        first = entries[0].parsed
        assert first is not None
        parsed = replace(first, name=fusion.path, class_name=fusion.parts[0][1])
        behind = fusion.parts[begin:]
        given = "output" if parsed.direction == FORWARD else "input"
        places: dict[tuple[str, tuple[str, ...]], list[Item]] = {}
        items: list[Item] = []
        for module, part in parts.items():
            for item in part.items:
                if not behind or (module not in behind and item.state != given):
                    places.setdefault((item.state, item.path), []).append(item)
                elif item.state not in ("input", "output"):
                    items.append(_by_itself(item, str(parsed)))
                elif module == behind[-1] and item.state == given:
                    items.append(item._replace(entry=str(parsed)))
        joined = [made for alike in places.values() for made in self._items(str(parsed), alike, whole, fusion, begin)]
        recomputed = all(part.recomputed for part in entries)
        parent = self._around(entries) if behind else entries[-1].parent
        return Entry(str(parsed), parsed, [*joined, *items], parent, entries[0].stack, recomputed)

    def _around(self, parts: Sequence[Entry]) -> str | None:
        """The entry that encloses all of them."""
        above = [list(self._enclosing(part)) for part in parts]
        return next((name for name in above[-1] if all(name in names for names in above)), None)

    def _enclosing(self, entry: Entry) -> Iterator[str]:
        seen = set[str]()
        while entry.parent and entry.parent not in seen:
            seen.add(entry.parent)
            yield entry.parent
            if (around := self.parts.entries.get(entry.parent)) is None:
                return
            entry = around

    def _items(self, entry: str, alike: list[Item], whole: Entry, fusion: Fusion, count: int) -> Iterator[Item]:
        """What the parts have in one place as one item; each by itself where they make nothing that the whole has."""
        first = alike[0]._replace(entry=entry)
        direction = whole.parsed.direction if whole.parsed else ""
        parts = [item for item in alike if item.kind == "tensor"]
        if not parts or (direction, first.state) == (FORWARD, "input"):
            yield first
        elif (direction, first.state) == (BACKWARD, "output"):
            # One that hands none back adds nothing; one that no gradient reached may be where it was lost.
            recipe = Recipe(parts) if len(alike) == count else None
            yield self._made(first, parts, recipe, parts[0].shape, _NO_STATISTICS)
        elif (found := _like(parts, whole) if len(parts) == count else None) is not None and not (
            direction == PARAMETERS_GRAD and _lacks_one(parts, found[0])
        ):
            other, axis = found
            layout = self.layouts[fusion.path]
            layout.learn(parts, other, axis)
            named = first._replace(path=other.path)
            yield self._made(named, parts, Recipe(parts, axis, layout), other.shape, _statistics(parts))
        else:
            yield from (_by_itself(item, entry) for item in alike)

    def _made(
        self,
        first: Item,
        parts: list[Item],
        recipe: Recipe | None,
        shape: tuple[int, ...] | str | None,
        statistics: _Statistics,
    ) -> Item:
        files = [item.data_name for item in parts]
        maximum, minimum, mean, norm = statistics
        dtype = max((item.dtype for item in parts), key=lambda dtype: parse_dtype(dtype).epsilon)
        item = parts[0]._replace(
            entry=first.entry, path=first.path, dtype=dtype, shape=shape,
            maximum=maximum, minimum=minimum, mean=mean, norm=norm,
            md5=None, sketch=None, data_name=None if recipe is None or None in files else JOINED.join(map(str, files)),
        )  # fmt: skip
        if recipe is not None:
            self.tensors.add(item, recipe)
        return item


def _like(parts: Sequence[Item], whole: Entry) -> tuple[Item, int] | None:
    """The whole's item that the parts make along an axis, rather the one of their name; None: there is none."""
    for item in sorted(whole.in_state(parts[0].state), key=lambda item: item.path != parts[0].path):
        if (axis := joining_axis([part.shape for part in parts], item.shape)) is not None:
            return item, axis
    return None


def _lacks_one(parts: list[Item], whole: Item) -> bool:
    """Whether no gradient reached one of the parts, where the whole's is more than that of the others."""
    given = [item.norm for item in parts if not no_gradient(item)]
    norms = _numbers([*given, whole.norm])
    return 0 < len(given) < len(parts) and bool(norms) and norms[-1] > (1 + _SAME) * math.hypot(*norms[:-1])


def _by_itself(item: Item, entry: str) -> Item:
    """A part's own, under the part's name."""
    parsed = parse_entry(item.entry)
    name = parsed.name.rpartition(".")[2] if parsed else item.entry
    return item._replace(entry=entry, path=(name, *item.path))


def _beginning(fusion: Fusion, found: Mapping[Module, Entry], whole: Entry | None) -> int:
    """How many of the parts take in what the first one does; 0 where they are not called as one.

    What others make of it has to end as the whole does.
    """
    if len(found) < len(fusion.parts):
        return 0
    parts = [found[module] for module in fusion.parts]
    taken = [[item for item in part.in_state("input") if item.kind == "tensor"] for part in parts]
    begin = next((place for place, each in enumerate(taken) if not _take_in_one(each, taken[0])), len(parts))
    if begin < len(parts) and (whole is None or _sizes(parts[-1]) != _sizes(whole)[:1]):
        return 0
    return begin


def _take_in_one(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Whether both are the same, as far as their statistics tell."""
    return len(one) == len(other) and all(
        mine.shape == theirs.shape and _near(mine.norm, theirs.norm) for mine, theirs in zip(one, other, strict=True)
    )


def _sizes(entry: Entry) -> list[int]:
    """The numbers of elements of what an entry gave out."""
    return [element_count(item) for item in entry.in_state("output") if item.kind == "tensor"]


def _hand_back_alike(parts: Sequence[Entry]) -> bool:
    """Whether the gradients of what they took in have one shape in each place, so that there is a sum of them."""
    shapes: dict[tuple[str, ...], set[object]] = {}
    for part in parts:
        for item in part.in_state("output"):
            if item.kind == "tensor":
                shapes.setdefault(item.path, set()).add(item.shape)
    return all(len(each) == 1 for each in shapes.values())


def _near(one: Statistic, other: Statistic) -> bool:
    if not (isinstance(one, float) and isinstance(other, float)) or one == other or one != one or other != other:
        return True
    return abs(one - other) <= _SAME * max(abs(one), abs(other))


def _statistics(parts: Sequence[Item]) -> _Statistics:
    """Of tensors one behind another: the extremes of their extremes, the mean of all elements, the root of squares."""
    names = ("maximum", "minimum", "mean", "norm")
    maxima, minima, means, norms = (_numbers([getattr(item, name) for item in parts]) for name in names)
    counts = list(map(element_count, parts))
    total = sum(counts)
    return (
        _extreme(max, maxima),
        _extreme(min, minima),
        sum(mean * count for mean, count in zip(means, counts, strict=True)) / total if means and total else None,
        math.hypot(*norms) if norms else None,
    )


def _extreme(of: Callable[[list[float]], float], values: list[float]) -> float | None:
    """NaN where there is one: no comparison with it tells anything."""
    return next((value for value in values if value != value), of(values)) if values else None


def _numbers(statistics: Sequence[Statistic]) -> list[float]:
    """[] where one of them is no number."""
    numbers = [statistic for statistic in statistics if isinstance(statistic, (int, float))]
    return numbers if len(numbers) == len(statistics) else []
