"""How a tensor differs, in words, and what values are written as."""

from __future__ import annotations

import numpy as np
from proof_calls import floats, layer_norm, made

from msprobe_ms.accuracy.proof.slots import Slot
from msprobe_ms.accuracy.proof.words import (
    exchanged_sentence,
    fed_sentence,
    framework_title,
    golden_title,
    input_sentence,
    name_of,
    shown,
    tensor_difference,
    title_of,
)
from msprobe_ms.arrays.typed import TypedArray


def test_how_a_tensor_differs() -> None:
    one = floats(4, 4)
    assert tensor_difference(TypedArray("float32", one.values.T.copy()), one) == "it is the transpose of the golden's"
    assert tensor_difference(TypedArray("float32", one.values * 2), one) == "it is 2 times the golden's"
    assert tensor_difference(TypedArray("float32", one.values * 0), one) == "it is zero throughout"
    assert (
        tensor_difference(TypedArray("float32", one.values / 2), one, "the right one")
        == "it is 0.5 times the right one"
    )
    assert tensor_difference(floats(3), one) == "its shape is [3], the golden's has [4, 4]"
    assert tensor_difference(floats(4, 4, seed=5), one).startswith("it differs by ")
    numbers = TypedArray("int64", np.arange(4))
    assert tensor_difference(TypedArray("int64", np.array([0, 1, 5, 3])), numbers) == "1 of 4 elements differs"
    assert tensor_difference(None, numbers) == "it is None, the golden's is a tensor of int64 [4]"


def test_what_no_share_measures_is_said_in_words() -> None:
    one = floats(4, 4)
    broken = TypedArray("float32", np.where(np.eye(4) > 0, np.nan, one.values))
    zero = TypedArray("float32", one.values * 0)
    assert tensor_difference(broken, one) == "it holds NaN or infinity"
    assert tensor_difference(one, broken) == "the golden's holds NaN or infinity"
    assert tensor_difference(one, zero) == "it is not zero, the golden's is zero throughout"


def test_values_and_names_are_written_as_people_write_them() -> None:
    assert [shown(value) for value in (0.01, 1e-5, -1, "tanh", None)] == ["0.01", "1e-05", "-1", "'tanh'", "None"]
    assert len(shown("long" * 50)) == 60
    assert name_of(Slot("eps", ("keyword", "eps"), 1)) == "epsilon"
    assert framework_title("mindtorch") == "MSAdapter"


def test_the_golden_is_not_taken_for_the_target() -> None:
    target = layer_norm()
    assert title_of(target) == "MindSpore's LayerNorm"
    assert golden_title(layer_norm(framework="pytorch"), target) == "PyTorch's LayerNorm"
    assert golden_title(layer_norm(), target) == "the golden's LayerNorm"


def test_sentences() -> None:
    assert input_sentence("A's b", "x", "so", "Mint.sub.0.forward").endswith(
        "look at Mint.sub.0.forward, which made it"
    )
    assert "no recorded call made it" in input_sentence("A's b", "x", "so", "")
    assert fed_sentence("A's b", "so", "").endswith("from the golden's (so); look at the calls that use its results")
    assert fed_sentence("A's b", "so", "C.backward.0").endswith("look at C.backward.0, which made it")
    one, other = (Slot(name, ("keyword", name), 1) for name in "ab")
    call = made("gelu", input=floats(3))
    assert exchanged_sentence(call, one, other).endswith(
        "with exchanged arguments: `a` and `b`; each has the value that the other has in the golden"
    )
