"""Which entry and item of the target stands beside which of the golden; invariant 6, Right pairs."""

from __future__ import annotations

import logging
import random
from dataclasses import replace

import numpy as np
import pytest
import repository
from built_dumps import Items, dump, entry, module_calls, paired, rows
from compare_parts import tensor
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.pairing import entries
from msprobe_ms.comparison.pairing.entries import pair_entries
from msprobe_ms.comparison.pairing.matches import functions_of_equal_names
from msprobe_ms.comparison.pairing.pairs import pair, pair_items
from msprobe_ms.comparison.pairing.rules.data import DataPairs
from msprobe_ms.comparison.pairing.rules.files import Mappings, load_mappings
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.reading.reader import read_dump

DATA = repository.DATA / "mapping"
NONE = Mappings()


@pytest.fixture
def log(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("msprobe_ms"), "propagate", True)
    return caplog


def hows(pairs) -> dict[str, str]:
    return {one.target.name: one.how for one in pairs if one.target}


# Names.


def test_one_framework_pairs_by_name_in_target_order_with_the_golden_surplus_last():
    target = dump("mindspore", "Functional.add.0.forward", "Cell.a.B.forward.0", "Tensor.x.0.forward")
    golden = dump("mindspore", "Mint.y.0.forward", "Cell.a.B.forward.0", "Functional.add.0.forward")
    pairs = pair(target, golden, NONE)
    assert [(p.target and p.target.name, p.golden and p.golden.name, p.how) for p in pairs] == [
        ("Functional.add.0.forward", "Functional.add.0.forward", "name"),
        ("Cell.a.B.forward.0", "Cell.a.B.forward.0", "name"),
        ("Tensor.x.0.forward", None, ""),
        (None, "Mint.y.0.forward", ""),
    ]


@pytest.mark.parametrize(("mappings", "how"), [(NONE, "name"), (Mappings(cell={}), "cell")])
def test_a_cell_pairs_with_the_module_of_its_name_whatever_the_classes(mappings, how):
    target = dump("mindspore", *module_calls("Cell", "fc1", "Dense"))
    golden = dump("pytorch", *module_calls("Module", "fc1", "Linear"))
    pairs = pair(target, golden, mappings)
    assert paired(pairs) == {
        "Cell.fc1.Dense.forward.0": "Module.fc1.Linear.forward.0",
        "Cell.fc1.Dense.backward.0": "Module.fc1.Linear.backward.0",
        "Cell.fc1.Dense.parameters_grad.0": "Module.fc1.Linear.parameters_grad.0",
    }
    assert set(hows(pairs).values()) == {how}


def test_where_a_path_has_two_classes_the_class_decides():
    target = dump("mindspore", "Cell.fc.Dense.forward.0", "Cell.fc.Other.forward.0")
    golden = dump("mindspore", "Cell.fc.Lora.forward.0", "Cell.fc.Dense.forward.0")
    assert paired(pair(target, golden, NONE)) == {"Cell.fc.Dense.forward.0": "Cell.fc.Dense.forward.0"}


def test_parameter_gradients_pair_with_and_without_a_call_index():
    target = dump("mindspore", "Cell.fc.Dense.parameters_grad")
    golden = dump("pytorch", "Module.fc.Linear.parameters_grad.0")
    assert len(paired(pair(target, golden, NONE))) == 1


def test_names_of_no_grammar_and_saved_tensors_pair_by_name():
    target = dump("mindspore", "something odd", "loss.0.debug", "loss.1.debug")
    golden = dump("pytorch", "loss.1.debug", "something odd")
    assert paired(pair(target, golden, NONE)) == {"something odd": "something odd", "loss.1.debug": "loss.1.debug"}


def test_a_loss_that_one_side_alone_recorded_is_left_out_but_not_what_a_script_saved():
    layer, loss = "Cell.fc.Dense.forward.0", "loss.0.debug"
    with_loss, without = dump("mindspore", layer, loss), dump("mindspore", layer)
    for target, golden in ((with_loss, without), (without, with_loss)):
        assert rows(pair(target, golden, NONE)) == rows(pair(without, without, NONE))
    saved = replace(dump("mindspore", "x.0.debug", loss), level="debug")
    (_, alone) = pair(saved, replace(dump("mindspore", "x.0.debug"), level="debug"), NONE)
    assert alone.target is not None and alone.target.name == loss and not alone.matched


