"""Containers of users: what is read of them, that nothing of the user's runs, and that every walk ends."""

from __future__ import annotations

import time
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest

from msprobe_ms.recording.containers import (
    DEEPEST,
    MOST_MEMBERS,
    MOST_PLAIN,
    Walk,
    members,
    names_of,
    put,
    results,
    tensors_in,
)

Pair = namedtuple("Pair", "left right")


class Tensor:
    """What stands for a tensor."""


class Ran(AssertionError):
    """Code of the user's ran."""


def is_tensor(value: Any) -> bool:
    return type(value) is Tensor


class Copying(Walk):
    """Makes a copy of nested values."""

    def __init__(self) -> None:
        super().__init__(is_tensor)
        self.places: list[str] = []

    def tensor(self, value: Any) -> Any:
        self.places.append(".".join(self.place))
        return value

    def plain(self, value: Any) -> Any:
        return value


class Hostile(type):
    """A metaclass whose classes run code wherever they are asked for something."""

    def __getattribute__(cls, name: str) -> Any:
        raise Ran(f"class.{name}")

    def __instancecheck__(cls, instance: Any) -> bool:
        raise Ran("isinstance")


def ran(*_: Any, **__: Any) -> Any:
    raise Ran


HOSTILE = {
    **dict.fromkeys(("__iter__", "__len__", "__getitem__", "__setitem__", "__contains__", "__bool__", "__eq__"), ran),
    **dict.fromkeys(
        ("__hash__", "__repr__", "__str__", "__getattribute__", "__getattr__", "__index__", "__int__"), ran
    ),
    **dict.fromkeys(("items", "keys", "values", "get"), ran),
    "__class__": property(ran),
}


@dataclass
class Point:
    x: Any
    y: Any = 2


@dataclass(frozen=True)
class Slotted:
    __slots__ = ("x", "y")
    x: Any
    y: Any


@dataclass
class Computed:
    """One field is a property, one is kept by the class."""

    x: Any
    y: Any
    kept: Any = field(default="of the class", init=False)


Computed.y = property(ran, lambda value, given: None)  # type: ignore[assignment, method-assign]


def test_members_of_every_kind() -> None:
    moved = OrderedDict(a=1, b=2)
    moved.move_to_end("a")
    for value, expected in [
        ([1, 2], (None, [1, 2], 2)),
        ((1, 2), (None, (1, 2), 2)),
        (Pair(1, 2), (("left", "right"), (1, 2), 2)),
        ({"a": 1, 2: 3}, (["a", 2], [1, 3], 2)),
        (moved, (["b", "a"], [2, 1], 2)),
        (defaultdict(list, a=1), (["a"], [1], 1)),
        (UserDict(a=1), (["a"], [1], 1)),
        (Point(1), (["x", "y"], [1, 2], 2)),
        (Slotted(1, [2]), (["x", "y"], [1, [2]], 2)),
    ]:
        assert members(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        5,
        "text",
        b"bytes",
        {1, 2},
        range(3),
        iter([1]),
        (n for n in "ab"),
        MappingProxyType({"a": 1}),
        Point,
        Pair,
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_container(value: Any) -> None:
    assert members(value) is None


def test_a_lazy_mapping_is_left_alone() -> None:
    class Lazy(Mapping):
        __getitem__ = __iter__ = __len__ = ran

    assert members(Lazy()) is None


def test_a_tuple_whose_names_do_not_fit_is_known_by_places() -> None:
    class Shorter(Pair):
        _fields = ("left",)

    assert members(Shorter(1, 2)) == (None, (1, 2), 2) and results(Shorter(1, 2)) == (1, 2)


def test_a_dataclass_of_a_hostile_class() -> None:
    kind = Hostile("Evil", (), {**HOSTILE, "__dataclass_fields__": vars(Point)["__dataclass_fields__"]})
    evil = object.__new__(kind)
    object.__setattr__(evil, "x", 5)
    assert members(evil) == (["x", "y"], [5, None], 2)


@pytest.mark.parametrize("base", [list, tuple, dict, OrderedDict, object])
def test_nothing_of_the_users_runs(base: type) -> None:
    kind = Hostile("Evil", (base,), HOSTILE)
    content = {"a": Tensor()} if issubclass(base, dict) else [Tensor()]
    evil = base.__new__(kind) if base is object else base.__new__(kind, *([content] if base is tuple else []))
    if base is list:
        list.extend(evil, content)
    elif issubclass(base, dict):
        base.__setitem__(evil, "a", content["a"])
    inside = members(evil)
    assert (inside is None) == (base is object)
    copy = Copying().of((evil, 1))
    if base is not object:
        assert len(tensors_in([evil], is_tensor)) == 1 and copy[0] == content
    assert results(evil) is evil if base in (list, tuple) else results(evil)[0] is evil


def test_fields_are_read_from_memory_alone() -> None:
    value = Computed(1, 2)
    keys, values, _ = members(value) or ((), (), 0)
    assert dict(zip(keys or (), values, strict=True)) == {"x": 1, "y": None, "kept": "of the class"}
    del value.x
    assert (members(value) or ((), (), 0))[1][0] is None


def test_a_slot_may_be_empty() -> None:
    assert (members(object.__new__(Slotted)) or ((), (), 0))[1] == [None, None]


class Colour(Enum):
    RED = 1


class Odd:
    __repr__ = __str__ = ran


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (["a", "b"], ["a", "b"]),
        ([1, None, 2.5, True], ["1", "None", "2.5", "True"]),
        ([1, "1", 1.0], ["1", "1[1]", "1.0"]),
        ([Colour.RED, ("a", 1)], ["Colour.RED", "('a', 1)"]),
        ([Odd(), object(), (Odd(),)], ["Odd[0]", "object[1]", "tuple[2]"]),
        (["x" * 1000, "x" * 1001], ["x" * 200 + "[0]", "x" * 200 + "[1]"]),
    ],
)
def test_names(keys: list[Any], names: list[str]) -> None:
    assert names_of(keys) == names


