"""Losses behind outputs that agree but for rounding."""

from __future__ import annotations

from compare_nodes import REST, node, only, origins

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import parse_entry

HEAD = "Cell.head.Dense"


def loss(value: float, deviation: float, number: int = 0) -> Pair:
    """A loss of the golden that is ``value``, and of the target that is off by a part of it."""
    name = f"loss.{number}.debug"
    golden, target = (
        Item(name, "debug", (), kind="tensor", type="mindspore.Tensor", dtype="Float32", shape=(),
             maximum=each, minimum=each, mean=each, norm=abs(each))
        for each in (value, value * (1 + deviation))
    )  # fmt: skip
    entries = [Entry(name, parse_entry(name), [item]) for item in (target, golden)]
    return Pair(*entries, [Row(target, golden, deviation=deviation, tolerance=1e-5)], "name")


def step(*losses: Pair, gradient: float = 1.0, output: float = REST) -> list[Pair]:
    """A head whose 100 outputs have a root mean square of 0.1, and the gradient of that norm that reaches it."""
    backward = [
        node(f"{HEAD}.backward.0", figures=(2.0, gradient), size=100, input_0=REST, output_0=REST)
    ] if gradient else []  # fmt: skip
    return [node(f"{HEAD}.forward.0", size=100, input_0=REST, output_0=output), *losses, *backward]


def test_a_loss_that_differs_behind_outputs_that_agree_is_the_origin() -> None:
    found = only(*step(loss(2.0, 0.02)))
    assert (found.target, found.state, found.kind) == ("loss.0.debug", "debug", "computation")
    assert found.reason == (
        "the loss differs, 2.04 against 2, though the model's outputs agree: compare the loss functions"
    )
    assert found.details == ("what was recorded before it agrees",)


def test_a_loss_that_is_a_multiple_speaks_of_scales() -> None:
    found = only(*step(loss(2.0, 1023.0)))
    assert "the target's is 1024 times the golden's: look at the loss scale, at sum and mean" in found.details


def test_a_loss_inherits_what_differs_before() -> None:
    assert origins(*step(loss(2.0, 0.02), output=400.0)) == [f"{HEAD}.forward.0.output.0"]


def test_a_loss_near_zero_is_off_by_the_rounding_of_the_outputs() -> None:
    assert origins(*step(loss(1e-6, 1.0))) == []
    assert origins(*step(loss(1e-6, 100.0))) == ["loss.0.debug"]
    assert origins(*step(loss(1e-6, 1.0), gradient=1e-3)) == ["loss.0.debug"]


def test_the_gradient_of_a_loss_near_zero_is_off_by_half_as_much() -> None:
    """As of a regression that fits: the gradient is what is left when nearly equal numbers are subtracted."""
    weight = node(f"{HEAD}.parameters_grad.0", parameters_grad_weight=4_000.0)
    for value, deviation, found in ((1e-6, 0.4, []), (1e-6, 60.0, [f"{HEAD}.backward.0.input.0"]), (2.0, 0.4, None)):
        forward, _, backward = step(loss(value, 0.0))
        backward.rows[0].deviation = backward.rows[1].deviation = deviation
        told = [f"{HEAD}.backward.0.input.0"] if found is None else found
        assert origins(forward, loss(value, 0.0), backward, weight) == told


def test_without_gradients_it_counts_as_a_mean_of_the_outputs() -> None:
    assert origins(*step(loss(1e-6, 1.0), gradient=0.0)) == []
    assert origins(*step(loss(2.0, 0.02), gradient=0.0)) == ["loss.0.debug"]


def test_a_loss_before_which_nothing_was_compared_tells_nothing() -> None:
    assert origins(loss(2.0, 0.02), *step()) == []


def test_what_follows_inherits_nothing_of_a_loss_near_zero() -> None:
    wrong = node(f"{HEAD}.parameters_grad.0", parameters_grad_weight=400.0)
    (found,) = origins(*step(loss(1e-6, 1.0)), wrong)
    assert found.startswith(f"{HEAD}.parameters_grad.0")


def test_every_loss_of_a_step_is_judged() -> None:
    assert origins(*step(loss(2.0, 0.0), loss(2.0, 0.02, number=1))) == ["loss.1.debug"]
