"""Walk the containers that users hand to calls: lists, tuples, named tuples, dictionaries and instances of dataclasses.

Nothing of the user's runs on the way. Members are read by the methods of ``list``, ``tuple`` and ``dict`` and from the
memory of fields, whatever a class makes of them; other mappings, iterators and objects are left alone. So a container
may be read as often as there are walkers.

A walk ends, whatever it is given (docs/format.md, "Limits of values"): what contains itself is not entered again, and
the members that are looked at are counted.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections import OrderedDict, UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import islice
from types import GetSetDescriptorType, MemberDescriptorType, SimpleNamespace
from typing import Any

import numpy as np

#: Containers nested deeper are left out.
DEEPEST = 64

#: Members that one walk looks at, those of inner containers included; among them values that are neither tensors nor
#: containers.
MOST_MEMBERS, MOST_PLAIN = 10_000, 1_000

#: What is left out is searched for tensors: this many members of each container, and of all, where those count less
#: that are numbers or texts. They take 15 ns, containers 0.5 us.
_LONGEST_SEARCHED, _MOST_SEARCHED, _PLAIN_PER_OTHER = 100_000, 300_000, 16

#: Characters of the name that a key gives to its member.
LONGEST_NAME = 200

#: Types of most values; none of them is a tensor or a container.
PLAIN = frozenset((type(None), bool, int, float, str))

#: numpy's own types of numbers.
NUMPY_NUMBERS = frozenset(kind for kind in np.sctypeDict.values() if issubclass(kind, (np.number, np.bool_)))

# What a metaclass says of its classes is the user's, too.
_mro: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
_namespace: Callable[[type], Mapping[str, Any]] = vars(type)["__dict__"].__get__
_type_name: Callable[[type], str] = vars(type)["__name__"].__get__

#: Containers as Python has them. Whether a framework takes them for something else need not be asked.
_BUILT_IN = frozenset((list, tuple, dict))

#: What a container holds: keys, or None where members are known by their place; the first of its members; how many
#: it has in all. No class of its own: one is made for each call.
Members = tuple[Sequence[Any] | None, Sequence[Any], int]


def members(value: Any, most: int = MOST_MEMBERS, first: int = 0) -> Members | None:
    """Read up to ``most`` members of a container, from number ``first`` on; None for anything else."""
    kind, last = type(value), first + most
    if kind is tuple and not first and len(value) <= most:
        return None, value, len(value)
    if issubclass(kind, tuple):
        names = _tuple_names(value, kind)
        return names and names[first:last], tuple.__getitem__(value, slice(first, last)), tuple.__len__(value)
    if issubclass(kind, list):
        return None, list.__getitem__(value, slice(first, last)), list.__len__(value)
    if issubclass(kind, UserDict):
        value = _own(value, kind).get("data")
        kind = type(value)
    if issubclass(kind, dict):
        pairs = list(islice(_items(value, kind), first, last))
        return [key for key, _ in pairs], [member for _, member in pairs], dict.__len__(value)
    if (fields := _field_names(kind)) is not None:
        own = _own(value, kind)
        return fields[first:last], [_field(value, kind, own, name) for name in fields[first:last]], len(fields)
    return None


def results(output: Any) -> Sequence[Any]:
    """Return the results of a call: the list or tuple that it returned, or the one value."""
    kind = type(output)
    several = issubclass(kind, list) or (issubclass(kind, tuple) and _tuple_names(output, kind) is None)
    return output if several else (output,)


def put(value: Any, others: Mapping[int, Any]) -> Any:
    """Put ``others`` at the places of members; tuples are made anew, everything else is written into. Return it."""
    kind = type(value)
    if issubclass(kind, tuple):
        found = [others.get(place, member) for place, member in enumerate(tuple.__iter__(value))]
        twin = tuple.__new__(kind, found)
        if kind is not tuple:
            _own(twin, kind).update(_own(value, kind))
        return twin
    if issubclass(kind, list):
        for place, other in others.items():
            list.__setitem__(value, place, other)
        return value
    own = _own(value, kind)
    if issubclass(kind, UserDict):
        own, value, kind = {}, own["data"], dict
    if issubclass(kind, dict):
        keys = [key for key, _ in _items(value, kind)]
        for place, other in others.items():
            if own.get(keys[place]) is dict.__getitem__(value, keys[place]):
                own[keys[place]] = other  # an attribute that stands for the member
            dict.__setitem__(value, keys[place], other)
        return value
    names = _field_names(kind) or []
    for place, other in others.items():
        if names[place] in own:
            own[names[place]] = other  # one that is frozen as well: its value stays equal
        else:
            _static(kind, names[place]).__set__(value, other)
    return value


def _items(value: Any, kind: type) -> Iterator[tuple[Any, Any]]:
    # Members of an OrderedDict may have been moved, which dict does not know of.
    return iter(OrderedDict.items(value) if issubclass(kind, OrderedDict) else dict.items(value))


def _static(kind: type, name: str) -> Any:
    """What a class or one that it derives from defines under a name; None for nothing."""
    return next((space[name] for space in map(_namespace, _mro(kind)) if name in space), None)


def _tuple_names(value: Any, kind: type) -> tuple[Any, ...] | None:
    """The names of a named tuple's members; None of any other tuple."""
    names = None if kind is tuple else _static(kind, "_fields")
    return names if type(names) is tuple and names and len(names) == tuple.__len__(value) else None


