"""Gradients of which hardly anything is left when their terms are added up."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, side_by_side, tensor

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.measuring.tolerances import Tolerances


def test_gradient_that_cancels_is_held_against_the_larger_one_of_its_entry() -> None:
    """A convolution's bias before a batch norm has gradient 0; what is left of it, 1e-8 and -3e-8, is rounding."""
    entry = "Cell.conv.Conv2d.parameters_grad.0"
    weight = tensor("parameters_grad.weight", np.full((6, 25), 0.02, np.float32), entry)
    noise = [tensor("parameters_grad.bias", np.full(6, size, np.float32), entry) for size in (1e-8, -3e-8)]
    pairs = [side_by_side((weight, weight), (noise[0], noise[1]))]
    measure(pairs, dump([], "mindspore"), dump([], "pytorch"), "statistics")
    assert [row.differs for row in pairs[0].rows] == [False, False]
    wrong = tensor("parameters_grad.bias", np.full(6, 1e-4, np.float32), entry)
    pairs = [side_by_side((weight, weight), (wrong, noise[0]))]
    measure(pairs, dump([], "mindspore"), dump([], "pytorch"), "statistics")
    assert [row.differs for row in pairs[0].rows] == [False, True]
    pairs = [side_by_side((weight, weight), (noise[0], noise[1]))]
    measure(pairs, dump([]), dump([]), "statistics", tolerances=Tolerances(gradient_floor=0))
    assert pairs[0].rows[1].differs


@pytest.mark.parametrize(("size", "differs"), [(1e-7, False), (1e-4, True)])
def test_gradient_that_cancels_inside_a_module_is_held_against_what_arrives_there(size: float, differs: bool) -> None:
    """The gradient of an attention's query where the keys are alike is 1e-7 of the attention's own, and half noise."""
    layer, query = "Module.a.Attention.backward.0", "Module.a.q.Linear.backward.0"
    tokens = np.random.standard_normal((64, 8)).astype(np.float32)
    golden = tensor("input.0", tokens * np.float32(size), query)
    side = dump([golden, tensor("input.0", tokens, layer)], "pytorch")
    side.entries[query].parent = layer
    both = side_by_side((tensor("input.0", tokens * np.float32(1.5 * size), query), golden))
    both.golden = side.entries[query]
    measure([both], dump([], "mindspore"), side, "statistics")
    assert both.rows[0].differs is differs


@pytest.mark.parametrize(("size", "differs"), [(1e-7, False), (1e-4, True)])
def test_a_function_is_held_against_what_its_module_is(size: float, differs: bool) -> None:
    """It takes in the very gradient that arrives at the module which calls it."""
    layer, query, linear = (
        "Module.a.Attention.backward.0",
        "Module.a.q.Linear.backward.0",
        "Functional.linear.0.backward",
    )
    tokens = np.random.default_rng(3).standard_normal((64, 8)).astype(np.float32)
    small = tokens * np.float32(size)
    golden = tensor("input.0", small, linear)
    side = dump([golden, tensor("input.0", small, query), tensor("input.0", tokens, layer)], "pytorch")
    side.entries[linear].parent, side.entries[query].parent = query, layer
    both = side_by_side((tensor("input.0", np.float32(1.5) * small, linear), golden))
    both.golden = side.entries[linear]
    measure([both], dump([], "mindspore"), side, "statistics")
    assert both.rows[0].differs is differs


def test_weight_gradient_that_cancels_is_held_against_its_terms() -> None:
    """64 tokens, each with gradient and input of size 1: a sum of 1e-6 is what rounding left of 64 terms of size 1."""
    target, golden = (np.full((8, 8), size, np.float32) for size in (1e-6, -2e-6))
    random = np.random.default_rng(0)
    rest = [
        tensor("input.0", random.standard_normal((64, 8)), "Module.k.Linear.forward.0"),
        tensor("input.0", random.standard_normal((64, 8)), "Module.k.Linear.backward.0"),
    ]
    entry = "Module.k.Linear.parameters_grad.0"
    for faulty, differs in ((target, False), (target + np.float32(0.01), True)):
        both = side_by_side(
            (tensor("parameters_grad.weight", faulty, entry), tensor("parameters_grad.weight", golden, entry))
        )
        measure([both], dump([], "mindspore"), dump(rest, "pytorch"), "statistics")
        assert both.rows[0].differs is differs


@pytest.mark.parametrize("function", ["Functional.linear", "Torch.matmul", "Functional.conv2d"])
@pytest.mark.parametrize(("error", "differs"), [(3e-6, False), (1e-2, True)])
def test_the_gradient_of_a_weight_that_a_function_gives_out_is_held_against_its_terms(
    function: str, error: float, differs: bool
) -> None:
    """Of 512 terms hardly anything is left: what comes in has no mean along what arrives."""
    forward, backward = f"{function}.0.forward", f"{function}.0.backward"
    random = np.random.default_rng(4)
    x, arriving = (random.standard_normal((512, 8)).astype(np.float32) for _ in range(2))
    x -= arriving @ np.linalg.lstsq(arriving, x, rcond=None)[0] * np.float32(1 - 1e-3)
    weight = arriving.T @ x
    if function.endswith("conv2d"):
        x, arriving, weight = x[..., None, None], arriving[..., None, None], weight[..., None, None]
    noise = random.standard_normal(weight.shape) * np.sqrt(512)  # of terms of size 1
    golden = tensor("output.1", weight, backward)
    side = dump(
        [tensor("input.0", x, forward), tensor("input.0", arriving, backward), golden, tensor("output.0", x, backward)],
        "pytorch",
    )
    both = side_by_side((tensor("output.1", weight + error * noise, backward), golden))
    both.golden = side.entries[backward]
    measure([both], dump([], "mindspore"), side, "statistics")
    assert both.rows[0].differs is differs
