"""Pair the entries and items of two dumps: each stands in one row, beside its counterpart or alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import cache

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Pair, Row, Tables
from msprobe_ms.comparison.pairing.argument_rows import pair_arguments
from msprobe_ms.comparison.pairing.borders import pair_within_borders
from msprobe_ms.comparison.pairing.calls import operand_without_effect, pair_tensors
from msprobe_ms.comparison.pairing.elsewhere import mark_compared_elsewhere
from msprobe_ms.comparison.pairing.entries import pair_entries
from msprobe_ms.comparison.pairing.matches import Match
from msprobe_ms.comparison.pairing.modules import Module, said_unmatched
from msprobe_ms.comparison.pairing.rules.api import ApiRule, split_listed
from msprobe_ms.comparison.pairing.rules.data import DataPairs, resolve_data
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.pairing.rules.operations import by_operation
from msprobe_ms.comparison.pairing.updates import PARAMETER_SYNONYMS
from msprobe_ms.comparison.statistics import elements_of
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy, Side
from msprobe_ms.dump.columns import ItemSlice, ItemTable
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import BACKWARD, DEBUG, is_function, is_loss, is_update, parse_entry


def pair(target: Dump, golden: Dump, mappings: Mappings, *, fuzzy: bool = False) -> list[Pair]:
    """Pair two dumps: the target's entries in execution order, then the golden entries left (``target`` None).

    ``fuzzy`` ignores call indices: calls of one name pair in execution order. What is said about an entry by the data
    mapping comes before the layer mapping, that before the cell mapping, that before its own name; of an API the API
    mapping before the built-in table of what both frameworks call alike.
    """
    said = resolve_data({**by_operation(mappings.operations, target, golden), **mappings.data}, target, golden)
    matches = pair_entries(target, golden, mappings, said, fuzzy=fuzzy)
    placed, unmatched = said.placed, said_unmatched(target, mappings.layer)
    alike = _AlikePairs()
    pairs = []
    #: Pairs of which rows may hold an item of one side alone.
    incomplete: list[Pair] = []
    lone = _lone(target, golden)
    for entry in target.entries.values():
        match = matches.get(entry.name)
        if match is None and lone(entry):
            continue
        if match is None:
            pairs.append(_alone(entry, golden, said, unmatched))
        elif match.targets and entry.name != match.targets[-1]:
            continue  # It has its rows beside the last of its group.
        elif match.targets or _is_spelled_differently(entry, golden.entries[match.golden], match):
            pairs.append(_pair_group(match, entry, target, golden, said, placed))
            incomplete.append(pairs[-1])
        else:
            other = golden.entries[match.golden]
            plain = not said.items and match.rule is None
            rows = alike.rows(entry, other) if plain else _placed_rows(entry, other, said, placed, match.rule)
            pairs.append(Pair(entry, other, rows, match.how))
            if not (plain and alike.are_complete):
                incomplete.append(pairs[-1])
    matched = {name for match in matches.values() for name in match.all_golden}
    for entry in golden.entries.values():
        if entry.name not in matched and not lone(entry):
            rows = (
                _rows_alone(entry.items, GOLDEN)
                if not placed
                else [Row(None, item) for item in entry.items if item.name not in placed]
            )
            if rows or not entry.items:
                pairs.append(Pair(None, entry, rows))
    pair_arguments(incomplete, (target.framework, golden.framework))
    pair_within_borders(pairs, target.entries, golden.entries)
    mark_compared_elsewhere(pairs)
    return pairs


def _lone(target: Dump, golden: Dump) -> Callable[[Entry], bool]:
    """What tells an entry that is none of what the other side lacks: not every dump holds losses and updates."""
    losses = DEBUG not in (target.level, golden.level)

    @cache
    def updates_are_alone() -> bool:
        return not all(any(is_update(entry.parsed) for entry in dump.entries.values()) for dump in (target, golden))

    return lambda entry: (losses and is_loss(entry.parsed)) or (is_update(entry.parsed) and updates_are_alone())


#: What two entries are, their statistics apart; the places of the items that stand beside each other, and states.
Layouts = tuple[bytes, bytes, str]
Places = tuple[tuple[int | None, int | None, str], ...]


class _AlikePairs:
    """Rows of paired entries. Calls of one function have items of one kind, which pair alike: that is done once."""

    def __init__(self) -> None:
        self._known: dict[Layouts, tuple[Places, bool]] = {}
        #: One value for all rows: each holds it.
        self._tables: Tables | None = None
        self._layouts = b"", b""
        #: Whether each of the rows that were made last holds items of both sides.
        self.are_complete = False

    def rows(self, entry: Entry, counterpart: Entry) -> list[Row]:
        ours, theirs = entry.items, counterpart.items
        if not (isinstance(ours, ItemSlice) and isinstance(theirs, ItemSlice)):
            self.are_complete = False
            return [Row(*both) for both in pair_items(ours, theirs)]
        tables = self._tables
        if tables is None or tables[0] is not ours.table or tables[1] is not theirs.table:
            tables = self._tables = ours.table, theirs.table
            self._layouts = ours.table.layouts(), theirs.table.layouts()
        direction = entry.parsed.direction if entry.parsed else ""
        key = ours.layout(self._layouts[0]), theirs.layout(self._layouts[1]), direction
        known = self._known.get(key)
        if known is None:
            places = _places(ours, theirs)
            known = self._known[key] = places, not any(None in each[:2] for each in places)
        places, self.are_complete = known
        rows = []
        for place, other, state in places:
            # One number, not two equal ones, wherever there is one.
            mine = ours.start + place if place else None if place is None else ours.start
            golden = theirs.start + other if other else None if other is None else theirs.start
            if golden == mine:
                golden = mine
            rows.append(Row(mine, golden, tables=tables, state=state))
        return rows


def _places(ours: ItemSlice, theirs: ItemSlice) -> Places:
    mine, others = list(ours), list(theirs)
    numbers = {id(item): number for items in (mine, others) for number, item in enumerate(items)}
    return tuple(
        (
            None if item is None else numbers[id(item)],
            None if counterpart is None else numbers[id(counterpart)],
            item.state if item is not None else counterpart.state if counterpart is not None else "",
        )
        for item, counterpart in pair_items(mine, others)
    )


def _placed_rows(
    entry: Entry, counterpart: Entry, said: DataPairs, placed: set[str], rule: ApiRule | None
) -> list[Row]:
    """Items the data mapping places stand where it says, then those a rule names; the others pair among themselves."""
    free = [item for item in entry.items if item.name not in said.items]
    others = [item for item in counterpart.items if item.name not in placed]
    rows = [Row(item, said.items[item.name]) for item in entry.items if item.name in said.items]
    if rule is not None:
        named, free, others = split_listed(rule, free, others)
        rows += [Row(*both) for both in named]
    rows += [Row(*both) for both in pair_items(free, others)]
    order = {item.name: place for place, item in enumerate(entry.items)}
    return sorted(rows, key=lambda row: order[row.target.name] if row.target else len(order))


def _alone(entry: Entry, golden: Dump, said: DataPairs, unmatched: set[Module]) -> Pair:
    """An entry without a counterpart; single items may still stand beside items the data mapping names."""
    if not said.items:
        rows = _rows_alone(entry.items, TARGET)
    else:
        rows = [Row(item, said.items.get(item.name)) for item in entry.items]
    other = golden.entries.get(said.fallback.get(entry.name, ""))
    parsed = entry.parsed
    is_unmatched = parsed and parsed.is_module and (parsed.name, parsed.class_name) in unmatched
    how = PairedBy.UNMATCHED if is_unmatched else PairedBy.NOTHING
    return Pair(entry, other, rows, PairedBy.DATA if other else how)


def _rows_alone(items: Sequence[Item], side: Side) -> list[Row]:
    """Return the rows of an entry of one side that has no counterpart."""
    ours = side is TARGET
    if not isinstance(items, ItemSlice):
        return [Row(item, None) if ours else Row(None, item) for item in items]
    tables, numbers = (items.table, items.table), range(items.start, items.stop)
    return [Row(number, None, tables=tables) if ours else Row(None, number, tables=tables) for number in numbers]


def _is_spelled_differently(entry: Entry, other: Entry, match: Match) -> bool:
    """Whether both are APIs whose arguments may stand in other places, and no rule says in which.

    So may those of functions of other names, and those of calls of which one has an operand without effect.
    """
    mine, its = entry.parsed, other.parsed
    if mine is None or its is None or (match.rule is not None and match.rule.items):
        return False
    if mine.name == its.name and not (operand_without_effect(entry) or operand_without_effect(other)):
        return False
    return is_function(mine) and is_function(its)


def _pair_group(match: Match, entry: Entry, target: Dump, golden: Dump, said: DataPairs, placed: set[str]) -> Pair:
    """One pair for all entries of a group, which stands where the last of its forward calls does.

    Items of which the data mapping speaks stand where it says; ``placed`` are the golden ones.
    """
    ours = [target.entries[name] for name in match.targets or (entry.name,)]
    theirs = [golden.entries[name] for name in match.all_golden]
    beside = {name: other for name, other in _beside(ours, theirs).items() if other not in placed}
    mine, others = _references(ours), _references(theirs)
    tables = _tables(ours, theirs)
    rows = [
        Row(item, said.items[name] if name in said.items else others.get(beside.get(name, "")), tables=tables)
        for name, item in mine.items()
    ]
    used = placed | set(beside.values())
    rows += [Row(None, item, tables=tables) for name, item in others.items() if name not in used]
    return Pair(ours[-1], theirs[-1], rows, match.how)


def _beside(ours: Sequence[Entry], theirs: Sequence[Entry]) -> dict[str, str]:
    """Names of items of the target → of the golden."""
    if len(theirs) == 1:
        beside = list(pair_tensors(ours, theirs[0]))
    else:
        beside = [(item, other) for other, item in pair_tensors(theirs, ours[0])]
    if len(ours) == len(theirs) == 1 and all(item.suffix == other.suffix for item, other in beside):
        # Their arguments are in the same places, so what else stands in one place is the same argument.
        idle = {operand_without_effect(each) for each in (ours[0], theirs[0])}
        beside = [
            (item, other)
            for item, other in pair_items(ours[0].items, theirs[0].items)
            if item and other and idle.isdisjoint((item.name, other.name))
        ]
    return {item.name: other.name for item, other in beside}


def _references(entries: Sequence[Entry]) -> dict[str, Item | int]:
    """Items by name: as their numbers in the dump's columns, where it has such."""
    return {
        item.name: items.start + place if isinstance(items, ItemSlice) else item
        for items in (entry.items for entry in entries)
        for place, item in enumerate(items)
    }