def _field_names(kind: type) -> list[str] | None:
    """The names of a dataclass's fields; None of any other class."""
    found = _static(kind, "__dataclass_fields__")
    if type(found) is not dict:
        return None
    # In the place of the class, which may have code of its own to answer for it.
    stand_in: Any = SimpleNamespace(__dataclass_fields__=found)
    return [field.name for field in dataclasses.fields(stand_in)]


def _own(value: Any, kind: type) -> dict[str, Any]:
    """The attributes in an instance's own memory, those in slots excepted."""
    found = _static(kind, "__dict__")
    return found.__get__(value) if type(found) is GetSetDescriptorType else {}


def _field(value: Any, kind: type, own: dict[str, Any], name: str) -> Any:
    """A field of a dataclass; None where only code of its class could give it."""
    if name in own:
        return own[name]
    found = _static(kind, name)
    if type(found) is MemberDescriptorType:
        try:
            return found.__get__(value)
        except AttributeError:  # an empty slot
            return None
    return found if _static(type(found), "__get__") is None else None


def names_of(keys: Sequence[Any]) -> list[str]:
    """Return a text for each key of a dictionary, no two of them equal."""
    names = [
        key if type(key) is str and len(key) <= LONGEST_NAME else _name(key, place) for place, key in enumerate(keys)
    ]
    if len(set(names)) < len(names):  # 1 and "1" are two members
        known: set[str] = set()
        for place, name in enumerate(names):
            names[place] = f"{name}[{place}]" if name in known else name
            known.add(names[place])
    return names


def _name(key: Any, place: int) -> str:
    """The text of a key; of one that only code of its class could tell, its type and place."""
    kind = type(key)
    if issubclass(kind, Enum) and _static(kind, "__str__") is vars(Enum)["__str__"]:
        text = f"{_type_name(kind)}.{_own(key, kind).get('_name_')}"
    elif issubclass(kind, str):
        text = str.__getitem__(key, slice(LONGEST_NAME + 1))
    elif issubclass(kind, int) and kind is not bool:
        number = int.__index__(key)
        text = str(number) if number.bit_length() <= LONGEST_NAME * 3 else hex(number)[: LONGEST_NAME + 1]
    elif kind in PLAIN or kind in NUMPY_NUMBERS or (kind is tuple and PLAIN.issuperset(map(type, key))):
        text = str(key)
    else:
        text = f"{_type_name(kind)}[{place}]"
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}[{place}]"


