"""Which functions pair inside one scope: by name, by meaning, several with one, between those around them."""

from __future__ import annotations

import pytest
from built_dumps import Items, dump, entry, paired, rows
from compare_parts import dump as dump_of
from compare_parts import tensor
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.reporting.profiles.own import PASSED_ON
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import parse_entry

NONE = Mappings()
OURS, THEIRS = "Cell.a.A.forward.0", "Module.a.A.forward.0"
#: A shape for each letter of a flow.
SHAPES = {letter: (number + 2,) for number, letter in enumerate("xyzwvub")}


def found(ours: list[str], theirs: list[str]) -> dict[str, str]:
    """Functions of one module on both sides, each with one input and output of one shape."""
    target = dump("mindspore", *(entry(name, parent=OURS) for name in ours), OURS)
    golden = dump("pytorch", *(entry(name, parent=THEIRS) for name in theirs), THEIRS)
    pairs = paired(pair(target, golden, NONE))
    assert pairs.pop(OURS) == THEIRS
    return pairs


def forward(*apis: str) -> list[str]:
    counts: dict[str, int] = {}
    names = []
    for api in apis:
        names.append(f"{api}.{counts.get(api, 0)}.forward")
        counts[api] = counts.get(api, 0) + 1
    return names


def test_one_operation_under_several_names_pairs_in_order_not_by_name():
    ours = forward("Functional.add", "Tensor.__add__", "Functional.add")
    theirs = forward("Tensor.__add__", "Torch.add", "Tensor.__add__")
    assert found(ours, theirs) == dict(zip(ours, theirs, strict=True))


def test_calls_the_two_sides_spell_alike_pair_by_name_whatever_their_order():
    ours, theirs = forward("Functional.add", "Tensor.__add__"), forward("Tensor.__add__", "Torch.add")
    assert found(ours, theirs) == {ours[0]: theirs[1], ours[1]: theirs[0]}
    assert found(ours, theirs[:1]) == {ours[1]: theirs[0]}


def test_an_operation_of_another_shape_does_not_pair():
    target = dump("mindspore", entry("Mint.tile.0.forward", {"input.0": (2,), "output.0": (4,)}, OURS), OURS)
    golden = dump("pytorch", entry("Tensor.repeat.0.forward", {"input.0": (2,), "output.0": (6,)}, THEIRS), THEIRS)
    assert len(paired(pair(target, golden, NONE))) == 1


def test_families_pair_what_does_the_same_to_a_shape():
    ours = forward("Tensor.view", "Tensor.swapaxes", "Primitive.x.BatchMatMul")
    theirs = forward("Tensor.flatten", "Tensor.permute", "Torch.matmul")
    assert found(ours, theirs) == dict(zip(ours, theirs, strict=True))


def test_a_surplus_call_is_found_between_the_calls_around_it():
    """Where one side adds once more, all other additions still stand beside their own."""
    add, relu, gelu = "Tensor.__add__", "Functional.relu", "Functional.gelu"
    pairs = found(forward(add, relu, add, add, gelu, add), forward(add, relu, add, gelu, add))
    assert pairs[f"{add}.0.forward"] == f"{add}.0.forward"
    assert pairs[f"{add}.3.forward"] == f"{add}.2.forward"
    assert not {f"{add}.1.forward", f"{add}.2.forward"} & set(pairs)


OURS_APIS = ["Mint.add", "Tensor.__add__", "Functional.relu", "Tensor.view", "Primitive.d.MatMul"]
THEIRS_APIS = ["Torch.add", "Tensor.__add__", "Functional.relu", "Tensor.reshape", "Functional.linear"]


@given(st.lists(st.sampled_from(OURS_APIS), max_size=12))
def test_right_pairs_a_scope_pairs_wholly_with_itself(apis):
    ours = forward(*apis)
    assert found(ours, ours) == {name: name for name in ours}


@given(st.lists(st.sampled_from(OURS_APIS), max_size=12), st.lists(st.sampled_from(THEIRS_APIS), max_size=12))
def test_right_pairs_no_entry_twice_and_every_item_once(ours, theirs):
    target = dump("mindspore", *(entry(name, parent=OURS) for name in forward(*ours)), OURS)
    golden = dump("pytorch", *(entry(name, parent=THEIRS) for name in forward(*theirs)), THEIRS)
    pairs = pair(target, golden, NONE)
    ours_items = [row[0] for row in rows(pairs) if row[0]]
    theirs_items = [row[1] for row in rows(pairs) if row[1]]
    assert sorted(ours_items) == sorted(item.name for one in target.entries.values() for item in one.items)
    assert sorted(theirs_items) == sorted(item.name for one in golden.entries.values() for item in one.items)


# Several calls of one side that are one of the other.


