"""Which parameter is which: wrappers, synonyms, prefixes; never two for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.weights.names import canonical_name, is_buffer, no_parameters, pair_names

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
    """``encoder.`` is the prefix of two, so ``decoder.0.w`` gets no counterpart by chance."""
    target = ["encoder.0.w", "encoder.1.w", "decoder.2.w"]
    pairs = pair_names(target, ["0.w", "1.w", "2.w"], Mappings())
    assert {name: golden for name, (golden, _) in pairs.items()} == {"encoder.0.w": "0.w", "encoder.1.w": "1.w"}


def test_rules_come_before_the_name_itself() -> None:
    """Two layers exchange their names."""
    rules = Mappings(layer={"TopLayer": {"a": "b", "b": "a"}})
    pairs = pair_names(["a.weight", "b.weight"], ["a.weight", "b.weight"], rules)
    assert pairs == {"a.weight": ("b.weight", "layer"), "b.weight": ("a.weight", "layer")}


WRITTEN = Mappings(
    layer={
        "TopLayer": {"network.embedding": "module.wte", "network.layers": "h"},
        "Layer": {"ffn": "mlp", "gelu": "act"},
    }
)


@pytest.mark.parametrize("wrapper", ["network.", "", "module.network."])
def test_rules_that_compare_wrote_hold_with_and_without_the_network(
    wrapper: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Their keys begin with the attribute that holds the network, which a checkpoint may have or not."""
    target = [f"{wrapper}{name}" for name in ("embedding.embedding_table", "layers.0.ffn.weight")]
    pairs = pair_names(target, ["wte.weight", "h.0.mlp.weight"], WRITTEN)
    assert pairs == {target[0]: ("wte.weight", "layer"), target[1]: ("h.0.mlp.weight", "layer")}
    (told,) = {(record.levelname, record.message) for record in caplog.records}
    assert told == (
        "INFO",
        "1 of 4 rules of the layer and cell mapping matches no parameter of the target: Layer.gelu "
        "(modules without parameters have none)",
    )


def test_rules_that_meet_nothing_at_all_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    pair_names(["a.weight"], ["b.weight"], Mappings(layer={"TopLayer": {"c": "d"}}, cell={"e.Dense": "f.Linear"}))
    (told,) = {(record.levelname, record.message) for record in caplog.records}
    assert told == (
        "WARNING",
        "the rules of the layer and cell mapping match no parameter of the target: TopLayer.c, e",
    )


def test_a_name_of_any_number_of_components_is_read() -> None:
    long = ".".join(["layers"] * 5000)
    pairs = pair_names([f"{long}.a", f"{long}.fc.w"], [f"{long}.b", f"{long}.dense.w"], Mappings(
        layer={"Layer": {"a": "b", "fc": "dense"}}
    ))  # fmt: skip
    assert pairs == {f"{long}.a": (f"{long}.b", "layer"), f"{long}.fc.w": (f"{long}.dense.w", "layer")}


def test_what_is_no_parameter() -> None:
    names = ("linear.weight", "moment1.linear.weight", "exp_avg_sq_linear.weight", "moment1.alone", "global_step")
    shapes = dict.fromkeys(names, (3,)) | {"bn.num_batches_tracked": (), "epoch": (1,)}
    assert no_parameters(shapes, of_mindspore=False) == {
        "moment1.linear.weight": "optimizer states",
        "exp_avg_sq_linear.weight": "optimizer states",
        "bn.num_batches_tracked": "counters",
        "epoch": "counters",
    }


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("backbone.mask", "float32", True),
        ("h.0.attn.bias", "bool", True),
        ("embeddings.position_ids", "int64", True),
        ("rotary.inv_freq", "float32", True),
        ("mask_token", "float32", False),
        ("fc.weight", "int8", False),
        ("fc.bias", "float16", False),
    ],
)
def test_a_buffer_is_known_by_its_dtype_or_its_name(name: str, dtype: str, expected: bool) -> None:
    assert is_buffer(name, dtype) == expected


@pytest.mark.parametrize("word", ["linear", "stat", "prev", "mu", "eta", "velocity"])
def test_a_layer_that_is_called_like_a_state_is_a_layer(word: str) -> None:
    """Only MindSpore's format keeps states among the parameters, each in its parameter's shape."""
    state = {"weight": (4, 4), f"{word}.weight": (4, 4)}
    assert no_parameters(state, of_mindspore=True) == {f"{word}.weight": "optimizer states"}
    assert no_parameters(state, of_mindspore=False) == {}
    assert no_parameters(state | {"weight": (4, 2)}, of_mindspore=True) == {}
    assert no_parameters(state | {f"{word}.bias": (4,)}, of_mindspore=True) == {}