class Walk(ABC):
    """One pass through nested values, which makes something of each; a subclass says what.

    ``lost``   whether tensors may be among what was left out
    ``cut``    whether anything else was left out
    """

    lost = cut = False
    _members_left, _plain_left = MOST_MEMBERS, MOST_PLAIN
    #: How much of what is left out was searched for tensors, and the containers in which there are none.
    _searched = 0
    _without_tensors: AbstractSet[int] = frozenset()

    def __init__(self, is_tensor: Callable[[Any], bool]) -> None:
        self._is_tensor = is_tensor
        #: Names and places from the root to the present member, and the containers that it is in.
        self._path: list[str | int] = []
        self._open: list[int] = []

    @abstractmethod
    def tensor(self, value: Any) -> Any: ...

    @abstractmethod
    def plain(self, value: Any) -> Any:
        """Whatever is neither a tensor nor a container; numpy's arrays, too."""

    def special(self, value: Any) -> Any:
        """Something of a value that is not to be taken for a container; None for most."""
        return None

    def nothing(self, value: Any) -> Any:
        """Stands for what is left out."""
        return None

    def made(self, value: Any, inside: Members, found: list[Any]) -> Any:
        """Something of a container, of which ``found`` was made of the first members; its keys are their names here."""
        names = inside[0]
        return found if names is None else dict(zip(names, found, strict=False))

    def failed(self, error: Exception) -> Any:
        """Stands for a member that could not be read."""
        raise error

    @property
    def place(self) -> tuple[str, ...]:
        """The path to the present member."""
        return tuple(map(str, self._path))

    def of(self, value: Any) -> Any:
        """Walk through a value; what was made of it."""
        kind = type(value)
        if kind in PLAIN and self._plain_left:
            self._plain_left -= 1
            return self.plain(value)
        if kind not in _BUILT_IN:
            if self._is_tensor(value):
                return self.tensor(value)
            if (special := self.special(value)) is not None:
                return special
        if id(value) in self._open:
            return self.nothing(value)
        inside = members(value, self._members_left)
        if inside is None:
            if issubclass(kind, np.ndarray):
                return self.plain(value)
            if not self._plain_left:
                self._leave_out([value])
                return self.nothing(value)
            self._plain_left -= 1
            return self.plain(value)
        if len(self._path) >= DEEPEST or (inside[2] and not self._members_left):
            self._leave_out([value])
            return self.nothing(value)
        return self._within(value, inside) if inside[1] else self.made(value, inside, [])

    def _within(self, value: Any, inside: Members) -> Any:
        keys, values, length = inside
        names = None if keys is None else names_of(keys)
        found, path, searched = list[Any](), self._path, False
        self._open.append(id(value))
        path.append("")
        for place, member in enumerate(values):
            if not self._members_left:
                break
            if not (self._plain_left or searched):
                searched = True
                if not self._may_hold_tensors(values[place:]):
                    break
            self._members_left -= 1
            path[-1] = place if names is None else names[place]
            try:
                found.append(self.of(member))
            except Exception as error:
                found.append(self.failed(error))
        path.pop()
        self._open.pop()
        if len(found) < length:
            rest = members(value, _LONGEST_SEARCHED, len(found))
            self._leave_out(() if rest is None else rest[1])
        return self.made(value, inside if names is None else (names, values, length), found)

    def _leave_out(self, values: Sequence[Any]) -> None:
        if self._may_hold_tensors(values):
            self.lost = True
        else:
            self.cut = True

    def _may_hold_tensors(self, values: Sequence[Any]) -> bool:
        """Whether tensors are among ``values`` and what is in them, as far as they are searched; True if in doubt."""
        waiting, known = [values], set(self._without_tensors)
        while waiting:
            if self._searched > _MOST_SEARCHED:
                return True
            values = waiting.pop()
            if PLAIN.issuperset(map(type, values)):
                self._searched += 1 + len(values) // _PLAIN_PER_OTHER
                continue
            self._searched += len(values)
            for member in values:
                kind = type(member)
                if kind not in PLAIN and id(member) not in known:
                    known.add(id(member))
                    if kind not in _BUILT_IN and (self._is_tensor(member) or issubclass(kind, np.ndarray)):
                        return True
                    if (inside := members(member, _LONGEST_SEARCHED)) is not None:
                        waiting.append(inside[1])
        self._without_tensors = known
        return False


class _Tensors(Walk):
    def __init__(self, is_tensor: Callable[[Any], bool]) -> None:
        super().__init__(is_tensor)
        self.found: list[Any] = []

    def tensor(self, value: Any) -> None:
        self.found.append(value)

    def plain(self, value: Any) -> None:
        return None


def tensors_in(value: Any, is_tensor: Callable[[Any], bool]) -> list[Any]:
    """Collect the tensors in nested values, in their order."""
    walk = _Tensors(is_tensor)
    walk.of(value)
    return walk.found