def call(name: str, flow: str, parent: str | None = None) -> Entry:
    """``"xw>y"``: takes the tensors x and w, gives y; a letter stands for one tensor, with its shape and figures."""
    taken, given_out = flow.split(">")
    items: list[Item] = []
    for state, letters in (("input", taken), ("output", given_out)):
        for place, letter in enumerate(letters):
            values = [float(ord(letter) + number) for number in range(SHAPES[letter.lower()][0])]
            items.append(tensor(f"{state}.{place}", values, name))
    return Entry(name, parse_entry(name), items, parent)


DENSE = [
    call("Primitive.matmul.MatMul.0.forward", "xw>y", OURS),
    call("Primitive.bias_add.BiasAdd.0.forward", "yb>Y", OURS),
    call("Primitive.bias_add.BiasAdd.0.backward", "V>Yb"),
    call("Primitive.matmul.MatMul.0.backward", "Y>xw"),
]
LINEAR = [call("Functional.linear.0.forward", "xwb>y", THEIRS), call("Functional.linear.0.backward", "V>xwb")]
DENSE_ROWS = [
    ("Primitive.matmul.MatMul.0.forward.input.0", "Functional.linear.0.forward.input.0"),
    ("Primitive.matmul.MatMul.0.forward.input.1", "Functional.linear.0.forward.input.1"),
    ("Primitive.matmul.MatMul.0.forward.output.0", None),
    ("Primitive.bias_add.BiasAdd.0.forward.input.0", None),
    ("Primitive.bias_add.BiasAdd.0.forward.input.1", "Functional.linear.0.forward.input.2"),
    ("Primitive.bias_add.BiasAdd.0.forward.output.0", "Functional.linear.0.forward.output.0"),
    ("Primitive.matmul.MatMul.0.backward.input.0", None),
    ("Primitive.matmul.MatMul.0.backward.output.0", "Functional.linear.0.backward.output.0"),
    ("Primitive.matmul.MatMul.0.backward.output.1", "Functional.linear.0.backward.output.1"),
    ("Primitive.bias_add.BiasAdd.0.backward.input.0", "Functional.linear.0.backward.input.0"),
    ("Primitive.bias_add.BiasAdd.0.backward.output.0", None),
    ("Primitive.bias_add.BiasAdd.0.backward.output.1", "Functional.linear.0.backward.output.2"),
]


@pytest.mark.parametrize("inside", [True, False], ids=["in a module", "at level L1"])
def test_a_dense_is_a_linear_the_first_takes_in_and_the_last_gives_out(inside):
    modules = ([OURS], [THEIRS]) if inside else ([], [])
    pairs = pair(dump("mindspore", *DENSE, *modules[0]), dump("pytorch", *LINEAR, *modules[1]), NONE)
    groups = [one for one in pairs if one.how == "group"]
    assert [(one.target.name, one.golden.name) for one in groups] == [
        ("Primitive.bias_add.BiasAdd.0.forward", "Functional.linear.0.forward"),
        ("Primitive.bias_add.BiasAdd.0.backward", "Functional.linear.0.backward"),
    ]
    assert rows(groups) == DENSE_ROWS
    assert [one for one in pairs if not one.matched] == []


def test_the_report_says_of_what_passes_on_inside_that_it_does():
    comparison = compare_dumps(dump("mindspore", *DENSE), dump("pytorch", *LINEAR), Options(profile="own"))
    inside = {row.target.name: row.reason for row in comparison.rows if row.target and row.golden is None}
    assert inside["Primitive.matmul.MatMul.0.forward.output.0"] == PASSED_ON
    assert set(inside.values()) == {PASSED_ON}


def test_the_other_way_round_too():
    pairs = pair(dump("pytorch", *LINEAR), dump("mindspore", *DENSE), NONE)
    turned = {(ours, theirs) for theirs, ours in DENSE_ROWS}
    assert set(rows(pairs)) == turned
    assert [(one.target.name, one.golden.name, one.how) for one in pairs] == [
        ("Functional.linear.0.forward", "Primitive.bias_add.BiasAdd.0.forward", "group"),
        ("Functional.linear.0.backward", "Primitive.bias_add.BiasAdd.0.backward", "group"),
    ]


def test_calls_that_hand_nothing_on_are_no_group():
    apart = [call("Primitive.m.MatMul.0.forward", "xw>z"), call("Primitive.b.BiasAdd.0.forward", "yb>Y")]
    golden = dump("pytorch", call("Functional.linear.0.forward", "xwb>y"))
    assert paired(pair(dump("mindspore", *apart), golden, NONE)) == {}


