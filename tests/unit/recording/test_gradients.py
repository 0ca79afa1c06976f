"""Plans of gradients: containers keep their shape, other values have no place, mutable containers are put back."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.recording.gradients import Watch, fill

Pair = namedtuple("Pair", ["x", "y"])


class Value:
    """Stands for a tensor; only watchable ones take a gradient."""

    def __init__(self, name: str = "", *, watchable: bool = True) -> None:
        self.name = name
        self.watchable = watchable

    def __repr__(self) -> str:
        return self.name or "value"


@dataclass(frozen=True)
class Frozen:
    x: Any
    n: int = 0


def new_watch() -> Watch:
    return Watch(lambda value: isinstance(value, Value), lambda value: value.watchable)


def filled(*values: Any) -> list[Any]:
    """The plan of ``values`` with each watched tensor's name and place."""
    watch = new_watch()
    plan = watch.plan(values)
    return fill(plan, lambda position, path: (watch.tensors[position].name, ".".join(path)))


a, b, c = Value("a"), Value("b"), Value("c")
dead = Value("dead", watchable=False)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((a, b), [("a", "0"), ("b", "1")]),
        ((1, a, None, "text", b), [("a", "0"), ("b", "1")]),
        ((dead, a), [None, ("a", "1")]),
        (([a, [b]], (c,)), [[("a", "0.0"), [("b", "0.1.0")]], [("c", "1.0")]]),
        (({"k": a, 3: [1, b]},), [{"k": ("a", "0.k"), "3": [("b", "0.3.0")]}]),
        ((Pair(a, 2),), [{"x": ("a", "0.x")}]),
        ((Frozen(a),), [{"x": ("a", "0.x")}]),
        ((a, [a, b], a), [("a", "0"), [("a", "1.0"), ("b", "1.1")], ("a", "2")]),
        (([], {}, [1, [2]], "ab"), []),
        ((), []),
    ],
)
def test_plans(values: Any, expected: Any) -> None:
    assert filled(*values) == expected


def test_a_tensor_given_twice_is_watched_once() -> None:
    watch = new_watch()
    assert watch.plan([a, [a], {"k": a}]) == [0, [0], {"k": 0}]
    assert watch.tensors == [a]


def test_containers_that_contain_themselves_come_to_an_end() -> None:
    loop: list[Any] = [a]
    loop.append(loop)
    watch = new_watch()
    plan = watch.plan([loop])
    assert watch.tensors == [a]
    fill(plan, lambda position, path: position)
    twin = Value("twin")
    (swapped,) = watch.swap([loop], [twin])
    assert swapped is loop
    assert loop[0] is twin
    watch.restore()
    assert loop[0] is a


@pytest.fixture
def swapped() -> Callable[..., tuple[list[Any], Watch, dict[str, Value]]]:
    def swap(*values: Any) -> tuple[list[Any], Watch, dict[str, Value]]:
        watch = new_watch()
        watch.plan(values)
        twins = [Value(f"{tensor.name}'") for tensor in watch.tensors]
        result = watch.swap(values, twins)
        return result, watch, {twin.name: twin for twin in twins}

    return swap


def test_swap_rebuilds_tuples_and_writes_into_the_rest(swapped: Any) -> None:
    items, named, pair, batch = [a, 1], {"k": [b]}, Pair(c, items := [a, 1]), Frozen(b)
    (new_items, new_named, new_pair, new_batch, plain), watch, twins = swapped(items, named, pair, batch, (1, 2))
    assert new_items is items
    assert items == [twins["a'"], 1]
    assert new_named is named
    assert named["k"] == [twins["b'"]]
    assert type(new_pair) is Pair
    assert new_pair.x is twins["c'"]
    assert pair.x is c
    assert new_batch.x is twins["b'"]
    assert plain == (1, 2)
    watch.restore()
    assert (items, named) == ([a, 1], {"k": [b]})
    assert batch == Frozen(b)


def test_nothing_to_swap_is_not_touched() -> None:
    watch = new_watch()
    items = [a]
    pair = (items, 1)
    watch.plan([items, pair])
    first, second = watch.swap([items, pair], [a])
    assert first is items
    assert second is pair


def test_restore_finds_what_the_call_moved(swapped: Any) -> None:
    items, named = [a, b], {"k": a}
    _, watch, _ = swapped(items, named)
    items.reverse()
    items.insert(0, items[0])
    named["new"] = named.pop("k")
    watch.restore()
    assert items == [b, b, a]
    assert named == {"new": a}


def test_restore_keeps_what_the_call_put_there(swapped: Any) -> None:
    items, named = [a, b], {"k": a}
    _, watch, _ = swapped(items, named)
    items[0] = c
    items.pop()
    named.clear()
    named["mine"] = c
    watch.restore()
    assert items == [c]
    assert named == {"mine": c}


trees = st.recursive(
    st.sampled_from([a, b, c, dead, None, 1, "x"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3) | st.tuples(inner, inner)
    ),
    max_leaves=10,
)  # fmt: skip


@given(st.lists(trees, max_size=4))
def test_swap_and_restore_give_back_what_was_there(values: list[Any]) -> None:
    before = repr(values)
    watch = new_watch()
    watch.plan(values)
    swapped = watch.swap(values, [Value(f"<{tensor.name}>") for tensor in watch.tensors])
    for tensor in watch.tensors:
        assert f"<{tensor.name}>" in repr(swapped)
    watch.restore()
    assert repr(values) == before


@given(st.lists(trees, max_size=4))
def test_every_watched_tensor_has_its_places_in_the_plan(values: list[Any]) -> None:
    watch = new_watch()
    plan = watch.plan(values)
    seen: set[int] = set()
    places: list[tuple[str, ...]] = []
    fill(plan, lambda position, path: seen.add(position) or places.append(path))
    assert seen == set(range(len(watch.tensors)))
    assert len(places) == len(set(places))
