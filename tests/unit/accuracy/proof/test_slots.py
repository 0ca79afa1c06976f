"""Arguments of a call by name, and which of the other side's is which."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from proof_calls import floats, layer_norm

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.operation import Operation, Workshop
from msprobe_ms.accuracy.proof.slots import Slot, agree, bound, distance, paired, slots_of, with_value
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments


def slot(name: str, value: object, place: int | str | None = None) -> Slot:
    kind = "positional" if isinstance(place, int) else "keyword"
    return Slot(name, (kind, name if place is None else place), value)


def names(target: list[Slot], golden: list[Slot]) -> list[tuple[str, str]]:
    return [(own.name, other.name) for own, other in paired(target, golden)]


def test_arguments_pair_by_the_spellings_of_the_frameworks() -> None:
    x = floats(3)
    target = [slot("input_x", x), slot("gamma", x), slot("beta", x), slot("axis", -1), slot("epsilon", 1e-5)]
    golden = [slot("bias", x), slot("eps", 1e-2), slot("dim", 1), slot("weight", x), slot("input", x)]
    expected = [("input_x", "input"), ("gamma", "weight"), ("beta", "bias"), ("axis", "dim"), ("epsilon", "eps")]
    assert names(target, golden) == expected


def test_without_names_tensors_pair_in_order_and_plain_values_of_one_kind() -> None:
    x = floats(3)
    target = [slot("params", x), slot("indices", x), slot("axis", 1)]
    golden = [slot("argument 1", x, 0), slot("argument 2", x, 1), slot("argument 3", 2, 2)]
    assert names(target, golden) == list(zip(["params", "indices", "axis"], ["argument 1", "argument 2", "argument 3"],
                                             strict=True))  # fmt: skip
    assert names([slot("mode", "a")], [slot("argument 1", 2, 0)]) == []


def test_slots_of_a_call_have_defaults_and_take_other_values() -> None:
    call = layer_norm()
    found = {each.name: each for each in slots_of(call)}
    assert list(found) == ["input", "weight", "bias", "normalized_shape", "eps"]
    assert found["weight"].is_learnt
    assert not found["input"].is_learnt
    changed = with_value(call, found["eps"], 1e-2)
    assert (changed.arguments.keywords["eps"], call.arguments.keywords["eps"]) == (1e-2, 1e-5)
    del call.arguments.keywords["eps"]  # type: ignore[attr-defined]
    assert slots_of(call)[-1] == Slot("eps", ("default", "eps"), 1e-5)


def test_an_operator_that_says_nothing_of_its_arguments_has_the_names_that_compare_tells() -> None:
    operation = Operation(Workshop(), "pytorch", "Tensor", "__truediv__")
    operation._parameters = ()  # as of what has no signature
    arguments = Arguments((floats(3), 2.0), {})
    call = Call("Tensor.__truediv__.0.forward", "__truediv__", "pytorch", Path("dump.json"), operation, arguments)
    assert [each.name for each in slots_of(call)] == ["self", "other"]
    unknown = replace(call, entry="Tensor.no_such.0.forward")
    assert [each.name for each in slots_of(unknown)] == ["argument 1", "argument 2"]


def test_tensors_agree_up_to_rounding() -> None:
    one = floats(50)
    near = TypedArray("float32", one.values * np.float32(1 + 1e-6))
    far = TypedArray("float32", one.values * np.float32(1.001))
    assert agree(one, near)
    assert not agree(one, far)
    assert distance(far, one) == pytest.approx(1e-3, rel=1e-2)
    assert bound(far, one) < 1e-4
    assert distance(one, floats(49)) == math.inf
    assert agree((1, "a", None), (1, "a", None))
    assert not agree(1e-5, 1e-2)
    assert not agree(one, 1.0)