def test_right_pairs_surplus_calls_are_unmatched_not_shifted():
    target = dump("mindspore", *module_calls("Cell", "act", "ReLU", 3))
    golden = dump("pytorch", *module_calls("Module", "act", "ReLU", 2))
    pairs = pair(target, golden, NONE)
    assert paired(pairs) == {
        f"Cell.act.ReLU.{way}.{call}": f"Module.act.ReLU.{way}.{call}"
        for way in ("forward", "backward", "parameters_grad")
        for call in (0, 1)
    }
    assert [p.target.name for p in pairs if not p.matched] == [
        "Cell.act.ReLU.forward.2",
        "Cell.act.ReLU.backward.2",
        "Cell.act.ReLU.parameters_grad.2",
    ]


# Cell mapping.


def test_cell_mapping_moves_what_it_names_and_leaves_the_rest():
    target = dump("mindspore", *module_calls("Cell", "fc2", "Dense"), *module_calls("Cell", "fc3", "Dense"))
    golden = dump("pytorch", *module_calls("Module", "head", "Linear"), *module_calls("Module", "fc3", "Linear"))
    pairs = pair(target, golden, Mappings(cell={"fc2.Dense": "head.Linear"}))
    assert all(p.matched for p in pairs)
    assert paired(pairs)["Cell.fc2.Dense.backward.0"] == "Module.head.Linear.backward.0"


def test_a_rule_that_leads_nowhere_is_named_and_its_cell_is_not_paired_otherwise(log):
    target = dump("mindspore", "Cell.fc2.Dense.forward.0")
    golden = dump("pytorch", "Module.fc2.Linear.forward.0")
    assert paired(pair(target, golden, Mappings(cell={"fc2.Dense": "haed.Linear", "fc9.Dense": "x.Y"}))) == {}
    assert "mapping rules that lead to no module of the golden dump: fc2.Dense" in log.text
    assert "mapping rules that meet no module of the target: fc9.Dense" in log.text
    assert "classes here: Dense" in log.text


# Layer mapping.


def test_rules_below_a_misspelt_one_are_not_accused(log):
    """The class of the layer is misspelt, so that nothing inside it is found; the rules inside are right."""
    names = [("layers.0", "Layer"), ("layers.0.attention", "Attention"), ("layers.0.attention.out", "Dense")]
    target = dump("mindspore", *(f"Cell.{path}.{kind}.forward.0" for path, kind in names), "Cell.fc.Dense.forward.0")
    golden = dump("pytorch", *(f"Module.{path}.forward.0" for path in ("h.0.Block", "h.0.attn.A", "h.0.attn.proj.L")))
    rules = {"TopLayer": {"layers": "h", "fc": "haed"}, "Layr": {"attention": "attn"}, "Attention": {"out": "proj"}}
    pair(target, golden, Mappings(layer=rules))
    assert 'mapping rules that meet no module of the target: Layr.attention (did you mean "Layer"?)\n' in log.text
    assert "mapping rules that lead to no module of the golden dump: TopLayer.fc\n" in log.text


def test_two_targets_for_one_golden_the_most_specific_wins_and_it_is_said(log):
    target = dump("mindspore", *module_calls("Cell", "b", "Dense"), *module_calls("Cell", "a", "Dense"))
    golden = dump("pytorch", *module_calls("Module", "b", "Linear"))
    pairs = pair(target, golden, Mappings(layer={"TopLayer": {"a": "b"}}))
    assert paired(pairs) == {
        f"Cell.a.Dense.{way}.0": f"Module.b.Linear.{way}.0" for way in ("forward", "backward", "parameters_grad")
    }
    assert "two target modules for one golden module" in log.text
    assert "b.Dense (to b.Linear)" in log.text