def test_calls_with_another_between_them_are_no_group():
    between = [DENSE[0], call("Functional.relu.0.forward", "y>y", OURS), DENSE[1], entry(OURS)]
    golden = dump("pytorch", *LINEAR[:1], call("Functional.relu.0.forward", "y>y", THEIRS), THEIRS)
    found = paired(pair(dump("mindspore", *between), golden, NONE))
    assert found["Functional.relu.0.forward"] == "Functional.relu.0.forward"
    assert "Primitive.bias_add.BiasAdd.0.forward" not in found


def test_casts_of_weights_and_result_belong_to_the_norm():
    """LayerNorm casts its parameters first: what it works on is still what enters at its own first place."""
    ours = [
        call("Tensor.astype.0.forward", "w>W", OURS),
        call("Tensor.astype.1.forward", "b>B", OURS),
        call("Primitive.layer_norm.LayerNorm.0.forward", "xWB>y", OURS),
        call("Tensor.astype.2.forward", "y>y", OURS),
    ]
    golden = dump("pytorch", call("Functional.layer_norm.0.forward", "xwb>y", THEIRS), THEIRS)
    pairs = pair(dump("mindspore", *ours, OURS), golden, NONE)
    assert {row for row in rows(pairs) if row[0] and row[1] and "Functional" in row[1]} == {
        ("Primitive.layer_norm.LayerNorm.0.forward.input.0", "Functional.layer_norm.0.forward.input.0"),
        ("Tensor.astype.0.forward.input.0", "Functional.layer_norm.0.forward.input.1"),
        ("Tensor.astype.1.forward.input.0", "Functional.layer_norm.0.forward.input.2"),
        ("Tensor.astype.2.forward.output.0", "Functional.layer_norm.0.forward.output.0"),
    }


def test_casts_on_both_sides_stay_casts():
    ours = [call("Tensor.astype.0.forward", "x>X", OURS), call("Primitive.n.LayerNorm.0.forward", "Xwb>y", OURS)]
    theirs = [call("Tensor.to.0.forward", "x>X", THEIRS), call("Functional.layer_norm.0.forward", "Xwb>y", THEIRS)]
    found = paired(pair(dump("mindspore", *ours, OURS), dump("pytorch", *theirs, THEIRS), NONE))
    assert found["Tensor.astype.0.forward"] == "Tensor.to.0.forward"
    assert found["Primitive.n.LayerNorm.0.forward"] == "Functional.layer_norm.0.forward"


def test_a_module_that_is_one_call_on_the_other_side_is_all_its_calls():
    """No table knows this one: what enters the module and leaves it says enough."""
    ours = [
        call("Tensor.__sub__.0.forward", "xv>y", OURS),
        call("Functional.square.0.forward", "y>z", OURS),
        call("Primitive.reduce_mean.ReduceMean.0.forward", "z>u", OURS),
    ]
    golden = dump("pytorch", call("Functional.mse_loss.0.forward", "xv>u", THEIRS), THEIRS)
    (group, _) = pair(dump("mindspore", *ours, OURS), golden, NONE)
    assert (group.target.name, group.golden.name, group.how) == (
        "Primitive.reduce_mean.ReduceMean.0.forward", "Functional.mse_loss.0.forward", "group",
    )  # fmt: skip
    assert [row for row in rows([group]) if None not in row] == [
        ("Tensor.__sub__.0.forward.input.0", "Functional.mse_loss.0.forward.input.0"),
        ("Tensor.__sub__.0.forward.input.1", "Functional.mse_loss.0.forward.input.1"),
        ("Primitive.reduce_mean.ReduceMean.0.forward.output.0", "Functional.mse_loss.0.forward.output.0"),
    ]


# Arguments in other places.


def test_batch_norm_takes_its_statistics_in_another_order():
    same: Items = dict.fromkeys([f"input.{place}" for place in range(1, 5)], (8,))
    target = dump(
        "mindspore", entry("Primitive.bn.BatchNorm.0.forward", {"input.0": (2, 8), **same, "output.0": (2, 8)})
    )
    golden = dump("pytorch", entry("Functional.batch_norm.0.forward", {"input.0": (2, 8), **same, "output.0": (2, 8)}))
    places = {
        ours[-1]: theirs[-1] for ours, theirs in rows(pair(target, golden, NONE)) if ours and theirs and "input" in ours
    }
    assert places == {"0": "0", "3": "1", "4": "2", "1": "3", "2": "4"}