def _tables(ours: Sequence[Entry], theirs: Sequence[Entry]) -> tuple[ItemTable, ItemTable] | None:
    mine, others = ours[0].items, theirs[0].items
    return (mine.table, others.table) if isinstance(mine, ItemSlice) and isinstance(others, ItemSlice) else None


def pair_items(target: Sequence[Item], golden: Sequence[Item]) -> list[tuple[Item | None, Item | None]]:
    """Pair items, each once or alone: the target's in their order, then what only the golden has.

    Counterparts have the same suffix (``input.0``, ``parameters.weight``). What is left then pairs by the meaning of a
    parameter's name, tensors given by position with tensors given by keyword, and what one side takes in or gives out
    in a container, or by another keyword, with what the other does in none. Gradients a backward entry gives out have
    the shapes of the forward's inputs, so they pair with equal shapes only: some dumps list those of an inner operation
    instead, or leave ``null`` places out. Indices never stand beside floats of another number: these are inputs of
    other calls.
    """
    counterparts: dict[int, int] = {}
    free = dict.fromkeys(range(len(golden)))

    def take(ours: Sequence[int], theirs: Sequence[int]) -> None:
        for place, other in zip(ours, theirs, strict=True):
            counterparts[place] = other
            del free[other]

    take(*_gradients_in_order(target, golden))
    backward = _is_backward(target)
    for key in (_suffix, _meaning):
        waiting: dict[Hashable, deque[int]] = {}
        for other in free:
            waiting.setdefault(key(golden[other], backward), deque()).append(other)
        for place, item in enumerate(target):
            if place in counterparts or not (queue := waiting.get(key(item, backward))):
                continue
            if not _are_indices_beside_floats(item, golden[queue[0]]):
                take([place], [queue.popleft()])
        if len(counterparts) == len(target) or not free:
            break
    left = [place for place in range(len(target)) if place not in counterparts]
    for ours_keyword in (False, True):
        take(*_position_beside_keyword(target, golden, left, list(free), ours_keyword))
    if not backward:
        for state in ("input", "output"):
            take(*_tensors_in_order(state, target, golden, left, list(free)))
    rows: list[tuple[Item | None, Item | None]] = [
        (item, golden[counterparts[place]] if place in counterparts else None) for place, item in enumerate(target)
    ]
    return rows + [(None, golden[other]) for other in free]


