"""A float width that changes between two steps is the origin, however little it makes of the values."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

RANDOM = np.random.default_rng(7)
DATA, WEIGHT, ERROR = (RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(3))
LAYERS = [f"Cell.fc{place}.Dense.forward.0" for place in range(12)]


def step(narrow: tuple[int, ...] = (), drift: float = 0.0) -> Dump:
    """A step of twelve layers; the weights of some are in float16, and all drift apart by updates."""
    items = []
    for place, layer in enumerate(LAYERS):
        weight = WEIGHT + np.float32(drift) * ERROR
        values = weight.astype(np.float16) if place in narrow else weight
        items += [
            tensor(name, each, layer, sketch=encode(sketch(each), each.dtype))
            for name, each in (("input.0", DATA), ("parameters.weight", values), ("output.0", DATA))
        ]
    return dump(items)


def origins(now: Dump, *first: Dump) -> list[Origin]:
    golden = step()
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    return find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: first})))


def test_a_weight_that_became_narrower_is_told_though_updates_explain_as_much() -> None:
    (origin,) = origins(step((3,), drift=2e-5), step(), step())
    assert (origin.target, origin.kind) == (f"{LAYERS[3]}.parameters.weight", "precision")
    assert origin.reason.startswith(
        "its parameters.weight is Float16 against Float32, which was one dtype in the first"
    )


def test_one_origin_where_several_became_narrower() -> None:
    (origin,) = origins(step((3, 4, 7), drift=2e-5), step(), step())
    assert "the same in 2 other calls" in origin.details


@pytest.mark.parametrize(("narrow", "first"), [((), ()), ((3, 4), (3, 4))])
def test_widths_that_are_as_in_the_first_step_say_nothing(narrow: tuple[int, ...], first: tuple[int, ...]) -> None:
    assert origins(step(narrow, drift=2e-5), step(first), step()) == []
