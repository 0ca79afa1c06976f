"""Which setting of an optimizer sets the parameters of a second step apart, told from the updates of both sides."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from compare_nodes import assert_short
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump, Item

Array = npt.NDArray[np.float32]
#: An optimizer: number, parameter and gradient of a layer → what it adds to the parameter.
Rule = Callable[[int, Array, Array], Array]

LAYERS = 10
_RANDOM = np.random.default_rng(11)
WEIGHTS = [_RANDOM.standard_normal((24, 16)).astype(np.float32) for _ in range(LAYERS)]
GRADIENTS = [(1e-2 * _RANDOM.standard_normal((24, 16))).astype(np.float32) for _ in range(LAYERS)]


def item(place: str, values: Array, entry: str) -> Item:
    return tensor(place, values, entry, sketch=encode(sketch(values), values.dtype))


def step(weights: list[Array], gradients: list[Array]) -> Dump:
    items = []
    for number, weight in enumerate(weights):
        call = f"Cell.layers.{number}.Dense.forward.0"
        items += [item("input.0", WEIGHTS[0], call), item("output.0", weight, call)]
        items.append(item("parameters.weight", weight, call))
    for number, gradient in enumerate(gradients):
        items.append(item("parameters_grad.weight", gradient, f"Cell.layers.{number}.Dense.parameters_grad"))
    return dump(items)


def side(rule: Rule, noise: float = 0.0, gradients: list[Array] = GRADIENTS) -> tuple[Dump, Dump]:
    """The dumps of two steps; ``noise``: relative, of each gradient."""
    random = np.random.default_rng(int(1e9 * noise))
    seen = [(each * (1 + noise * random.standard_normal(each.shape))).astype(np.float32) for each in gradients]
    moved = [
        (weight + rule(number, weight, gradient)).astype(np.float32)
        for number, (weight, gradient) in enumerate(zip(WEIGHTS, seen, strict=True))
    ]
    return step(WEIGHTS, seen), step(moved, seen)


def origins(target: tuple[Dump, Dump], golden: tuple[Dump, Dump], **options: Any) -> list[Origin]:
    (ours_before, ours), (theirs_before, theirs) = target, golden
    pairs = pair(ours, theirs, Mappings())
    measure(pairs, ours, theirs, "statistics")
    found = find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: (ours_before, theirs_before)})))
    for origin in found:
        assert_short(origin)
    return found


def adam_with(epsilon: float, rate: float = 1e-3) -> Rule:
    """Its first update, whose moments are corrected: g / (|g| + epsilon)."""
    return lambda number, weight, gradient: -rate * gradient / (np.abs(gradient) + epsilon)


@pytest.mark.parametrize(
    ("size", "rate", "found"), [(1e-5, 1e-3, 0), (1e-6, 1e-3, 0), (1e-5, 2e-3, 1), (1e-2, 2e-3, 1)]
)
def test_where_adam_adds_epsilon_is_no_setting(size: float, rate: float, found: int) -> None:
    """MindSpore adds it to a moment that is not corrected, so that small gradients make smaller updates."""
    small = [np.float32(size / 1e-2) * each for each in GRADIENTS]
    told = origins(side(adam_with(1e-8 / 0.001**0.5, rate), gradients=small), side(adam_with(1e-8), gradients=small))
    assert len(told) == found
    assert all("look at the learning rate" in each.reason for each in told)


def test_a_gradient_that_is_large_in_a_few_elements_alone_feels_epsilon_in_the_others() -> None:
    """As that of an embedding: its root mean square is far beyond epsilon, most of its elements are not."""
    small = [np.float32(2e-4) * each for each in GRADIENTS]
    small[3] = np.where(np.arange(16) < 1, np.float32(1e-2), np.float32(2e-6) * np.sign(small[3]))
    small[5] = np.float32(1e-2) * small[5]
    found = origins(side(adam_with(1e-8 / 0.001**0.5), gradients=small), side(adam_with(1e-8), gradients=small))
    assert found == []


def test_epsilon_is_felt_where_it_takes_more_off_some_elements() -> None:
    """As that of a decay: no gradient is near epsilon in its root mean square, some of the elements are."""
    few_large = np.where(np.arange(16) < 1, np.float32(1e-2), np.float32(2e-6) * np.sign(GRADIENTS[3]))
    spread = (2e-6 * np.exp(150 * GRADIENTS[6]) * np.sign(GRADIENTS[5])).astype(np.float32)
    seen = [*GRADIENTS[:3], few_large, GRADIENTS[4], spread, *GRADIENTS[6:]]
    assert origins(side(adam_with(1e-8 / 0.001**0.5), gradients=seen), side(adam_with(1e-8), gradients=seen)) == []


def test_factors_that_differ_by_as_much_as_they_differ_from_one_are_no_setting() -> None:
    """Epsilon takes up to 6 % off each parameter's updates, another part of each; a rate takes one part off all."""
    parts = np.linspace(0.94, 1.0, LAYERS)
    assert origins(side(lambda number, *given: parts[number] * sgd(number, *given)), side(sgd)) == []
    (origin,) = origins(side(lambda *given: 0.965 * sgd(*given)), side(sgd))
    assert "are 0.965 times the golden's: look at the learning rate" in origin.reason


