"""Calls of one operation in one module pair by the tensors they give out, where their order pairs what is far apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from built_dumps import paired
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.columns import ItemSlice, ItemTable
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import parse_entry

Array = npt.NDArray[np.float32]
_RANDOM = np.random.default_rng(8)
#: Tensors of one distribution, apart in size by less than their extremes are, and one of another.
QUERY, KEY, VALUE = (_RANDOM.standard_normal((4, 64)).astype(np.float32) for _ in range(3))
LARGE = 3 * VALUE


def side(prefix: str, given: Sequence[Array], *, sketches: bool, taken: Sequence[Array] = ()) -> Dump:
    """A module in which one operation gives out these tensors, as it is read from a file."""
    module, table = f"{prefix}.a.A.forward.0", ItemTable()
    entries = {}
    for number, values in enumerate(given):
        name = f"Tensor.view.{number}.forward"
        start = len(table)
        table.begin(name)
        for place, array in (("input.0", taken[number] if taken else values), ("output.0", values)):
            item = tensor(place, array, name)
            sort = ("tensor", "t", "Float32", item.shape, None)
            statistics = (item.maximum, item.minimum, item.mean, item.norm)
            text = encode(sketch(array), array.dtype) if sketches else None
            table.add((item.state, item.path, False), sort, statistics, sketch=text)
        entries[name] = Entry(name, parse_entry(name), ItemSlice(table, start, len(table)), module)
    entries[module] = Entry(module, parse_entry(module), [])
    made = dump([], "mindspore" if prefix == "Cell" else "pytorch")
    made.entries = entries
    return made


def order(ours: Sequence[Array], theirs: Sequence[Array], *, sketches: bool = True) -> list[int | None]:
    """Which golden call stands beside each of the target's."""
    pairs = paired(pair(side("Cell", ours, sketches=sketches), side("Module", theirs, sketches=sketches), Mappings()))
    names = [pairs.get(f"Tensor.view.{number}.forward") for number in range(len(ours))]
    return [None if name is None else int(name.split(".")[2]) for name in names]


def near(values: Array, part: float = 0.03) -> Array:
    """Some percent apart, as after a step of training."""
    return (values + part * np.abs(values).mean() * _RANDOM.standard_normal(values.shape)).astype(np.float32)


@pytest.mark.parametrize("sketches", [True, False])
def test_another_order_is_followed(sketches: bool) -> None:
    assert order([QUERY, LARGE], [LARGE, QUERY], sketches=sketches) == [1, 0]


def test_tensors_of_one_distribution_are_told_by_their_sketches() -> None:
    ours = [near(each) for each in (QUERY, KEY, VALUE)]
    assert order(ours, [VALUE, QUERY, KEY]) == [1, 2, 0]
    assert order(ours, [QUERY, KEY, VALUE]) == [0, 1, 2]


@pytest.mark.parametrize("sketches", [True, False])
def test_what_an_error_changed_stays_in_its_order(sketches: bool) -> None:
    wrong = 2 * np.roll(QUERY, 1)
    assert order([wrong, LARGE], [QUERY, LARGE], sketches=sketches) == [0, 1]
    assert order([wrong, -LARGE], [LARGE, QUERY], sketches=sketches) == [0, 1]
    assert order([wrong, QUERY, LARGE], [LARGE, QUERY, KEY], sketches=sketches) == [0, 1, 2]


def test_equal_tensors_stay_in_their_order() -> None:
    assert order([QUERY, QUERY, LARGE, KEY], [LARGE, KEY, QUERY, QUERY]) == [0, 1, 2, 3]
    assert order([QUERY, QUERY, LARGE], [LARGE, QUERY, QUERY]) == [2, 1, 0]


def test_a_few_calls_that_change_places_leave_the_others_alone() -> None:
    wrong = 5 * KEY
    assert order([QUERY, wrong, LARGE, VALUE], [LARGE, KEY, QUERY, VALUE]) == [2, 1, 0, 3]


def test_calls_of_other_sizes_on_both_ends_are_no_counterparts() -> None:
    assert order([QUERY], [np.ones((3, 5), np.float32)]) == [None]
    given = np.ones((3, 5), np.float32)
    both = (
        side("Cell", [QUERY], sketches=True, taken=[QUERY]),
        side("Module", [given], sketches=True, taken=[QUERY]),
    )
    assert paired(pair(*both, Mappings()))["Tensor.view.0.forward"] == "Tensor.view.0.forward"


@pytest.mark.parametrize(("modules", "found"), [(True, None), (False, "Tensor.view.0.forward")])
def test_outside_of_modules_they_are_none_either_where_modules_are_known(modules: bool, found: str | None) -> None:
    """The script's own calls beside those of an autograd function, which run in no module."""
    sides = []
    for prefix, given in (("Cell", QUERY), ("Module", np.ones((3, 5), np.float32))):
        made = side(prefix, [given], sketches=True)
        module = made.entries.pop(f"{prefix}.a.A.forward.0")
        call = made.entries["Tensor.view.0.forward"]
        made.entries["Tensor.view.0.forward"] = Entry(call.name, call.parsed, call.items, None)
        if modules:
            inside = "Tensor.relu.0.forward"
            made.entries |= {inside: Entry(inside, parse_entry(inside), [], module.name), module.name: module}
        sides.append(made)
    assert paired(pair(*sides, Mappings())).get("Tensor.view.0.forward") == found