def test_mappings_combine_and_the_most_specific_wins():
    target = dump("mindspore", *(f"Cell.{name}.Dense.forward.0" for name in ("a", "b", "c", "d")))
    golden = dump("pytorch", *(f"Module.{name}.Linear.forward.0" for name in ("w", "x", "y", "d")))
    mappings = Mappings(
        cell={"a.Dense": "d.Linear", "b.Dense": "d.Linear", "c.Dense": "y.Linear"},
        layer={"TopLayer": {"a": "d", "b": "x"}},
        data={"Cell.a.Dense.forward.0": "Module.w.Linear.forward.0"},
    )
    pairs = pair(target, golden, mappings)
    assert paired(pairs) == {
        "Cell.a.Dense.forward.0": "Module.w.Linear.forward.0",
        "Cell.b.Dense.forward.0": "Module.x.Linear.forward.0",
        "Cell.c.Dense.forward.0": "Module.y.Linear.forward.0",
    }
    assert list(hows(pairs).values()) == ["data", "layer", "cell", ""]


def test_the_network_itself_may_be_a_module_on_one_side_only():
    target = dump(
        "mindspore",
        entry("Functional.add.0.forward", parent="Cell.Net.forward.0"),
        "Cell.fc.Dense.forward.0",
        "Cell.Net.forward.0",
    )
    golden = dump(
        "pytorch", entry("Torch.add.0.forward"), entry("Module.fc.Linear.forward.0", parent="Module.x.X.forward.0")
    )
    assert paired(pair(target, golden, NONE))["Functional.add.0.forward"] == "Torch.add.0.forward"


# APIs across frameworks.


def scoped(prefix: str, api: str, module: str, first: int, calls: int):
    way = "Cell" if module.startswith("Cell") else "Module"
    assert module.startswith(way)
    forward = [entry(f"{prefix}.{api}.{first + k}.forward", parent=f"{module}.forward.0") for k in range(calls)]
    backward = [
        entry(f"{prefix}.{api}.{first + k}.backward", parent=f"{module}.backward.0") for k in reversed(range(calls))
    ]
    return [*forward, f"{module}.forward.0", *backward, f"{module}.backward.0"]


def test_apis_pair_inside_their_module_call_whatever_their_prefix_and_global_index():
    target = dump("mindspore", *scoped("Functional", "matmul", "Cell.a.Attention", 7, 2))
    golden = dump("pytorch", *scoped("Torch", "matmul", "Module.z.SelfAttention", 3, 2))
    assert paired(pair(target, golden, Mappings(layer={"TopLayer": {"a": "z"}}))) == {
        "Functional.matmul.7.forward": "Torch.matmul.3.forward",
        "Functional.matmul.8.forward": "Torch.matmul.4.forward",
        "Functional.matmul.7.backward": "Torch.matmul.3.backward",
        "Functional.matmul.8.backward": "Torch.matmul.4.backward",
        "Cell.a.Attention.forward.0": "Module.z.SelfAttention.forward.0",
        "Cell.a.Attention.backward.0": "Module.z.SelfAttention.backward.0",
    }


def test_apis_whose_counts_differ_in_their_module_call_stay_unmatched():
    target = dump("mindspore", *scoped("Tensor", "reshape", "Cell.a.A", 0, 2))
    golden = dump("pytorch", *scoped("Tensor", "reshape", "Module.a.A", 0, 3))
    assert set(paired(pair(target, golden, NONE))) == {"Cell.a.A.forward.0", "Cell.a.A.backward.0"}


def test_without_parents_on_one_side_apis_pair_over_the_whole_step_when_equally_many():
    target = dump("mindspore", *scoped("Tensor", "reshape", "Cell.a.A", 0, 2))
    golden = dump("pytorch", "Tensor.reshape.0.forward", "Tensor.reshape.1.forward")
    assert paired(pair(target, golden, NONE)) == {
        "Tensor.reshape.0.forward": "Tensor.reshape.0.forward",
        "Tensor.reshape.1.forward": "Tensor.reshape.1.forward",
    }


# Data mapping.


def test_data_mapping_moves_single_items_and_the_rest_pairs_as_ever():
    target = dump("mindspore", "Cell.a.A.forward.0", "Cell.b.A.forward.0")
    golden = dump("pytorch", "Module.a.A.forward.0", "Module.b.A.forward.0")
    pairs = pair(target, golden, Mappings(data={"Cell.a.A.forward.0.output.0": "Module.b.A.forward.0.input.0"}))
    assert rows(pairs) == [
        ("Cell.a.A.forward.0.input.0", "Module.a.A.forward.0.input.0"),
        ("Cell.a.A.forward.0.output.0", "Module.b.A.forward.0.input.0"),
        (None, "Module.a.A.forward.0.output.0"),
        ("Cell.b.A.forward.0.input.0", None),
        ("Cell.b.A.forward.0.output.0", "Module.b.A.forward.0.output.0"),
    ]
    assert set(hows(pairs).values()) == {"name"}