def sgd(number: int, weight: Array, gradient: Array) -> Array:
    return -0.1 * gradient


def adam(number: int, weight: Array, gradient: Array) -> Array:
    return -1e-3 * gradient / (np.abs(gradient) + 1e-8)


@pytest.mark.parametrize(
    ("golden", "times", "look"),
    [
        (sgd, 2.0, "the learning rate"),
        (adam, 0.5, "the learning rate"),
        (adam, 3.1623, "Adam's bias correction, then at the learning rate"),
        (sgd, 0.1, "the learning rate"),
    ],
)  # fmt: skip
def test_updates_by_another_rate(golden: Rule, times: float, look: str) -> None:
    (origin,) = origins(side(lambda *given: times * golden(*given)), side(golden))
    assert (origin.kind, origin.target) == ("update", "Cell.layers.0.Dense.forward.0.parameters.weight")
    assert origin.reason == (
        f"the target's updates of all 10 parameters whose gradients agreed are {times:.3g} times the golden's: "
        f"look at {look}"
    )


def test_parameters_whose_updates_are_rounding_are_counted_apart() -> None:
    still = [*GRADIENTS[:-1], np.float32(1e-12) * GRADIENTS[-1]]
    (origin,) = origins(side(lambda *given: 2 * sgd(*given), gradients=still), side(sgd, gradients=still))
    assert origin.reason.startswith("the target's updates of all 9 parameters whose gradients agreed are 2 times")
    assert list(origin.details) == [
        "1 other parameter does not count: its gradient differs, or its update is as small as rounding"
    ]


@pytest.mark.parametrize(("side_of_it", "share"), [("target", 1e-2), ("golden", -1e-2)])
def test_weight_decay(side_of_it: str, share: float) -> None:
    (origin,) = origins(side(lambda n, weight, gradient: sgd(n, weight, gradient) - share * weight), side(sgd))
    assert origin.kind == "update"
    assert origin.reason == (
        f"the {side_of_it}'s updates shrink all 10 parameters whose gradients agreed more, in proportion to their "
        "values: look at weight decay"
    )


def test_another_rule() -> None:
    (origin,) = origins(side(adam), side(lambda n, weight, gradient: -1e-3 * np.roll(gradient, 1) / 1e-2))
    assert origin.reason.startswith("the updates of all 10 parameters whose gradients agreed differ by 1")
    assert origin.reason.endswith("look at the optimizer's settings, weight decay, clipping of gradients")


def frozen(*layers: int) -> Rule:
    return lambda number, weight, gradient: 0 * weight if number in layers else sgd(number, weight, gradient)


def test_a_parameter_that_one_side_leaves_alone() -> None:
    (origin,) = origins(side(frozen(3)), side(sgd))
    assert (origin.kind, origin.target) == ("update", "Cell.layers.3.Dense.forward.0.parameters.weight")
    assert origin.reason == "the target did not update this parameter in the step before, the golden did: is it frozen?"
    found = origins(side(sgd), side(frozen(3, 5)))
    assert [each.target for each in found] == [f"Cell.layers.{n}.Dense.forward.0.parameters.weight" for n in (3, 5)]
    assert found[0].reason == (
        "the golden did not update this parameter in the step before, the target did (the same for 1 other): is it "
        "frozen?"
    )


