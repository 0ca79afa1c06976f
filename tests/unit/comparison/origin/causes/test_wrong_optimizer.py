"""Updates of a parameter that differ though what they are computed from agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
from compare_nodes import assert_short
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump, Item

RANDOM = np.random.default_rng(5)
WEIGHT, GRADIENT, OTHER = (RANDOM.standard_normal((40, 30)).astype(np.float32) for _ in range(3))
ENTRY, BACKWARD = "Optimizer.fc.weight.0.forward", "Cell.fc.Dense.parameters_grad.0"


def step(
    update: np.ndarray = GRADIENT, gradient: np.ndarray = GRADIENT, framework: str = "mindspore", **settings: Any
) -> Dump:
    """A parameter that was updated by a hundredth of ``update``, and the gradient that backward gave."""
    tensors = [
        ("parameters_grad.weight", GRADIENT, BACKWARD), ("input.parameter", WEIGHT, ENTRY),
        ("input.gradient", gradient, ENTRY), ("output.0", WEIGHT - np.float32(0.01) * update, ENTRY),
    ]  # fmt: skip
    items = [
        tensor(place, values, entry, sketch=encode(sketch(values), values.dtype)) for place, values, entry in tensors
    ]
    values = [
        Item(ENTRY, "input", (name,), True, "value", "float", "<class 'float'>", (), value, value, value, value)
        for name, value in settings.items()
    ]
    return dump([*items, *values], framework)


def origins(target: Dump, golden: Dump) -> list[Origin]:
    pairs = pair(target, golden, Mappings())
    measure(pairs, target, golden, "statistics")
    found = find_origins(Evidence(pairs))
    for origin in found:
        assert_short(origin)
        assert origin.kind == "update"
    return found


def test_updates_that_agree_are_no_origin() -> None:
    assert origins(step(lr=0.1), step(lr=0.1)) == []
    assert origins(step(lr=0.1, framework="pytorch"), step(lr=np.float32(0.1).item())) == []


def test_settings_that_differ_are_named_together_whichever_framework() -> None:
    for framework in ("mindspore", "pytorch"):
        (found,) = origins(step(lr=0.002, eps=1e-8, framework=framework), step(lr=0.001, eps=1e-6))
        assert found.target == f"{ENTRY}.input.lr"
        assert found.reason == "input.lr is 0.002 against 0.001: the optimizers have different settings"
        assert found.details == ("input.eps is 1e-08 against 1e-06",)


def test_a_gradient_that_was_changed_after_backward() -> None:
    (found,) = origins(step(gradient=np.float32(0.5) * GRADIENT), step())
    assert found.target == f"{ENTRY}.input.gradient"
    assert found.reason.endswith("look at clipping, unscaling, accumulation")


def test_another_rule() -> None:
    (found,) = origins(step(update=np.float32(2) * GRADIENT), step())
    assert found.target == f"{ENTRY}.output.0"
    assert found.reason.startswith("the update differs by 50%, though what it is computed from agrees")
    assert found.details == ("it is 2 times the golden's",)
    (found,) = origins(step(update=OTHER), step())
    assert found.details == ()


def test_a_parameter_that_one_side_leaves_alone() -> None:
    (found,) = origins(step(update=0 * GRADIENT), step())
    assert found.reason == "the target does not update this parameter, though it is given the same gradient"


def test_single_elements_of_adam_may_go_the_other_way() -> None:
    signs = np.sign(GRADIENT)
    noisy = np.where(np.abs(GRADIENT) < 0.02, -signs, signs).astype(np.float32)
    assert origins(step(update=noisy), step(update=signs.astype(np.float32))) == []