def test_a_golden_entry_whose_items_are_all_placed_is_not_listed_again():
    target = dump("mindspore", "Cell.a.A.forward.0")
    golden = dump("pytorch", "Module.a.A.forward.0", entry("Torch.f.0.forward", {"output.0": (2, 3)}))
    pairs = pair(target, golden, Mappings(data={"Cell.a.A.forward.0.output.0": "Torch.f.0.forward.output.0"}))
    assert [p.golden.name for p in pairs] == ["Module.a.A.forward.0"]


@pytest.mark.parametrize(
    "data",
    [
        {"Functional.f.4.forward": "NPU.g.1.forward"},
        {f"Functional.f.4.forward.{item}": f"NPU.g.1.forward.{item}" for item in ("input.0", "output.0")},
        {"Functional.f.4.forward.input.0": "NPU.g.1.forward.input.0"},
    ],
)
def test_data_mapping_pairs_entries_by_name_or_by_their_items(data):
    target = dump("mindspore", "Functional.f.4.forward", "Functional.f.4.backward", "Functional.h.0.forward")
    golden = dump("pytorch", "NPU.g.1.forward", "NPU.g.1.backward", "Torch.h.0.forward")
    pairs = pair(target, golden, Mappings(data=data))
    assert hows(pairs)["Functional.f.4.forward"] == "data"
    assert paired(pairs)["Functional.f.4.forward"] == "NPU.g.1.forward"
    assert paired(pairs)["Functional.h.0.forward"] == "Torch.h.0.forward"
    assert all(a and b for a, b in rows(pairs) if a and a.startswith("Functional.f.4.forward"))


def test_right_pairs_a_backward_follows_its_forward_through_the_data_mapping():
    target = dump("mindspore", "Functional.f.4.forward", "Functional.f.4.backward")
    golden = dump("pytorch", "NPU.g.0.backward", "NPU.g.1.forward", "NPU.g.1.backward")
    pairs = pair(target, golden, Mappings(data={"Functional.f.4.forward": "NPU.g.1.forward"}))
    assert paired(pairs)["Functional.f.4.backward"] == "NPU.g.1.backward"


def test_unknown_data_names_are_listed_once_and_skipped(log):
    target, golden = dump("mindspore", "Cell.a.A.forward.0"), dump("pytorch", "Module.a.A.forward.0")
    data = {f"Cell.no{number}.X.forward.0": "Module.a.A.forward.0" for number in range(30)}
    assert len(paired(pair(target, golden, Mappings(data=data)))) == 1
    assert log.text.count("data mapping:") == 1
    assert "30 names are not in the dump and skipped: Cell.no0.X.forward.0 (target)" in log.text
    assert "and 20 more" in log.text


def test_an_entry_beside_an_item_is_no_data_pair(log):
    target, golden = dump("mindspore", "Cell.a.A.forward.0"), dump("pytorch", "Module.a.A.forward.0")
    pair(target, golden, Mappings(data={"Cell.a.A.forward.0": "Module.a.A.forward.0.input.0"}))
    assert "Cell.a.A.forward.0: Module.a.A.forward.0.input.0 (an entry beside an item)" in log.text


def test_two_data_lines_for_one_golden_the_first_counts(log):
    target = dump("mindspore", "Cell.a.A.forward.0", "Cell.b.A.forward.0")
    golden = dump("pytorch", "Module.z.A.forward.0")
    data = {"Cell.a.A.forward.0": "Module.z.A.forward.0", "Cell.b.A.forward.0": "Module.z.A.forward.0"}
    assert paired(pair(target, golden, Mappings(data=data))) == {"Cell.a.A.forward.0": "Module.z.A.forward.0"}
    assert "taken by an earlier line, skipped: Cell.b.A.forward.0" in log.text


# Fuzzy.


