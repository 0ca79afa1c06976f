"""What comes out right was computed right, whatever stands beside what inside."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from compare_nodes import BLOCK, CARRIED, FAULT, NEXT, REST, node, origins
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

IDENTITY = "Cell.drop.Identity.forward.0"


def test_an_input_of_a_call_that_comes_out_right_is_no_origin() -> None:
    masked = node(BLOCK, None, (5.0, 2.0), input_mask=FAULT, output_0=REST)
    assert origins(masked) == []
    assert masked.rows[0].explained_by == "results agree"


def test_it_hides_nothing_that_follows() -> None:
    masked = node(BLOCK, None, (5.0, 2.0), input_mask=FAULT, output_0=REST)
    fault = node(NEXT, None, (6.0, 3.0), input_0=REST, output_0=FAULT)
    assert origins(masked, fault) == [f"{NEXT}.output.0"]


def test_a_mask_of_another_form_is_no_origin_where_the_call_goes_wrong_either() -> None:
    masked = node(BLOCK, None, (5.0, 2.0), input_mask=math.inf, output_0=REST)
    wrong = node(NEXT, None, (5.0, 2.0), input_mask=math.inf, output_0=FAULT)
    assert origins(masked, wrong) == [f"{NEXT}.output.0"]


def test_other_data_are_the_origin_where_one_call_does_not_depend_on_them() -> None:
    """Position embeddings take token ids in for their shape alone."""
    wrong = node(BLOCK, None, (5.0, 2.0), given=(6.0, 2.0), input_ids=FAULT, output_0=FAULT)
    independent = node(NEXT, None, (5.0, 2.0), input_ids=FAULT, output_0=REST)
    assert origins(wrong, independent) == [f"{BLOCK}.input.ids"]


@pytest.mark.parametrize(("given", "found"), [((5.0, 2.0), []), ((6.0, 2.0), [f"{IDENTITY}.input.0"])])
def test_a_module_that_passes_on_what_it_takes_in_computes_nothing(
    given: tuple[float, float], found: list[str]
) -> None:
    """Before a module that comes out right, it stands beside another value than its counterpart."""
    call = node(IDENTITY, None, (5.0, 2.0), given=given, input_0=FAULT, output_0=FAULT)
    assert origins(call, node(NEXT, None, (7.0, 3.0), input_0=REST, output_0=REST)) == found


def test_a_jump_of_what_agrees_is_no_drift_by_which_later_results_may_be_apart() -> None:
    """Of a layer whose result is a little off the next one gives out half of that, as it adds to what it takes in."""
    net, mask = "Cell.net.Net.forward.0", {"input_mask": math.inf}
    wrong = node("Cell.net.0.Layer.forward.0", net, (5.0, 2.0), given=(6.0, 3.0), input_0=0.0, **mask, output_0=26.0)
    later = node("Cell.net.1.Layer.forward.0", net, (6.0, 3.0), given=(7.0, 4.0), input_0=26.0, **mask, output_0=14.0)
    norm = node("Cell.net.norm.Norm.forward.0", net, (7.0, 4.0), given=(8.0, 5.0), input_0=14.0, output_0=13.0)
    whole = node(net, None, (5.0, 2.0), given=(8.0, 5.0), input_0=0.0, output_0=13.0)
    assert origins(wrong, later, norm, whole) == ["Cell.net.0.Layer.forward.0.output.0"]


def test_a_mask_made_anew_before_a_call_that_agrees_is_no_origin_of_the_module_around() -> None:
    """A layer that is given the mask of all layers, and makes its own of it before its attention."""
    name = "Cell.layers.0.Layer.forward.0"
    cut = node("Tensor.__getitem__.0.forward", name, (5.0, 2.0), input_0=math.inf, output_0=REST)
    attention = node("Cell.layers.0.attention.Attention.forward.0", name, (6.0, 2.0), input_0=REST, output_0=REST)
    wrong = node("Cell.layers.0.mlp.MLP.forward.0", name, (7.0, 2.0), input_0=REST, output_0=FAULT)
    layer = node(name, None, (5.0, 2.0), input_mask=math.inf, output_0=FAULT)
    assert origins(cut, attention, wrong, layer) == ["Cell.layers.0.mlp.MLP.forward.0.output.0"]


@pytest.mark.parametrize("between", [(), ("Functional.dropout.0.forward",)])
def test_a_module_on_another_branch_says_nothing_of_the_call_before_it(between: tuple[str, ...]) -> None:
    """``matmul(softmax(scores), self.value(x))``: the value comes out right, whatever the softmax gave out."""
    softmax = node("Functional.softmax.0.forward", BLOCK, (5.0, 2.0), given=(6.0, 2.0), input_0=REST, output_0=FAULT)
    passed = [node(name, BLOCK, (6.0, 2.0), input_0=FAULT, output_0=FAULT) for name in between]
    value = node("Cell.layers.0.value.Dense.forward.0", BLOCK, (7.0, 2.0), input_0=REST, output_0=REST)
    matmul = node("Functional.matmul.0.forward", BLOCK, (6.0, 2.0), given=(8.0, 2.0), input_0=FAULT, output_0=FAULT)
    block = node(BLOCK, None, (5.0, 2.0), given=(8.0, 2.0), input_0=REST, output_0=FAULT)
    assert origins(softmax, *passed, value, matmul, block)[0] == "Functional.softmax.0.forward.output.0"


def test_what_an_error_becomes_further_on_is_no_drift() -> None:
    """A norm of another epsilon: what follows in its block is nearer, and yet comes of it."""
    norm, attention = "Cell.layers.0.norm.LayerNorm.forward.0", "Cell.layers.0.attention.Attention.forward.0"
    history = [
        node(norm, BLOCK, (5.0, 2.0), given=(6.0, 2.0), input_0=REST, output_0=62.0),
        node(
            "Cell.layers.0.attention.q.Dense.forward.0",
            attention,
            (6.0, 2.0),
            given=(7.0, 2.0),
            input_0=62.0,
            output_0=48.0,
        ),
        node(attention, BLOCK, (6.0, 2.0), given=(8.0, 2.0), input_0=62.0, output_0=50.0),
        node(
            "Cell.layers.0.norm2.LayerNorm.forward.0", BLOCK, (9.0, 2.0), given=(7.5, 2.0), input_0=33.0, output_0=24.0
        ),
        node(BLOCK, None, (5.0, 2.0), given=(8.5, 2.0), input_0=REST, output_0=36.0),
    ]
    assert origins(*history) == [f"{norm}.output.0"]
    assert {row.explained_by for row in history[2].rows} == {"inherited error"}


def test_functions_inside_a_module_that_comes_out_right_may_stand_beside_others() -> None:
    swapped = [
        node(f"Mint.matmul.{place}.forward", BLOCK, (place, 2.0), input_0=FAULT, output_0=FAULT) for place in (3.0, 4.0)
    ]
    assert origins(*swapped, node(BLOCK, None, (7.0, 2.0), input_0=REST, output_0=REST)) == []
    assert origins(*swapped, node(BLOCK, None, (7.0, 2.0), input_0=REST, output_0=FAULT)) != []


@pytest.mark.parametrize(("ratio", "found"), [(1.2, 0), (30.0, 1)])
def test_a_module_that_is_used_rightly_comes_out_right_by_and_large(ratio: float, found: int) -> None:
    """A cast that casts nothing stands beside another value, in a module a little beyond its tolerance."""
    cast = node("Tensor.to.0.forward", BLOCK, (9.0, 2.0), input_0=FAULT, output_0=FAULT)
    block = node(BLOCK, None, (5.0, 2.0), given=(6.0, 2.0), input_0=REST, output_0=ratio)
    following = node(NEXT, None, (6.0, 2.0), given=(7.0, 2.0), input_0=REST, output_0=REST)
    assert len(origins(cast, block, following)) == found
    assert (cast.rows[0].explained_by == "results agree") == (not found)


def test_functions_before_a_module_that_comes_out_right_as_well() -> None:
    before = node("Tensor.__getitem__.0.forward", None, (3.0, 2.0), input_0=FAULT, output_0=FAULT)
    right, wrong = (node(BLOCK, None, (7.0, 2.0), input_0=REST, output_0=ratio) for ratio in (REST, FAULT))
    assert origins(before, right) == []
    assert origins(before, wrong) == ["Tensor.__getitem__.0.forward.input.0", f"{BLOCK}.output.0"]


def test_a_module_that_errs_inside_one_that_comes_out_right_is_an_origin_all_the_same() -> None:
    erring = node("Cell.layers.0.fc.Dense.forward.0", BLOCK, (3.0, 2.0), input_0=REST, output_0=FAULT)
    around = node(BLOCK, None, (7.0, 2.0), input_0=REST, output_0=0.9)
    assert origins(erring, around) == ["Cell.layers.0.fc.Dense.forward.0.output.0"]


def test_a_parameter_is_never_let_pass() -> None:
    wrong = node(BLOCK, None, (7.0, 2.0), input_0=REST, parameters_weight=FAULT, output_0=REST)
    assert origins(wrong) == [f"{BLOCK}.parameters.weight"]


def test_results_without_a_counterpart_prove_nothing() -> None:
    alone = node(BLOCK, None, (7.0, 2.0), input_0=CARRIED)
    assert origins(alone) == [f"{BLOCK}.input.0"]


_RANDOM = np.random.default_rng(6)
X, GIVEN, WRONG = (_RANDOM.standard_normal((4, 16)).astype(np.float32) for _ in range(3))
ROLLED = np.roll(X, 1, -1)


def padded(order: Sequence[tuple[str, np.ndarray, np.ndarray]], taken: np.ndarray, given: np.ndarray) -> Dump:
    """Functions in some order, and the layer that takes in what they make."""
    calls = [(f"Functional.{name}.0.forward", before, after) for name, before, after in order]
    calls.append(("Cell.fc.Dense.forward.0", taken, given))
    return dump([
        tensor(place, values, name, sketch=encode(sketch(values), values.dtype))
        for name, before, after in calls
        for place, values in (("input.0", before), ("output.0", after))
    ])  # fmt: skip


def test_functions_in_another_order_are_right_where_what_they_make_is_used_rightly() -> None:
    """Padding by nothing before a roll and after it: an error behind them is none of theirs."""
    golden = padded([("pad", X, X), ("roll", X, ROLLED)], ROLLED, GIVEN)
    order = [("roll", X, ROLLED), ("pad", ROLLED, ROLLED)]
    assert compare_dumps(padded(order, ROLLED, GIVEN), golden, Options()).origins == []
    (origin,) = compare_dumps(padded(order, ROLLED, WRONG), golden, Options()).origins
    assert origin.target == "Cell.fc.Dense.forward.0.output.0"
    found = compare_dumps(padded([("roll", X, X), ("pad", X, X)], X, WRONG), golden, Options()).origins
    assert found[0].target != "Cell.fc.Dense.forward.0.output.0"


def test_a_drift_that_fades_inside_a_module_is_what_it_takes_in_all_the_same() -> None:
    """A norm of few values makes the same of what has drifted; a layer before it has nothing of its own."""
    grown = node("Tensor.sub.0.forward", None, (1e3, 1e3), given=(1.0, 1.0), input_0=0.9, output_0=8.0)
    drifted = node(BLOCK, None, (1.0, 1.0), given=(6.0, 2.0), input_0=8.0, output_0=8.0)
    layer = node("Cell.layers.1.fc.Dense.forward.0", NEXT, (7.0, 2.0), given=(8.0, 2.0), input_0=34.0, output_0=21.0)
    norm = node(
        "Cell.layers.1.norm.BatchNorm1d.forward.0", NEXT, (8.0, 2.0), given=(9.0, 2.0), input_0=21.0, output_0=0.5
    )
    around = node(NEXT, None, (6.0, 2.0), given=(9.0, 2.0), input_0=8.0, output_0=0.5)
    assert origins(grown, drifted, layer, norm, around) == []


@pytest.mark.parametrize(("drift", "found"), [(2.5, False), (REST, True)])
def test_operands_in_another_order_are_no_origin_behind_a_drift_either(drift: float, found: bool) -> None:
    """What comes out is as near as what went in."""
    before = node(BLOCK, None, (5.0, 2.0), given=(6.0, 2.0), input_0=0.5, output_0=drift)
    swapped = node(
        "Tensor.add.0.forward", NEXT, (7.0, 2.0), given=(8.0, 2.0), input_0=FAULT, input_1=FAULT, output_0=1.2
    )
    around = node(NEXT, None, (6.0, 2.0), given=(8.0, 2.0), input_0=drift, output_0=1.2)
    assert bool(origins(before, swapped, around)) == found