def _is_backward(items: Sequence[Item]) -> bool:
    parsed = parse_entry(items[0].entry) if items else None
    return parsed is not None and parsed.direction == BACKWARD


def _suffix(item: Item, backward: bool) -> Hashable:
    return (item.suffix, item.shape) if backward and item.state == "output" else item.suffix


def _meaning(item: Item, backward: bool) -> Hashable:
    """The suffix with a parameter's name put in PyTorch's words; other items keep theirs."""
    if item.state not in ("parameters", "parameters_grad") or not item.path:
        return _suffix(item, backward)
    *owner, name = ".".join(item.path).split(".")
    return (item.state, *owner, PARAMETER_SYNONYMS.get(name, name))


def _gradients_in_order(target: Sequence[Item], golden: Sequence[Item]) -> tuple[list[int], list[int]]:
    """Gradients given out, when the two lists differ only in where ``null`` stands for "no gradient".

    ``[null, dW, db]`` beside ``[dW, db]``: by suffix dW would stand beside null and db beside dW.
    """
    if not (_is_backward(target) and _is_backward(golden)):
        return [], []
    ours, theirs = _output_tensors(target), _output_tensors(golden)
    equal = [target[place].shape for place in ours] == [golden[place].shape for place in theirs]
    return (ours, theirs) if equal else ([], [])