def test_fuzzy_ignores_call_indices_and_keeps_backward_with_its_forward():
    target = dump("mindspore", *module_calls("Cell", "a", "A", 2))
    golden = dump(
        "mindspore",
        "Cell.a.A.forward.3",
        "Cell.a.A.forward.7",
        "Cell.a.A.backward.7",
        "Cell.a.A.backward.3",
    )
    assert paired(pair(target, golden, NONE, fuzzy=True)) == {
        "Cell.a.A.forward.0": "Cell.a.A.forward.3",
        "Cell.a.A.forward.1": "Cell.a.A.forward.7",
        "Cell.a.A.backward.0": "Cell.a.A.backward.3",
        "Cell.a.A.backward.1": "Cell.a.A.backward.7",
    }
    assert paired(pair(target, golden, NONE)) == {}


def test_fuzzy_keeps_a_surplus_call_where_it_happened():
    target = dump(
        "mindspore", *(f"Functional.{n}.forward" for n in ("relu.0", "add.0", "relu.1", "relu.2", "mul.0", "relu.3"))
    )
    golden = dump("mindspore", *(f"Functional.{n}.forward" for n in ("relu.0", "add.0", "relu.1", "mul.0", "relu.2")))
    found = paired(pair(target, golden, NONE, fuzzy=True))
    assert found["Functional.relu.3.forward"] == "Functional.relu.2.forward"
    assert "Functional.relu.2.forward" not in found


def test_fuzzy_works_through_a_layer_mapping():
    target = dump("mindspore", *module_calls("Cell", "a", "A", 2))
    golden = dump("pytorch", "Module.z.A.forward.4", "Module.z.A.forward.5", "Module.z.A.backward.5")
    pairs = pair(target, golden, Mappings(layer={"TopLayer": {"a": "z"}}), fuzzy=True)
    assert paired(pairs)["Cell.a.A.backward.1"] == "Module.z.A.backward.5"
    assert hows(pairs)["Cell.a.A.forward.0"] == "layer"


# Real dumps.


def real(name: str) -> Dump:
    return read_dump(DATA / name)


def encoder_mapping() -> Mappings:
    return load_mappings(layer=DATA / "encoder_layer_mapping.yaml")


@pytest.mark.parametrize("fuzzy", [False, True])
def test_every_entry_and_item_of_two_real_encoders_pairs_through_the_layer_mapping(fuzzy):
    pairs = pair(real("encoder_mindspore_L0"), real("encoder_pytorch_L0"), encoder_mapping(), fuzzy=fuzzy)
    assert len(pairs) == 137
    assert all(p.matched for p in pairs)
    lone = [row for p in pairs for row in p.rows if not row.matched]
    assert lone == []
    assert all(row.target.shape == row.golden.shape for p in pairs for row in p.rows)


def test_apis_of_real_encoders_pair_inside_their_modules():
    found = paired(pair(real("encoder_mindspore_mix"), real("encoder_pytorch_mix"), encoder_mapping()))
    assert found["Functional.matmul.3.backward"] == "Torch.matmul.3.backward"
    assert found["Functional.gelu.1.forward"] == "Functional.gelu.1.forward"
    assert found["Tensor.reshape.7.forward"] == "Tensor.reshape.7.forward"
    alone = {name.split(".")[1] for name in real("encoder_mindspore_mix").entries if name not in found}
    assert alone & {"layer_norm", "gather"} == set()
    modules = {name for name in found if name.startswith("Cell")}
    assert modules == {name for name in real("encoder_mindspore_mix").entries if name.startswith("Cell")}


def test_real_lenets_pair_without_any_mapping_a_shared_relu_call_by_call():
    pairs = pair(real("lenet_mindspore_mix"), real("lenet_pytorch_mix"), NONE)
    found = paired(pairs)
    assert [found[f"Cell.relu.ReLU.backward.{k}"] for k in range(4)] == [
        f"Module.relu.ReLU.backward.{k}" for k in range(4)
    ]
    assert (
        "Cell.bn1.BatchNorm2d.forward.0.parameters.gamma",
        "Module.bn1.BatchNorm2d.forward.0.parameters.weight",
    ) in rows(pairs)
    assert found["Functional.flatten.0.forward"] == "Tensor.flatten.0.forward"
    shapes = [
        (row.target.shape, row.golden.shape)
        for p in pairs
        for row in p.rows
        if row.matched and row.target.kind == "tensor"
    ]
    assert all(ours == theirs for ours, theirs in shapes)


# Properties.


