"""Steps of optimizers: several steps written out, and faults that are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotReproducible

ADAM, ADAM_W = reference("npu_apply_adam"), reference("npu_apply_adam_w")
LR, DECAY, BETA1, BETA2, EPSILON = 0.1, 0.2, 0.9, 0.99, 1e-8
START = normal(4), np.zeros(4), np.zeros(4)


def steps(grads: list[np.ndarray], **options: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """AdamW from the start, the powers as operators take them."""
    var, m, v = START
    largest = np.zeros(4)
    for t, grad in enumerate(grads):
        if options.get("amsgrad"):
            options["max_grad_norm"] = largest
        var, m, v = outputs(
            ADAM_W, BETA1**t, BETA2**t, LR, DECAY, BETA1, BETA2, EPSILON, grad, **options, out=(var, m, v)
        )
        largest = np.maximum(largest, v)
    return var, m, v


def expected(grads: list[np.ndarray], *, decoupled: bool = True, late: int = 0, amsgrad: bool = False) -> np.ndarray:
    """AdamW as its paper has it; the other arguments are mistakes."""
    var, m, v = START
    largest = np.zeros(4)
    for t, grad in enumerate(grads, 1):
        given = grad if decoupled else grad + DECAY * var
        m, v = BETA1 * m + (1 - BETA1) * given, BETA2 * v + (1 - BETA2) * given**2
        largest = np.maximum(largest, v)
        s = largest if amsgrad else v
        step = LR * m / (1 - BETA1 ** (t + late)) / (np.sqrt(s / (1 - BETA2 ** (t + late))) + EPSILON)
        var = (var * (1 - LR * DECAY) if decoupled else var) - step
    return var


@pytest.mark.parametrize("count", [1, 2, 5])
def test_adam_w(count: int) -> None:
    grads = [normal(4, seed=each) for each in range(count)]
    var = steps(grads)[0]
    np.testing.assert_allclose(var, expected(grads), rtol=1e-13)
    assert np.abs(var - expected(grads, decoupled=False)).max() > 1e-3
    assert np.abs(var - expected(grads, late=1)).max() > 1e-3


def test_amsgrad_takes_the_greatest_so_far() -> None:
    grads = [normal(4), normal(4) / 100]
    var = steps(grads, amsgrad=True)[0]
    np.testing.assert_allclose(var, expected(grads, amsgrad=True), rtol=1e-13)
    assert np.abs(var - expected(grads)).max() > 1e-4


def test_maximize_turns_the_gradient_round() -> None:
    grads = [normal(4), normal(4, seed=1)]
    np.testing.assert_array_equal(steps(grads, maximize=True)[0], steps([-each for each in grads])[0])


def test_the_primitive_takes_the_same_as_arguments() -> None:
    var, m, v = normal(4), normal(4, seed=1), normal(4, seed=2) ** 2
    grad = normal(4, seed=3)
    powers = np.array(BETA1), np.array(BETA2)
    given = (LR, DECAY, BETA1, BETA2, EPSILON, grad)
    found = outputs(reference("ApplyAdamW", "Primitive", "mindspore"), var, m, v, *powers, *given)
    for one, other in zip(found, outputs(ADAM_W, *powers, *given, out=(var, m, v)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_the_primitive_that_counts_steps_begins_at_0(amsgrad: bool) -> None:
    grads = [normal(4), normal(4) / 100]
    state, largest = START, np.zeros(4)
    for step, grad in enumerate(grads):
        state = outputs(
            reference("AdamW", "Primitive", "mindspore"), *state, largest, grad, np.array([float(step)]), LR, BETA1,
            BETA2, DECAY, EPSILON, amsgrad,
        )  # fmt: skip
        largest = np.maximum(largest, state[2])
    np.testing.assert_allclose(state[0], expected(grads, amsgrad=amsgrad), rtol=1e-13)


@pytest.mark.parametrize("nesterov", [False, True])
def test_adam(nesterov: bool) -> None:
    var, m, v = START
    for t in (1, 2, 3):
        grad = normal(4, seed=t)
        rate = LR * np.sqrt(1 - BETA2**t) / (1 - BETA1**t)
        new_m, new_v = BETA1 * m + (1 - BETA1) * grad, BETA2 * v + (1 - BETA2) * grad**2
        step = BETA1 * new_m + (1 - BETA1) * grad if nesterov else new_m
        after = var - rate * step / (np.sqrt(new_v) + EPSILON), new_m, new_v
        powers = BETA1**t, BETA2**t
        found = outputs(ADAM, *powers, LR, BETA1, BETA2, EPSILON, grad, False, nesterov, out=(var, m, v))
        for one, other in zip(found, after, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
        var, m, v = after


def test_adam_weight_decay_corrects_no_bias() -> None:
    var, m, v, grad = normal(4), normal(4, seed=1), normal(4, seed=2) ** 2, normal(4, seed=3)
    found = outputs(
        reference("AdamWeightDecay", "Primitive", "mindspore"), var, m, v, LR, BETA1, BETA2, EPSILON, DECAY, grad
    )
    m, v = BETA1 * m + (1 - BETA1) * grad, BETA2 * v + (1 - BETA2) * grad**2
    np.testing.assert_allclose(found[0], var - LR * (m / (np.sqrt(v) + EPSILON) + DECAY * var), rtol=1e-13)


def test_steps_have_no_gradient() -> None:
    given = (BETA1, BETA2, LR, DECAY, BETA1, BETA2, EPSILON, normal(4))
    assert gradients(ADAM_W, [normal(4)], *given, out=START) == [None] * 4


def test_what_is_updated_must_be_three() -> None:
    with pytest.raises(NotReproducible, match=r"\(var, m, v\)"):
        outputs(ADAM_W, 1.0, 1.0, LR, DECAY, BETA1, BETA2, EPSILON, normal(4), out=START[:2])