def _output_tensors(items: Sequence[Item]) -> list[int]:
    return [place for place, item in enumerate(items) if item.state == "output" and item.kind == "tensor"]


def _position_beside_keyword(
    target: Sequence[Item], golden: Sequence[Item], ours: list[int], theirs: list[int], ours_keyword: bool
) -> tuple[list[int], list[int]]:
    """Left-over input tensors, positional on one side and by keyword on the other, equally many of equal shapes."""
    mine = [place for place in ours if _is_input(target[place], keyword=ours_keyword)]
    others = [place for place in theirs if _is_input(golden[place], keyword=not ours_keyword)]
    equal = [target[place].shape for place in mine] == [golden[place].shape for place in others]
    return (mine, others) if equal else ([], [])


def _tensors_in_order(
    state: str, target: Sequence[Item], golden: Sequence[Item], ours: list[int], theirs: list[int]
) -> tuple[list[int], list[int]]:
    """Left-over tensors of inputs or outputs, equally many of equal shapes: each side names keywords freely."""
    mine = [place for place in ours if target[place].state == state and target[place].kind == "tensor"]
    others = [place for place in theirs if golden[place].state == state and golden[place].kind == "tensor"]
    equal = [target[place].shape for place in mine] == [golden[place].shape for place in others]
    return (mine, others) if equal else ([], [])


def _are_indices_beside_floats(item: Item, other: Item) -> bool:
    if item.state != "input" or item.kind != "tensor" or other.kind != "tensor" or item.shape == other.shape:
        return False
    kinds = {parse_dtype(each.dtype).kind for each in (item, other)}
    return kinds == {"int", "float"} and elements_of(item.shape) != elements_of(other.shape)


def _is_input(item: Item, *, keyword: bool) -> bool:
    return item.state == "input" and item.kind == "tensor" and item.keyword == keyword