@st.composite
def networks(draw):
    """Module paths with classes, some below a numbered container, and the calls each makes."""
    classes = {
        name: draw(
            st.dictionaries(st.sampled_from(("fc", "norm", "attn", "layers")), st.sampled_from("ABC"), max_size=3)
        )
        for name in "ABC"
    }
    modules: list[tuple[tuple[str, ...], str]] = []

    def grow(path: tuple[str, ...], class_name: str, depth: int) -> None:
        for child, child_class in classes[class_name].items():
            places = [(*path, child, str(number)) for number in range(2)] if child == "layers" else [(*path, child)]
            for place in places:
                modules.append((place, child_class))
                if depth < 2:
                    grow(place, child_class, depth + 1)

    grow((), "A", 0)
    calls = [draw(st.integers(1, 3)) for _ in modules]
    return classes, list(zip(modules, calls, strict=True))


def written(prefix: str, network, rename=lambda path: path, suffix: str = "") -> list:
    made = []
    for (path, class_name), calls in network:
        module = ".".join(rename(path))
        made.extend(module_calls(prefix, module, class_name + suffix, calls))
        for call in range(calls):
            parent = f"{prefix}.{module}.{class_name}{suffix}"
            first = len(made)
            for index in (first, first + 1):
                made.append(entry(f"Functional.f.{index}.forward", parent=f"{parent}.forward.{call}"))
            for index in (first + 1, first):
                made.append(entry(f"Functional.f.{index}.backward", parent=f"{parent}.backward.{call}"))
    return made


@given(networks(), st.booleans())
def test_right_pairs_equal_dumps_pair_wholly_each_with_itself(drawn, fuzzy):
    _, network = drawn
    entries = written("Cell", network)
    pairs = pair(dump("mindspore", *entries), dump("mindspore", *entries), NONE, fuzzy=fuzzy)
    assert paired(pairs) == {one.name: one.name for one in entries}
    assert all(ours == theirs for ours, theirs in rows(pairs))


@given(networks(), st.randoms(use_true_random=False), st.booleans())
def test_right_pairs_a_renamed_dump_pairs_back_through_its_layer_mapping(drawn, chance: random.Random, fuzzy):
    classes, network = drawn
    rules: dict[str, dict[str, str]] = {}
    for name, children in classes.items():
        values = [*children, *(f"new{k}.sub" for k in range(2))]
        chance.shuffle(values)
        rules[name] = dict(zip(children, values, strict=False))
    class_of = dict(path_class for path_class, _ in network)

    def rename(path: tuple[str, ...]) -> tuple[str, ...]:
        result: list[str] = []
        for place, part in enumerate(path):
            parent = class_of.get(path[:place]) if place else "A"
            result.extend(rules[parent].get(part, part).split(".") if parent else [part])
        return tuple(result)

    target, golden = written("Cell", network), written("Module", network, rename, "Torch")
    mappings = Mappings(layer={**rules, "TopLayer": rules["A"]})
    pairs = pair(dump("mindspore", *target), dump("pytorch", *golden), mappings, fuzzy=fuzzy)
    assert paired(pairs) == {ours.name: theirs.name for ours, theirs in zip(target, golden, strict=True)}


@given(networks(), st.randoms(use_true_random=False), st.sampled_from(("mindspore", "pytorch")))
def test_right_pairs_the_order_in_the_file_never_crosses_backward(drawn, chance: random.Random, framework):
    _, network = drawn
    target, golden = written("Cell", network), written("Cell" if framework == "mindspore" else "Module", network)
    expected = {ours.name: theirs.name for ours, theirs in zip(target, golden, strict=True)}
    chance.shuffle(target)
    chance.shuffle(golden)
    assert paired(pair(dump("mindspore", *target), dump(framework, *golden), NONE)) == expected


@given(networks(), networks(), st.booleans())
def test_right_pairs_no_entry_and_no_item_stands_twice_or_is_lost(one, other, fuzzy):
    target, golden = dump("mindspore", *written("Cell", one[1])), dump("pytorch", *written("Module", other[1]))
    pairs = pair(target, golden, Mappings(layer={"B": {"fc": "norm", "norm": "attn"}}), fuzzy=fuzzy)
    ours, theirs = zip(*rows(pairs), strict=True) if rows(pairs) else ((), ())
    assert [name for name in ours if name] == [item.name for e in target.entries.values() for item in e.items]
    assert sorted(name for name in theirs if name) == sorted(
        item.name for e in golden.entries.values() for item in e.items
    )


