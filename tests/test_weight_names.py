"""Which parameter is which: wrappers, synonyms, prefixes; never two for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.mapping.files import Mappings
from msprobe_ms.weights.names import canonical_name, no_parameters, pair_names

LAYERS = st.lists(
    st.sampled_from(["encoder", "layers", "0", "1", "fc", "attention", "norm", "module", "_orig_mod", "linear"]),
    max_size=4,
)
NAMES = st.builds(
    lambda layers, last: ".".join([*layers, last]), LAYERS, st.sampled_from(["weight", "bias", "gamma", "beta", "w"])
)
RULES = Mappings(layer={"TopLayer": {"encoder": "layers"}, "Block": {"fc": "attention.fc", "0": "1"}})


@given(st.lists(NAMES, unique=True), st.lists(NAMES, unique=True), st.sampled_from([Mappings(), RULES]))
def test_each_name_pairs_at_most_once(target: list[str], golden: list[str], mappings: Mappings) -> None:
    pairs = pair_names(target, golden, mappings)
    assert set(pairs) <= set(target)
    goldens = [name for name, _ in pairs.values()]
    assert set(goldens) <= set(golden) and len(set(goldens)) == len(goldens)


@given(st.lists(NAMES, unique=True))
def test_a_file_pairs_with_itself(names: list[str]) -> None:
    assert {name: golden for name, (golden, _) in pair_names(names, names, Mappings()).items()} == {n: n for n in names}


@pytest.mark.parametrize(
    ("target", "golden"),
    [
        ("module.fc.weight", "fc.weight"),
        ("network._backbone.fc.gamma", "fc.weight"),
        ("_orig_mod.fc._orig_mod.weight", "fc.weight"),
        ("embed.embedding_table", "embed.weight"),
        ("bn.moving_mean", "module.bn.running_mean"),
    ],
)
def test_wrappers_and_synonyms(target: str, golden: str) -> None:
    assert canonical_name(target) == canonical_name(golden)
    assert pair_names([target], [golden], Mappings()) == {target: (golden, "name")}


def test_one_prefix_for_all_on_either_side() -> None:
    bare = ["embed.weight", "layers.0.fc.weight", "layers.1.fc.weight"]
    longer = [f"backbone.model.{name}" for name in bare]
    forward = pair_names(longer, bare, Mappings())
    assert {name: golden for name, (golden, _) in forward.items()} == dict(zip(longer, bare, strict=True))
    back = pair_names(bare, longer, Mappings())
    assert {name: golden for name, (golden, _) in back.items()} == dict(zip(bare, longer, strict=True))


def test_a_prefix_that_fits_one_alone_does_not_make_a_pair_of_others() -> None:
    """``encoder.`` is the prefix of two, so ``decoder.0.w`` gets no twin by chance."""
    target = ["encoder.0.w", "encoder.1.w", "decoder.2.w"]
    pairs = pair_names(target, ["0.w", "1.w", "2.w"], Mappings())
    assert {name: golden for name, (golden, _) in pairs.items()} == {"encoder.0.w": "0.w", "encoder.1.w": "1.w"}


def test_rules_come_before_the_name_itself() -> None:
    """Two layers exchange their names."""
    rules = Mappings(layer={"TopLayer": {"a": "b", "b": "a"}})
    pairs = pair_names(["a.weight", "b.weight"], ["a.weight", "b.weight"], rules)
    assert pairs == {"a.weight": ("b.weight", "layer"), "b.weight": ("a.weight", "layer")}


def test_what_is_no_parameter() -> None:
    names = ("linear.weight", "moment1.linear.weight", "exp_avg_sq_linear.weight", "moment1.alone", "global_step")
    shapes = dict.fromkeys(names, (3,)) | {"bn.num_batches_tracked": (), "epoch": (1,)}
    assert no_parameters(shapes, of_mindspore=False) == {
        "moment1.linear.weight": "optimizer states",
        "exp_avg_sq_linear.weight": "optimizer states",
        "bn.num_batches_tracked": "counters",
        "epoch": "counters",
    }


@pytest.mark.parametrize("word", ["linear", "stat", "prev", "mu", "eta", "velocity"])
def test_a_layer_that_is_called_like_a_state_is_a_layer(word: str) -> None:
    """Only MindSpore's format keeps states among the parameters, each in its parameter's shape."""
    state = {"weight": (4, 4), f"{word}.weight": (4, 4)}
    assert no_parameters(state, of_mindspore=True) == {f"{word}.weight": "optimizer states"}
    assert no_parameters(state, of_mindspore=False) == {}
    assert no_parameters(state | {"weight": (4, 2)}, of_mindspore=True) == {}
    assert no_parameters(state | {f"{word}.bias": (4,)}, of_mindspore=True) == {}
