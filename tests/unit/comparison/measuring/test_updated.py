"""Parameters tell whether they were updated: those that nothing trains have no say."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.measuring.updated import were_updated
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

WEIGHT, ERROR = np.random.default_rng(3).standard_normal((2, 24, 24)).astype(np.float32)
#: A gradient of nothing, as one framework gives a frozen parameter.
NONE = np.zeros_like(WEIGHT)


def step(*parts: float, gradients: tuple[np.ndarray, ...] = ()) -> Dump:
    """A step of layers whose weights are off by these parts of their size."""
    values = [
        (f"Cell.fc{number}.Dense.forward.0", "parameters.weight", WEIGHT + np.float32(part) * ERROR)
        for number, part in enumerate(parts)
    ]
    values += [
        (f"Cell.fc{number}.Dense.parameters_grad", "parameters_grad.weight", gradient)
        for number, gradient in enumerate(gradients)
    ]
    return dump([tensor(place, each, entry) for entry, place, each in values])


def updated(*parts: float, gradients: tuple[np.ndarray, ...] = ()) -> bool:
    now, golden = step(*parts, gradients=gradients), step(*(0.0 for _ in parts), gradients=gradients)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    return were_updated(pairs)


@pytest.mark.parametrize(
    ("parts", "expected"), [((1e-3, 1e-3, 0), True), ((1e-3, 0, 0), False), ((0.3, 0.3, 0.3), False)]
)
def test_most_differ_after_updates_and_not_by_much(parts: tuple[float, ...], expected: bool) -> None:
    assert updated(*parts) is expected


def test_what_nothing_trains_has_no_say() -> None:
    """Of a model that is frozen but for its head most parameters stay equal."""
    assert updated(0, 0, 1e-3, gradients=(NONE, NONE, ERROR))
    assert not updated(0, 0, 1e-3, gradients=(ERROR, ERROR, ERROR))