def test_names_of_huge_integers() -> None:
    (name,) = names_of([1 << 1_000_000])
    assert name.startswith("0x1000") and len(name) < 300


def test_others_are_put_in_the_place_of_members() -> None:
    items, pair, point = [1, 2], Pair(1, 2), Point(1)
    assert put(items, {1: 3}) is items and items == [1, 3]
    assert put(pair, {0: 3}) == Pair(3, 2) and type(put(pair, {0: 3})) is Pair
    assert put(point, {0: 3}) is point and point == Point(3)
    slotted = Slotted(1, 2)
    put(slotted, {1: 3})
    assert (slotted.x, slotted.y) == (1, 3)

    class Tagged(tuple):
        tag: str

    tagged = Tagged([1, 2])
    tagged.tag = "kept"
    twin = put(tagged, {0: 3})
    assert twin == (3, 2) and type(twin) is Tagged and twin.tag == "kept" and tagged == (1, 2)

    class Output(OrderedDict):
        """As those of transformers: members are attributes, too, and cannot be deleted."""

        __setitem__ = ran

    output = Output()
    OrderedDict.__setitem__(output, "loss", 1)
    output.loss = 1
    put(output, {0: 3})
    assert dict.__getitem__(output, "loss") == 3 and output.loss == 3


# -- walks -------------------------------------------------------------------------------------------------------------


def test_a_walk_keeps_nesting_and_tells_places() -> None:
    tensor = Tensor()
    walk = Copying()
    assert walk.of(([tensor, 1], {"k": Pair(tensor, None)})) == [[tensor, 1], {"k": {"left": tensor, "right": None}}]
    assert walk.places == ["0.0", "1.k.left"]
    assert not walk.lost and not walk.cut


def cyclic() -> Iterator[Any]:
    twice: list[Any] = []
    twice += [twice, twice]
    yield twice
    named: dict[str, Any] = {}
    named |= {"a": named, "b": named}
    yield named
    root = Point("root", [])
    root.y += [Point(child, root) for child in range(3)]
    yield root
    first, second, third = (Point(None, None) for _ in range(3))
    first.x, second.x, second.y, third.y = second, third, first, second
    yield first
    through: list[Any] = []
    pair = (through, through)
    through.append(pair)
    yield pair


@pytest.mark.parametrize("value", [*cyclic()], ids=["list", "dictionary", "tree", "linked list", "tuple"])
def test_what_contains_itself_ends(value: Any) -> None:
    walk = Copying()
    walk.of((value, Tensor()))
    assert walk.places == ["1"] and not walk.lost and not walk.cut
    assert len(tensors_in(value, is_tensor)) == 0


def shared(leaf: Any) -> Any:
    value = [leaf]
    for _ in range(40):
        value = [value, value]
    return value


def deep(leaf: Any) -> Any:
    value = [leaf]
    for _ in range(1000):
        value = [value]
    return value


MANY = {
    "shared": shared,
    "deep": deep,
    "long": lambda leaf: [*range(10**6), leaf],
    "long tuple": lambda leaf: (*range(10**6), leaf),
    "dictionary": lambda leaf: {**dict.fromkeys(range(10**5)), "last": leaf},
    "pairs": lambda leaf: [*([1, 2] for _ in range(10**4)), leaf],
    "lists": lambda leaf: [*([list(range(1000))] * 10**4), leaf],
    "objects": lambda leaf: [*(object() for _ in range(10**5)), leaf],
}  # fmt: skip


@pytest.mark.parametrize("kind", MANY)
def test_much_plain_data_is_cut(kind: str) -> None:
    walk = Copying()
    value = MANY[kind]("plain")
    spent = time.process_time()
    walk.of((value, Tensor()))
    assert time.process_time() - spent < 2, "a hundredth of it is usual"
    assert walk.cut and not walk.lost
    assert walk.places == ["1"], "what comes after it is seen"


@pytest.mark.parametrize("kind", ["shared", "deep"])
def test_tensors_left_out_are_told(kind: str) -> None:
    walk = Copying()
    walk.of((MANY[kind](Tensor()),))
    assert walk.lost


@pytest.mark.parametrize("make", [lambda leaf: [1] * 5000 + [leaf], lambda leaf: [[1, 2]] * 1000 + [leaf]])
def test_a_tensor_after_much_plain_data_is_seen(make: Callable[[Any], Any]) -> None:
    walk = Copying()
    walk.of(make(Tensor()))
    assert len(walk.places) == 1 and walk.cut and not walk.lost


def test_bounds() -> None:
    walk = Copying()
    found = walk.of((list(range(MOST_PLAIN + 1)),))
    assert len(found[0]) == MOST_PLAIN and walk.cut
    walk = Copying()
    tensors = [Tensor() for _ in range(MOST_MEMBERS + 1)]
    assert len(walk.of(tensors)) == MOST_MEMBERS and walk.lost
    walk = Copying()
    assert len(walk.of(tensors[:-1])) == MOST_MEMBERS and not walk.lost
    walk, value = Copying(), [Tensor()]
    for _ in range(DEEPEST - 1):
        value = [value]
    walk.of(value)
    assert walk.places == [".".join("0" * DEEPEST)] and not walk.lost


def test_a_member_that_cannot_be_read_costs_itself() -> None:
    class Careful(Copying):
        def tensor(self, value: Any) -> Any:
            raise ValueError

        def failed(self, error: Exception) -> Any:
            return type(error)

    assert Careful().of([1, [Tensor(), 2], 3]) == [1, [ValueError, 2], 3]