@pytest.mark.parametrize("rule", [sgd, adam])
def test_updates_that_agree_are_none(rule: Rule) -> None:
    assert [each.kind for each in origins(side(rule, noise=1e-6), side(rule))] == []


def test_a_few_parameters_of_another_rate() -> None:
    def other(number: int, weight: Array, gradient: Array) -> Array:
        return (2 if number < 2 else 1) * sgd(number, weight, gradient)

    found = origins(side(other), side(sgd))
    assert [each.target for each in found] == [f"Cell.layers.{n}.Dense.forward.0.parameters.weight" for n in (0, 1)]
    assert found[0].reason == (
        "the target's update of this parameter is 2 times the golden's, though its gradient agreed "
        "(the same for 1 other): look at its group's learning rate"
    )


def test_a_gradient_of_noise_may_be_updated_in_any_way() -> None:
    noise = {2: 1e-9 * GRADIENTS[2]}

    def other(number: int, weight: Array, gradient: Array) -> Array:
        return adam(number, weight, np.roll(gradient, 1) if number in noise else gradient)

    seen = [noise.get(number, gradient) for number, gradient in enumerate(GRADIENTS)]
    assert origins(side(other, gradients=seen), side(adam, gradients=seen)) == []


def test_gradients_that_differ_explain_updates() -> None:
    assert "update" not in {str(each.kind) for each in origins(side(sgd, noise=0.5), side(sgd))}


def decayed(several: int) -> Rule:
    """Adam of gradients with weight decay in them: where gradients are large, it makes the same."""
    return lambda number, weight, gradient: adam(
        number, weight, gradient + (1e-1 if number < several else 0.0) * np.roll(weight, 1)
    )


def test_a_rule_that_shows_in_many_parameters() -> None:
    """Weight decay is felt by matrices, and hardly by vectors."""
    (found,) = origins(side(decayed(4)), side(adam))
    assert (found.kind, found.stage) == ("update", "update")
    assert re.fullmatch(
        r"the updates of 4 of the 10 parameters whose gradients agreed differ by \d+%: look at .*",
        found.reason,
    )


def test_a_rule_that_shows_in_some_parameters_only() -> None:
    found = origins(side(decayed(2)), side(adam))
    assert {(each.kind, each.stage) for each in found} == {("update", "update")}
    assert found[0].reason == (
        "parameters.weight deviates by 0.00108 of its size, though it and its gradient agreed in the step before: "
        "look at the optimizer, weight decay, clipping"
    )


def test_a_parameter_that_differed_before_its_update_is_no_matter_of_updates() -> None:
    golden = side(sgd)
    wrong = [np.roll(weight, 1) if number == 4 else weight for number, weight in enumerate(WEIGHTS)]
    moved = [weight + sgd(number, weight, GRADIENTS[number]) for number, weight in enumerate(wrong)]
    (origin,) = origins((step(wrong, GRADIENTS), step(moved, GRADIENTS)), golden)
    assert (origin.kind, origin.stage) == ("parameter", "parameters")
    assert "check the checkpoint" in origin.reason


@pytest.mark.parametrize(("size", "found"), [(1.0, 1), (1e-3, 0)], ids=["as large as the other side's", "far smaller"])
def test_a_parameter_is_frozen_also_where_its_gradient_is_noise(size: float, found: int) -> None:
    """Adam makes steps of noise as large as of anything, each side in directions of its own."""
    noise = [1e-6 * _RANDOM.standard_normal((24, 16)).astype(np.float32) for _ in range(2)]
    ours, theirs = ([*GRADIENTS[:3], each, *GRADIENTS[4:]] for each in (np.float32(size) * noise[0], noise[1]))
    adam = adam_with(1e-8)

    def frozen_adam(number: int, weight: Array, gradient: Array) -> Array:
        return 0 * weight if number == 3 else adam(number, weight, gradient)

    told = origins(side(frozen_adam, gradients=ours), side(adam, gradients=theirs))
    frozen = [each.target for each in told if "is it frozen?" in each.reason]
    assert frozen == ["Cell.layers.3.Dense.forward.0.parameters.weight"] * found