def beside(target: Items, golden: Items, name: str = "Cell.a.B.forward.0") -> list[tuple[str | None, str | None]]:
    ours, theirs = entry(name, target), entry(name.replace("Cell", "Module"), golden)
    return [(a.suffix if a else None, b.suffix if b else None) for a, b in pair_items(ours.items, theirs.items)]


def test_equal_suffixes_pair_and_a_surplus_stands_alone():
    assert beside(
        {"input.0": (1,), "input.1": (2,), "output.0": (1,)}, {"output.0": (1,), "input.0": (9,), "output.1": (3,)}
    ) == [
        ("input.0", "input.0"),
        ("input.1", None),
        ("output.0", "output.0"),
        (None, "output.1"),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("gamma", "weight"),
        ("beta", "bias"),
        ("embedding_table", "weight"),
        ("moving_mean", "running_mean"),
        ("moving_variance", "running_var"),
        ("norm.gamma", "norm.weight"),
    ],
)
def test_parameters_pair_by_meaning(ours, theirs):
    assert beside({f"parameters.{ours}": (3,)}, {f"parameters.{theirs}": (3,)}) == [
        (f"parameters.{ours}", f"parameters.{theirs}")
    ]
    assert beside({f"parameters.{theirs}": (3,)}, {f"parameters.{ours}": (3,)}) == [
        (f"parameters.{theirs}", f"parameters.{ours}")
    ]
    name = "Cell.a.B.parameters_grad.0"
    assert beside({ours: (3,)}, {theirs: (3,)}, name) == [(ours, theirs)]


def test_an_equal_name_comes_before_an_equal_meaning():
    both: Items = {"parameters.gamma": (3,), "parameters.weight": (3,)}
    assert beside(both, both) == [(name, name) for name in both]


def test_an_input_named_gamma_is_no_parameter():
    assert beside({"input.gamma=": (3,)}, {"input.weight=": (2,)}) == [("input.gamma", None), (None, "input.weight")]


def test_keywords_that_both_sides_name_otherwise_pair_in_order_of_equal_shapes():
    ours: Items = {"input.x=": (2, 3), "input.mask=": (4,)}
    theirs: Items = {"input.hidden_states=": (2, 3), "input.mask=": (4,)}
    assert beside(ours, theirs) == [("input.x", "input.hidden_states"), ("input.mask", "input.mask")]


def test_inputs_in_a_container_pair_with_inputs_in_none():
    ours: Items = {"input.0": (2, 3), "input.1": (4,)}
    both = [("input.0", "input.0.0"), ("input.1", "input.0.1")]
    assert beside(ours, {"input.0.0": (2, 3), "input.0.1": (4,)}) == both
    assert ("input.0", "input.0.0") not in beside(ours, {"input.0.0": (3, 2), "input.0.1": (4,)})


def test_keywords_pair_by_name():
    assert beside({"input.b=": (1,), "input.a=": (1,)}, {"input.a=": (1,), "input.b=": (1,)}) == [
        ("input.b", "input.b"),
        ("input.a", "input.a"),
    ]


def test_positional_tensors_pair_with_keyword_tensors_of_equal_shapes():
    ours: Items = {"input.0": (1,), "input.1": (2, 2), "input.2": (3,)}
    theirs: Items = {"input.0": (1,), "input.mask=": (2, 2), "input.bias=": (3,)}
    assert beside(ours, theirs)[1:] == [("input.1", "input.mask"), ("input.2", "input.bias")]
    assert beside(theirs, ours)[1:] == [("input.mask", "input.1"), ("input.bias", "input.2")]


def test_positional_and_keyword_tensors_of_other_shapes_stay_alone():
    ours: Items = {"input.0": (1,), "input.1": (2, 2)}
    assert beside(ours, {"input.0": (1,), "input.mask=": (2, 3)})[1:] == [("input.1", None), (None, "input.mask")]
    assert len(beside(ours, {"input.0": (1,), "input.a=": (2, 2), "input.b=": (2, 2)})) == 4


