"""An input that differs though nothing before it does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compare_nodes import FAULT, REST, node, only, origins
from compare_parts import dump, tensor

from msprobe_ms.arrays.metrics import COSINE
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump


def test_an_input_that_differs_before_anything_computed_does_is_an_origin() -> None:
    found = only(
        node("Functional.layer_norm.1.forward", input_0=REST, output_0=REST),
        node("Functional.layer_norm.2.forward", input_0=REST, input_2=FAULT, output_0=FAULT),
        node("Functional.linear.6.forward", input_0=FAULT, output_0=FAULT),
    )
    assert (found.target, found.state) == ("Functional.layer_norm.2.forward.input.2", "input")
    assert "it comes from outside" in found.reason


def test_the_input_of_what_encloses_a_module_differed_before_the_modules_own() -> None:
    found = only(
        node("Cell.a.attention.drop.Dropout.forward.0", "Cell.a.Attention.forward.0", input_0=FAULT, output_0=FAULT),
        node("Cell.a.Attention.forward.0", "Cell.a.Layer.forward.0", input_0=REST, input_1=FAULT, output_0=FAULT),
        node("Cell.a.Layer.forward.0", None, input_0=REST, input_1=FAULT, output_0=FAULT),
    )
    assert found.target == "Cell.a.Layer.forward.0.input.1"


def whole(*pairs: Pair) -> Sequence[Pair]:
    """The pairs, all elements of whose tensors were compared."""
    for pair in pairs:
        for row in pair.rows:
            row.measured = {COSINE: 1.0}
    return pairs


def test_an_input_that_follows_from_earlier_error_is_not_what_goes_wrong_inside() -> None:
    """Each layer takes in an embedding of the time, off as its sinusoids are; in one of them the attention errs."""
    attention, layer, last = (
        f"Cell.layers.0.{name}.forward.0" for name in ("attention.Attention", "Layer", "out.Dense")
    )
    time = node("Tensor.sub.0.forward", None, (1e3, 1e3), given=(4.5, 2.0), input_0=0.9, output_0=9.0)
    out = node(last, attention, (6.0, 2.0), given=(6.5, 2.0), input_0=FAULT, output_0=FAULT)
    erring = node(attention, layer, (5.0, 2.0), given=(6.5, 2.0), input_0=REST, output_0=FAULT)
    around = node(layer, None, (3.0, 2.0), given=(7.0, 2.0), input_0=REST, input_time=9.0, output_0=FAULT)
    assert origins(*whole(time, out, erring, around)) == [f"{attention}.output.0"]
    unexplained = node(layer, None, (3.0, 2.0), given=(7.0, 2.0), input_0=REST, input_time=FAULT, output_0=FAULT)
    assert origins(*whole(out, erring, unexplained))[0] == f"{layer}.input.time"


def test_what_stands_beside_another_value_hides_no_drift() -> None:
    """Channels in another order: how far the values have drifted, which a layer inside takes in, shows before it."""
    block, inner = "Cell.blocks.1.Block.forward.0", "Cell.blocks.1.branch.SequentialCell.forward.0"
    drifted = node("Cell.blocks.0.fc.Dense.forward.0", None, (4.0, 2.0), given=(5.0, 2.0), input_0=0.5, output_0=1.1)
    taken = node(inner, block, (6.0, 2.0), given=(7.0, 2.0), input_0=1.2, output_0=1.2)
    around = node(block, None, (8.0, 2.0), given=(9.0, 2.0), input_0=9e4, output_0=0.9)
    found = origins(*whole(drifted, taken, around))
    assert (found, around.rows[0].explained_by) == ([], "results agree")


def test_what_differs_inside_a_call_does_not_hide_that_the_call_differs() -> None:
    """In dumps equal to the bit so far, both within the tolerance of a net: the call inside takes in what was cast."""
    equal = [node(f"Cell.{i}.Dense.forward.0", None, (i, 2.0), input_0=0, output_0=0) for i in range(4)]
    found = only(
        *equal,
        node("Primitive.conv2d.Conv2D.0.forward", "Cell.out.Conv2d.forward.0", (7.0, 2.0), input_0=0.18, output_0=0.1),
        node("Cell.out.Conv2d.forward.0", None, (8.0, 2.0), input_0=0, output_0=0.13),
    )
    assert found.target == "Cell.out.Conv2d.forward.0.output.0"


def test_an_input_a_little_beyond_its_bound_after_noise_of_that_size_is_no_origin() -> None:
    noisy = node("Cell.a.Dense.backward.0", input_0=REST, output_0=0.6)
    assert origins(noisy, node("Cell.b.Dense.backward.0", input_0=1.1, output_0=1.1)) == []
    assert origins(noisy, node("Cell.b.Dense.backward.0", input_0=FAULT, output_0=FAULT)) != []


def test_an_input_that_jumps_after_drift_just_beyond_the_bound_is_an_origin() -> None:
    """A recurrent layer gives out 1.08 tolerances; the code after it drops a residual."""
    drifted = node("Cell.gru.GRU.forward.0", input_0=0, output_0=1.08)
    assert origins(drifted, node("Cell.norm.LayerNorm.forward.0", None, (7.0, 2.0), input_0=8e4, output_0=9e4)) == [
        "Cell.norm.LayerNorm.forward.0.input.0"
    ]


_RANDOM = np.random.default_rng(2)
X, INNER, OUT, WRONG = (_RANDOM.standard_normal((4, 16)).astype(np.float32) for _ in range(4))
COUNTS = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.float32)
HIDES = np.where(COUNTS == 1, np.float32(0), np.float32(-np.inf))


def masked(mask: np.ndarray, inner: np.ndarray, given: np.ndarray) -> Dump:
    """A layer and a block around it, in a stack that hands its mask down."""
    stack, block, layer = ("Cell.net.Stack.forward.0", "Cell.net.0.Block.forward.0", "Cell.net.0.fc.Dense.forward.0")
    items = [tensor("input.0", X, layer), tensor("output.0", inner, layer)]
    for name in (block, stack):
        items += [tensor("input.0", X, name), tensor("input.mask", mask, name), tensor("output.0", given, name)]
    made = dump(items)
    made.entries[layer].parent, made.entries[block].parent = block, stack
    return made


@pytest.mark.parametrize("mask", [COUNTS, np.where(COUNTS == 1, np.float32(0), np.float32(-1e9)), COUNTS == 1])
def test_a_mask_in_another_form_hides_no_error(mask: np.ndarray) -> None:
    golden = masked(HIDES, INNER, OUT)
    assert compare_dumps(masked(mask, INNER, OUT), golden, Options()).origins == []
    wrong = compare_dumps(masked(mask, INNER, WRONG), golden, Options()).origins
    assert [origin.target for origin in wrong] == ["Cell.net.0.Block.forward.0.output.0"]
    inner = compare_dumps(masked(mask, WRONG, OUT), golden, Options()).origins
    assert [origin.target for origin in inner] == ["Cell.net.0.fc.Dense.forward.0.output.0"]


def test_what_is_no_mask_is_not_taken_for_one() -> None:
    found = compare_dumps(masked(X, INNER, WRONG), masked(HIDES, INNER, OUT), Options()).origins
    assert found[0].target == "Cell.net.Stack.forward.0.input.mask"


def dropping(given: np.ndarray | None, out: np.ndarray) -> Dump:
    """A block of two layers; a dropout between them, on one side, gives out ``given``."""
    block, drop = "Cell.net.Block.forward.0", "Cell.net.drop.Dropout.forward.0"
    calls = [("Cell.net.fc1.Dense.forward.0", X, INNER)]
    if given is not None:
        calls.append((drop, INNER, given))
    taken = INNER if given is None else given
    calls += [("Cell.net.fc2.Dense.forward.0", taken, out), (block, X, out)]
    made = dump(
        [
            tensor(at, each, name)
            for name, *both in calls
            for at, each in zip(("input.0", "output.0"), both, strict=True)
        ]
    )
    for name, entry in made.entries.items():
        entry.parent = block if name != block else None
    return made


def test_a_random_call_of_one_side_alone_right_before_what_differs_is_named_first() -> None:
    masked_inner, plain = np.where(X > 0, INNER * 2, np.float32(0)), dropping(None, OUT)
    on = dropping(masked_inner, WRONG)
    (first, *_) = compare_dumps(on, plain, Options()).origins
    assert first.target == "Cell.net.drop.Dropout.forward.0.output.0"
    assert "switch it off, or call seed_all with rm_dropout=True" in first.reason
    (first, *_) = compare_dumps(plain, on, Options()).origins
    assert first.target == "Cell.net.fc2.Dense.forward.0.input.0"
    assert "draws random numbers in the golden alone" in first.reason


def test_a_dropout_that_drops_nothing_is_not_named_for_what_differs_behind_it() -> None:
    (first, *_) = compare_dumps(dropping(INNER, WRONG), dropping(None, OUT), Options()).origins
    assert "random" not in first.reason