def test_gradients_recorded_from_last_to_first_stand_beside_their_own():
    shapes: list[tuple[int, ...]] = [(2, 8), (8,), (8,)]
    sides = []
    for framework, api in (("mindspore", "Primitive.bn.BatchNorm"), ("pytorch", "Torch.batch_norm")):
        places = [2, 1, 0] if framework == "mindspore" else [0, 1, 2]
        outputs: Items = {f"output.{place}": shapes[number] for place, number in enumerate(places)}
        back = entry(f"{api}.0.backward", {"input.0": (2, 8), **outputs})
        sides.append(dump(framework, entry(f"{api}.0.forward", {"input.0": (2, 8), "output.0": (2, 8)}), back))
    found = [row for row in rows(pair(*sides, NONE)) if row[0] and "backward.output" in row[0]]
    assert [(ours[-1], theirs[-1]) for ours, theirs in found] == [("0", "2"), ("1", "1"), ("2", "0")]


def test_an_embedding_takes_ids_and_table_the_other_way_round():
    target = dump(
        "mindspore", entry("Primitive.g.Gather.0.forward", {"input.0": (9, 4), "input.1": (5,), "output.0": (5, 4)})
    )
    golden = dump(
        "pytorch", entry("Functional.embedding.0.forward", {"input.0": (5,), "input.1": (9, 4), "output.0": (5, 4)})
    )
    assert [(mine[-7:], counterpart[-7:]) for mine, counterpart in rows(pair(target, golden, NONE))] == [
        ("input.0", "input.1"), ("input.1", "input.0"), ("utput.0", "utput.0"),
    ]  # fmt: skip


def products(api: str, others: list[str], beta: int | None) -> Entry:
    """A product of queries (2, 3, 4) and keys, behind what it is added to, if anything."""
    name = f"{api}.0.forward"
    shapes = dict.fromkeys(others, (2, 4, 4))
    made = entry(name, {**shapes, "output.0": (2, 4, 4)}, OURS if api.startswith("Mint") else THEIRS)
    if beta is not None:
        made.items.append(Item(name, "input", ("beta",), True, "value", "int", "int", "[]", beta, beta, beta, beta))
    return made


@pytest.mark.parametrize(("beta", "beside"), [(0, ["input.1", "input.2"]), (1, ["input.0", "input.1"])])
def test_an_operand_without_effect_stands_beside_none(beta: int, beside: list[str]) -> None:
    """``baddbmm(empty, q, k, beta=0)`` is ``bmm(q, k)``."""
    ours = products("Mint.bmm", ["input.0", "input.1"], None)
    theirs = products("Torch.baddbmm", ["input.0", "input.1", "input.2"], beta)
    assert operands(ours, theirs) == [("input.0", beside[0]), ("input.1", beside[1])]


def test_nor_does_one_of_two_calls_of_one_name() -> None:
    """What an empty tensor holds is nothing to compare."""
    places = ["input.0", "input.1", "input.2"]
    ours, theirs = (products(f"{prefix}.baddbmm", places, 0) for prefix in ("Mint", "Torch"))
    assert operands(ours, theirs) == [("input.1", "input.1"), ("input.2", "input.2")]
    ours, theirs = (products(f"{prefix}.baddbmm", places, 1) for prefix in ("Mint", "Torch"))
    assert operands(ours, theirs) == [(place, place) for place in places]


def operands(ours: Entry, theirs: Entry) -> list[tuple[str, str]]:
    """Which tensors that two calls take in stand beside each other."""
    both = dump("mindspore", ours, OURS), dump("pytorch", theirs, THEIRS)
    found = next(each for each in pair(*both, NONE) if each.target is ours)
    rows = [row for row in found.rows if row.matched and row.state == "input" and row.is_tensor(0)]
    return [(row.target.suffix, row.golden.suffix) for row in rows if row.target and row.golden]


def test_in_one_framework_functions_pair_inside_their_modules_where_one_side_calls_more() -> None:
    """The casts of an attention computed step by step are not those of the norm behind it, whatever their numbers."""
    attention, norm = "Module.attn.Attention.forward.0", "Module.norm.Norm.forward.0"

    def side(*casts: tuple[str, float]) -> Dump:
        items = [tensor("output.0", [1.0, 2.0], attention), tensor("output.0", [3.0, 4.0], norm)]
        for number, (_, size) in enumerate(casts):
            name = f"Tensor.to.{number}.forward"
            items += [tensor("input.0", [size, size + 1], name), tensor("output.0", [size, size + 1.5], name)]
        made = dump_of(items, "pytorch")
        for number, (parent, _) in enumerate(casts):
            made.entries[f"Tensor.to.{number}.forward"].parent = parent
        return made

    ours = side((norm, 5.001), (norm, 6.001))
    theirs = side((attention, 9.0), (norm, 5.0), (norm, 6.0))
    casts = {mine: other for mine, other in paired(pair(ours, theirs, NONE)).items() if mine.startswith("Tensor")}
    assert casts == {"Tensor.to.0.forward": "Tensor.to.1.forward", "Tensor.to.1.forward": "Tensor.to.2.forward"}
