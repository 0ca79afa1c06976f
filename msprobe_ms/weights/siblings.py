"""Where a parameter belongs in the other file, by where the parameters around it are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from msprobe_ms.comparison.pairing.updates import PARAMETER_SYNONYMS
from msprobe_ms.weights.swapped import exchanges

_NUMBER = re.compile(r"\d+")


class Siblings:
    """What the pairs found so far say of a parameter's place in the golden.

    Parameters of one module, at any depth, and those whose names differ in numbers alone have their counterparts
    together too: the deepest module, or the form of name, that more than two thirds of the others have is expected.
    """

    def __init__(self, pairs: Mapping[str, str]) -> None:
        self._pairs = pairs
        self._votes: dict[str, Counter[str]] = {}
        for name, other in pairs.items():
            for group in _groups(name):
                votes = self._votes.setdefault(group, Counter())
                votes[""] += 1  # how many voted
                votes.update(_said(group, name, other))
        self._leading = {
            group: [each for each, count in votes.items() if each and 3 * count >= 2 * votes[""] - 2]
            for group, votes in self._votes.items()
        }

    def fits(self, name: str, other: str) -> bool:
        """Whether ``other`` of the golden lies where the counterpart of ``name`` is expected."""
        return self._expected(name) <= set(_groups(other))

    def candidates(self, name: str, others: frozenset[str], members: Mapping[str, set[str]]) -> frozenset[str]:
        """Return those of ``others`` that lie there; ``members``: as ``_members`` has them."""
        expected = sorted((members.get(group, set()) for group in self._expected(name)), key=len)
        for each in expected:
            others = others & each
        return others

    def _expected(self, name: str) -> set[str]:
        """The modules and the form of name that the counterpart should have, by the votes of all others."""
        other = self._pairs.get(name)
        expected = set()
        for group in _groups(name):
            votes = self._votes.get(group)
            own = set(_said(group, name, other)) if other is not None else set()
            fewest = 1 if group == name[: name.rfind(".") + 1] else 2
            if votes is None or (voters := votes[""] - (other is not None)) < fewest:
                continue
            chosen = [each for each in self._leading[group] if 3 * (votes[each] - (each in own)) > 2 * voters]
            if chosen:
                expected.add(max(chosen, key=len))
        return expected


def crosswise(pairs: Mapping[str, str], shapes: Mapping[str, Hashable]) -> dict[str, str]:
    """Of pairs that equal numbers made, return those that the other pairs contradict → the counterpart that fits.

    ``shapes``: of the parameters that may be exchanged with each other. A pair is contradicted where its siblings are
    paired elsewhere and an exchange sets it right, or where numbers in names run in another order.
    """
    holder = {pairs[name]: name for name in shapes}
    siblings = Siblings(pairs)
    misfits = [name for name in shapes if not siblings.fits(name, pairs[name])]
    members = _members(pairs[name] for name in misfits)
    found: dict[str, str] = {}
    for name in misfits:
        others = frozenset(pairs[other] for other in misfits if shapes[other] == shapes[name] and other != name)
        if fitting := sorted(siblings.candidates(name, others, members) - set(found.values())):
            found[name] = fitting[0]
    moved = {name: holder[other] for name, other in found.items()}
    if not moved:
        moved = {name: holder[other] for name, other in _out_of_order(pairs, shapes)}
    return {name: pairs[moved[name]] for circle in exchanges(moved) for name in circle}


def _out_of_order(pairs: Mapping[str, str], shapes: Mapping[str, Hashable]) -> Iterator[tuple[str, str]]:
    """Names that differ in one number, whose counterparts do too, and which one each should have if both count up."""
    lines: dict[tuple[Hashable, ...], list[tuple[int, int, str]]] = {}
    for name, shape in shapes.items():
        mine, theirs = _numbers(name), _numbers(pairs[name])
        form = shape, _form(name), _form(pairs[name])
        for here, number in enumerate(mine):
            for there, other in enumerate(theirs):
                rest = here, there, mine[:here] + mine[here + 1 :], theirs[:there] + theirs[there + 1 :]
                lines.setdefault((*form, *rest), []).append((number, other, name))
    for line in lines.values():
        wanted = sorted(line, key=lambda each: each[1])
        for (_, other, name), (_, fitting, holder) in zip(sorted(line), wanted, strict=True):
            if other != fitting:
                yield name, pairs[holder]


def pair_by_place(
    targets: Mapping[str, Hashable], goldens: Mapping[str, Hashable], pairs: Mapping[str, str]
) -> dict[str, str]:
    """Pair parameters whose numbers several share (``targets``, ``goldens``: name → numbers) by their place.

    Those first that only one place is left for, then in order where both sides have as many. ``pairs``: found before.
    """
    found: dict[str, str] = {}
    members = _members(goldens)
    by_siblings = True
    while True:
        siblings = Siblings({**pairs, **found} if by_siblings else {})
        holding: dict[Hashable, set[str]] = {}
        for other in goldens.keys() - set(found.values()):
            holding.setdefault(goldens[other], set()).add(other)
        left = {numbers: frozenset(others) for numbers, others in holding.items()}
        places = {
            name: siblings.candidates(name, left.get(numbers, frozenset()), members)
            for name, numbers in targets.items()
            if name not in found
        }
        new = _only_ones(places) or _as_many(places, [*goldens])
        if not new and not by_siblings:
            return found
        by_siblings = bool(new)
        found |= new


def _members(names: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in names:
        for group in _groups(name):
            found.setdefault(group, set()).add(name)
    return found


def _only_ones(places: Mapping[str, frozenset[str]]) -> dict[str, str]:
    only = {name: next(iter(others)) for name, others in places.items() if len(others) == 1}
    claims = Counter(only.values())
    return {name: other for name, other in only.items() if claims[other] == 1}


def _as_many(places: Mapping[str, frozenset[str]], order: Sequence[str]) -> dict[str, str]:
    """Pair in order where as many parameters share as many places, weights with weights where both have as many."""
    sharing: dict[frozenset[str], list[str]] = {}
    for name, others in places.items():
        sharing.setdefault(others, []).append(name)
    found: dict[str, str] = {}
    taken: set[str] = set()
    for others in sorted(sharing, key=len):  # those with most places left take what others do not need
        names = sharing[others]
        if len(names) == len(others) and taken.isdisjoint(others):
            taken |= others
            theirs = [other for other in order if other in others]
            if Counter(map(_role, names)) == Counter(map(_role, theirs)):
                names, theirs = sorted(names, key=_role), sorted(theirs, key=_role)
            found |= zip(names, theirs, strict=True)
    return found


def _groups(name: str) -> Iterator[str]:
    """The modules that a parameter is in, and what its name is like but for its numbers, or for one of them."""
    parts = name.split(".")
    yield from (".".join((*parts[:depth], "")) for depth in range(1, len(parts)))
    yield _form(name)
    if len(numbers := [*_NUMBER.finditer(name)]) > 1:
        yield from (f"#{name[: each.start()]}#{name[each.end() :]}" for each in numbers)


def _said(group: str, name: str, other: str) -> list[str]:
    """Groups of the golden that a pair says ``group`` of the target may be: as far above the parameter, or further."""
    if _is_form(group):
        return [each for each in _groups(other) if _is_form(each)]
    highest = other.count(".") - name.count(".") + group.count(".")
    return [each for each in _groups(other) if not _is_form(each) and each.count(".") <= highest]


def _form(name: str) -> str:
    return "#" + _NUMBER.sub("#", name)


def _is_form(group: str) -> bool:
    return group.startswith("#")


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, _NUMBER.findall(name)))


def _role(name: str) -> str:
    last = name.rpartition(".")[2]
    return PARAMETER_SYNONYMS.get(last, last)
