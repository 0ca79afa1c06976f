"""Apply a data mapping, full names of the target beside full names of the golden, of items or entries; or write one.

What is written is the pairing of a comparison: to be read, corrected and given back with ``-dm``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.names import BACKWARD, JOINED, is_function, parse_entry
from msprobe_ms.support.files import replacing
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, translated
from msprobe_ms.support.yaml_files import quoted

#: Target entries and golden entries that are each other together; one of the two is alone.
Group = tuple[tuple[str, ...], tuple[str, ...]]

#: Names listed in one warning before the rest is only counted.
_LISTED = 10


@dataclass
class DataPairs:
    """What a data mapping says of two given dumps.

    ``entries``   target entry → golden entry: named as such, or every tensor of it is mapped item by item
    ``groups``    several target entries that are one golden entry together, or one that is several
    ``items``     target item name → golden item, None for none: these rows, whatever the entries do
    ``alone``     target entries that nothing stands beside
    ``fallback``  target entry → golden entry of most of its mapped items, for an entry nothing else pairs
    """

    entries: dict[str, str] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    items: dict[str, Item | None] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)
    fallback: dict[str, str] = field(default_factory=dict)

    @property
    def placed(self) -> set[str]:
        """Names of the golden items that stand where the mapping says."""
        return {counterpart.name for counterpart in self.items.values() if counterpart is not None}


def resolve_data(rules: Mapping[str, str | None], target: Dump, golden: Dump) -> DataPairs:
    """Look the names of a data mapping up; names neither dump knows are warned about once and skipped."""
    if not rules:
        return DataPairs()
    found = _Resolving(target, golden)
    for name, golden_name in rules.items():
        found.add(name, golden_name)
    found.finish()
    return found.pairs


class _Resolving:
    """Rules on their way to pairs; items are looked up when the first rule speaks of one."""

    def __init__(self, target: Dump, golden: Dump) -> None:
        self.target, self.golden = target, golden
        self.pairs = DataPairs()
        self.unknown: list[str] = []
        self.refused: list[str] = []
        #: Golden entries named by rules → the target entries they stand beside.
        self.claimed: dict[str, list[str]] = {}
        self.claimed_items: set[str] = set()
        #: Entries mapped item by item → the golden entries of their items.
        self.mapped: dict[str, Counter[str]] = {}

    @cached_property
    def ours(self) -> dict[str, Item]:
        return _items_by_name(self.target)

    @cached_property
    def theirs(self) -> dict[str, Item]:
        return _items_by_name(self.golden)

    def add(self, name: str, golden_name: str | None) -> None:
        if name in self.target.entries:
            goldens = self._goldens(golden_name)
            if all(each in self.golden.entries for each in goldens):
                self._add_entry(name, goldens)
                return
        elif name in self.ours and (golden_name is None or golden_name in self.theirs):
            self._add_item(self.ours[name], self.theirs[golden_name] if golden_name is not None else None)
            return
        missing = _missing(name, "target", self.target, self.ours)
        for each in self._goldens(golden_name):
            missing += _missing(each, "golden", self.golden, self.theirs)
        self.unknown.extend(
            missing or [tr("{name}: {golden_name} (an entry beside an item)", name=name, golden_name=golden_name)]
        )

    def _goldens(self, name: str | None) -> list[str]:
        """The golden entries that a value names; a module made of several (see ``fused``) bears all their names."""
        return [] if name is None else [name] if name in self.golden.entries else name.split(JOINED)

    def _add_entry(self, name: str, goldens: list[str]) -> None:
        if not goldens:
            self.pairs.alone.add(name)
        elif any(each in self.claimed for each in goldens) and not self._joins(name, goldens):
            self.refused.append(f"{name}: {JOINED.join(goldens)}")
        elif len(goldens) > 1:
            self.claimed.update((each, []) for each in goldens)
            self.pairs.groups.append(((name,), _as_forward(goldens, self.golden)))
        else:
            self.claimed.setdefault(goldens[0], []).append(name)

    def _joins(self, name: str, goldens: list[str]) -> bool:
        """Whether a further target entry may be part of a golden one: calls of functions may, modules may not."""
        names = [*self.claimed[goldens[0]], name]
        return len(goldens) == 1 and len(names) > 1 and all(map(is_function, map(parse_entry, (*names, *goldens))))

    def _add_item(self, item: Item, counterpart: Item | None) -> None:
        if counterpart is not None and counterpart.name in self.claimed_items:
            self.refused.append(f"{item.name}: {counterpart.name}")
            return
        self.pairs.items[item.name] = counterpart
        self.mapped.setdefault(item.entry, Counter())
        if counterpart is not None:
            self.claimed_items.add(counterpart.name)
            self.mapped[item.entry][counterpart.entry] += 1

    def finish(self) -> None:
        for golden_name, names in self.claimed.items():
            if len(names) == 1:
                self.pairs.entries[names[0]] = golden_name
            elif names:
                self.pairs.groups.append((_as_forward(names, self.target), (golden_name,)))
        for entry, golden_entries in self.mapped.items():
            items = self.target.entries[entry].items
            whole = all(item.name in self.pairs.items for item in items if item.kind == "tensor")
            golden_entry = golden_entries.most_common(1)[0][0] if golden_entries else None
            if golden_entry is None:
                self.pairs.alone |= {entry} if whole else set()
            elif whole and entry not in self.pairs.entries and golden_entry not in self.claimed:
                self.claimed[golden_entry] = [entry]
                self.pairs.entries[entry] = golden_entry
            else:
                self.pairs.fallback[entry] = golden_entry
        if self.unknown:
            logger.warning(
                tr(
                    "data mapping: {count} names are not in the dump and skipped: {unknown}",
                    count=len(self.unknown),
                    unknown=listed(self.unknown, _LISTED),
                ),
            )
        if self.refused:
            logger.warning(
                tr(
                    "data mapping: the golden name is taken by an earlier line, skipped: {refused}",
                    refused=listed(self.refused, _LISTED),
                )
            )


def _as_forward(names: list[str], dump: Dump) -> tuple[str, ...]:
    """Entries in the order of their forward calls; backwards run in reverse."""
    order = {name: place for place, name in enumerate(dump.entries)}

    def place(name: str) -> int:
        parsed = parse_entry(name)
        return -order[name] if parsed is not None and parsed.direction == BACKWARD else order[name]

    return tuple(sorted(names, key=place))


def _items_by_name(dump: Dump) -> dict[str, Item]:
    """Items by full name, and by the file name of their tensor (1.1.0 named real data so: ``….kwargs.alpha``)."""
    found: dict[str, Item] = {}
    for entry in dump.entries.values():
        for item in entry.items:
            found.setdefault(item.name, item)
    for entry in dump.entries.values():
        for item in entry.items:
            if item.data_name:
                found.setdefault(item.data_name.rpartition(".")[0], item)
    return found


def _missing(name: str, side: str, dump: Dump, items: Mapping[str, Item]) -> list[str]:
    return [] if name in dump.entries or name in items else [f"{name} ({side})"]


#: Names that mean themselves in yaml, whatever stands around them.
_PLAIN = re.compile(r"[A-Za-z]\w*(\.\w+)+", re.ASCII)
#: Characters of a key without a mark, quotes and all.
_LONGEST_KEY = 1000
#: What may pair items otherwise than their entries alone would, so that they are written item by item.
_ITEM_BY_ITEM = (PairedBy.DATA, PairedBy.API)


def _header(name: str) -> str:
    return tr(
        """\