def test_gradients_pair_past_null_places():
    backward = "Cell.a.B.backward.0"
    ours: Items = {"output.0": None, "output.1": (6, 5), "output.2": (6,)}
    theirs: Items = {"output.0": (6, 5), "output.1": (6,)}
    assert beside(ours, theirs, backward) == [("output.0", None), ("output.1", "output.0"), ("output.2", "output.1")]


def test_gradients_of_other_shapes_are_not_of_the_same_thing():
    backward = "Cell.a.B.backward.0"
    assert beside({"output.0": (2, 2, 8)}, {"output.0": (4, 8)}, backward) == [("output.0", None), (None, "output.0")]


def test_forward_outputs_of_other_shapes_still_pair():
    assert beside({"output.0": (2, 2, 8)}, {"output.0": (4, 8)}) == [("output.0", "output.0")]


def test_nothing_beside_nothing():
    assert beside({}, {}) == []


def call_items(*places: tuple[str, tuple[int, ...], type]) -> list[Item]:
    return [tensor(place, np.ones(shape, kind), "Cell.net.Net.forward.0") for place, shape, kind in places]


def standing(ours: list[Item], theirs: list[Item]) -> list[tuple[str | None, str | None]]:
    return [(mine and mine.suffix, other and other.suffix) for mine, other in pair_items(ours, theirs)]


def test_what_one_side_gives_out_in_a_container_stands_beside_what_the_other_gives_out_in_none():
    ours = call_items(("output.0.last_hidden_state", (2, 3), np.float32), ("output.0.pooled", (2,), np.float32))
    assert standing(ours, call_items(("output.0", (2, 3), np.float32), ("output.1", (2,), np.float32))) == [
        ("output.0.last_hidden_state", "output.0"),
        ("output.0.pooled", "output.1"),
    ]
    of_other_shapes = call_items(("output.0", (3, 2), np.float32), ("output.1", (2,), np.float32))
    assert all(None in both for both in standing(ours, of_other_shapes))


def test_indices_never_stand_beside_floats_of_another_number():
    tokens, hidden = call_items(("input.0", (2, 7), np.int64)), call_items(("input.0", (2, 7, 8), np.float32))
    assert standing(tokens, hidden) == [("input.0", None), (None, "input.0")]
    assert standing(hidden, tokens) == [("input.0", None), (None, "input.0")]
    longer = call_items(("input.0", (2, 8), np.int64))
    assert standing(tokens, longer) == [("input.0", "input.0")]
    as_floats = call_items(("input.0", (2, 7), np.float32))
    assert standing(tokens, as_floats) == [("input.0", "input.0")]


NAMES = st.lists(
    st.sampled_from(
        [
            *(f"Functional.{name}.{number}.{way}" for name in ("add", "mul") for number in (0, "00", 1, 2)
              for way in ("forward", "backward")),
            "Tensor.٣.٣.forward", "Cell.a.B.forward.0", "loss.0.debug", "Optimizer.a.weight.0.forward", "no grammar",
        ]
    ),
    unique=True,
    max_size=9,
)  # fmt: skip


@given(NAMES, st.booleans(), st.sampled_from(["mindspore", "pytorch"]))
def test_functions_of_equal_names_are_paired_as_the_general_rules_pair_them(names, in_a_module, framework):
    parent = "Cell.a.B.forward.0" if in_a_module else None
    target, golden = (dump(side, *(entry(name, parent=parent) for name in names)) for side in ("mindspore", framework))
    found = pair_entries(target, golden, NONE, DataPairs())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(entries, "functions_of_equal_names", lambda *dumps: False)
        assert pair_entries(target, golden, NONE, DataPairs()) == found


def test_only_functions_outside_of_modules_are_paired_by_equal_names():
    plain = ["Functional.add.0.forward", "Tensor.mul.10.backward"]
    one = dump("mindspore", *plain)
    assert functions_of_equal_names(one, dump("mindspore", *reversed(plain)))
    assert not functions_of_equal_names(one, dump("pytorch", *plain))
    assert not functions_of_equal_names(one, dump("mindspore", *plain[:1]))
    for other in (
        "Cell.a.B.forward.0",
        "Functional.add.00.forward",
        "loss.0.debug",
        "no grammar",
        "Kernel.Add.0.forward",
    ):
        assert not functions_of_equal_names(*(dump("mindspore", *plain, other) for _ in range(2)))
