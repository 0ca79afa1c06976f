"""Where a parameter belongs, by where the parameters around it are."""

from __future__ import annotations

import pytest

from msprobe_ms.weights.siblings import crosswise, pair_by_place

#: A parameter of a block → what the other network calls it.
LAST = {
    "norm1.gamma": "input_norm.weight", "norm1.beta": "input_norm.bias",
    "attention.q.weight": "attn.wq.weight", "attention.k.weight": "attn.wk.weight", "attention.k.bias": "attn.wk.bias",
    "norm2.gamma": "post_norm.weight", "norm2.beta": "post_norm.bias",
    "fc1.weight": "mlp.up.weight", "fc1.bias": "mlp.up.bias",
}  # fmt: skip
PAIRS = {
    "embed.embedding_table": "wte.weight",
    **{f"blocks.{n}.{mine}": f"layers.{n}.{theirs}" for n in range(12) for mine, theirs in LAST.items()},
    "norm.gamma": "final.weight",
    "norm.beta": "final.bias",
}
#: All that can be exchanged with each other, by shape.
SHAPES = {name: (4, 4) if name.endswith("weight") else (4,) for name in PAIRS}


def exchanged(*names: str) -> dict[str, str]:
    """The pairs that equal numbers make where each of ``names`` was given what the next one should have."""
    after = dict(zip(names, (*names[1:], names[0]), strict=True))
    return PAIRS | {name: PAIRS[other] for name, other in after.items()}


@pytest.mark.parametrize(
    "names",
    [
        ("blocks.1.fc1.weight", "blocks.2.fc1.weight"),
        ("blocks.1.fc1.weight", "blocks.2.fc1.weight", "blocks.10.fc1.weight"),
        ("blocks.3.attention.q.weight", "blocks.3.attention.k.weight"),
        ("blocks.3.norm1.gamma", "blocks.3.norm2.gamma"),
        ("blocks.0.norm2.beta", "norm.beta"),
    ],
)
def test_what_contradicts_the_other_pairs_is_found_with_its_counterpart(names: tuple[str, ...]) -> None:
    assert crosswise(exchanged(*names), SHAPES) == {name: PAIRS[name] for name in names}


def test_whole_blocks_that_are_exchanged_contradict_the_order() -> None:
    other = {"1": "2", "2": "1"}
    pairs = dict(PAIRS)
    for name in PAIRS:
        kind, _, rest = name.partition(".")
        number, _, last = rest.partition(".")
        if kind == "blocks" and number in other:
            pairs[name] = PAIRS[f"blocks.{other[number]}.{last}"]
    assert set(crosswise(pairs, SHAPES)) == {name for name in PAIRS if name.startswith(("blocks.1.", "blocks.2."))}


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        {name: PAIRS[name] for name in sorted(PAIRS)},
        # Modules that the other network has by kind, not by block, and numbers that stand the other way round.
        {f"blocks.{n}.{last}.weight": f"{last}s.{n}.weight" for n in range(6) for last in ("q", "k", "fc1", "fc2")},
        {f"blocks.{n}.expert.{m}.weight": f"expert{m}.block{n}.weight" for n in range(12) for m in range(3)},
        {"net.0.weight": "fc1.weight", "net.2.weight": "fc2.weight", "net.4.weight": "head.weight"},
    ],
)
def test_a_renaming_that_is_one_contradicts_nothing(pairs: dict[str, str]) -> None:
    assert crosswise(pairs, dict.fromkeys(pairs, (4, 4))) == {}


def is_constant(name: str) -> bool:
    return "norm" in name or name.endswith("bias") or name.startswith("final")


def numbers_of(name: str) -> str:
    return "ones" if name.endswith(("gamma", "weight")) else "zeros"


def test_constants_pair_by_the_modules_that_their_siblings_are_in() -> None:
    trained = {mine: theirs for mine, theirs in PAIRS.items() if not is_constant(theirs)}
    constant = {mine: theirs for mine, theirs in PAIRS.items() if is_constant(theirs)}
    ours = {name: numbers_of(name) for name in constant}
    theirs = {name: numbers_of(name) for name in sorted(constant.values())}
    assert pair_by_place(ours, theirs, trained) == constant


def test_constants_pair_in_order_where_nothing_else_tells_and_not_where_one_side_has_more() -> None:
    ours = {"bn.moving_mean": 0, "bn.moving_variance": 1, "bn.gamma": 1, "bn.beta": 0}
    theirs = {"b.weight": 1, "b.bias": 0, "b.running_mean": 0, "b.running_var": 1}
    assert pair_by_place(ours, theirs, {}) == {
        "bn.gamma": "b.weight", "bn.beta": "b.bias", "bn.moving_mean": "b.running_mean",
        "bn.moving_variance": "b.running_var",
    }  # fmt: skip
    assert pair_by_place({"a": 0, "b": 0}, {"x": 0}, {}) == {}