# Each line pairs a name of the target (left) with a name of the golden (right). null: it has no counterpart.
# The comment behind a line is the rule that made the pair:
#   name       the two names mean the same module or function
#   automatic  found by -lm without a file
#   layer, cell, api, data  a line in the file given with -lm, -cm, -am, -dm
#   scope      calls of the same operation, inside one call of a module
#   group      several calls on one side are one call on the other
# To change a pair, edit its line and pass this file: msprobe compare ... -dm {name}
""",
        name=name,
    )


def write_pairing(pairs: Sequence[Pair], output: Path, timestamp: str, name_suffix: str = "") -> list[Path]:
    """Write ``data_mapping{suffix}_{timestamp}.yaml``; nothing, and [], where both names of every pair are equal."""
    if all(pair.target.name == pair.golden.name for pair in pairs if pair.target and pair.golden):
        return []
    path = output / f"data_mapping{name_suffix}_{timestamp}.yaml"
    with replacing(path) as file:
        file.write(translated(_header(path.name)).encode())
        file.writelines(f"{line}\n".encode() for pair in pairs for line in _lines(pair))
    return [path]


def _lines(pair: Pair) -> list[str]:
    target, golden = pair.target, pair.golden
    if target is None:
        told = golden and tr("# only in the golden: {name}", name=_spelled(golden.name))
        return [translated(told)] if told else []
    if golden is None:
        return [f"{_key(target.name)} null"]
    if pair.how == PairedBy.GROUP and (lines := _group(pair)):
        return lines
    if pair.how in _ITEM_BY_ITEM and (lines := _items(pair)):
        return lines
    return [f"{_key(target.name)} {_spelled(golden.name)} # {pair.how}"]


def _group(pair: Pair) -> list[str]:
    """Several lines with one golden entry, or one line with several."""
    ours = dict.fromkeys(row.target.entry for row in pair.rows if row.target is not None)
    theirs = dict.fromkeys(row.golden.entry for row in pair.rows if row.golden is not None)
    golden = _spelled(JOINED.join(theirs))
    return [f"{_key(name)} {golden} # {pair.how}" for name in ours]


def _items(pair: Pair) -> list[str]:
    both = [(row.target, row.golden) for row in pair.rows if row.target is not None]
    return [f"{_key(mine.name)} {_spelled(other.name) if other else 'null'} # {pair.how}" for mine, other in both]


def _key(name: str) -> str:
    spelled = _spelled(name)
    # Beyond 1,024 characters yaml asks for the mark of a key.
    return f"{spelled}:" if len(spelled) < _LONGEST_KEY else f"? {spelled}\n:"


def _spelled(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)
