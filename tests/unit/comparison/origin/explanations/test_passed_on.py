"""Containers that give out what a call inside them gave."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.origin.explanations.passed_on import PassedOn
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

NET = "Module.layers.Sequential.forward.0"
LAYERS = [f"Module.layers.{place}.Custom.forward.0" for place in range(6)]
VALUES = [np.random.default_rng(seed).standard_normal((8, 32)).astype(np.float32) for seed in range(7)]
ERROR = np.random.default_rng(9).standard_normal((8, 32)).astype(np.float32)


def side(growth: float, *, between: float = 0.0) -> Dump:
    """Layers in a row, each of which multiplies an error of 2e-6; code before the last one may add ``between``."""
    values = [
        each + ERROR * np.float32(2e-6 * growth**place if place and growth else 0) for place, each in enumerate(VALUES)
    ]
    items = []
    for place, layer in enumerate(LAYERS):
        taken = values[place] + np.float32(between if place == len(LAYERS) - 1 else 0) * ERROR
        items += [
            ("input.0", taken, layer),
            ("output.0", values[place + 1] + np.float32(between) * ERROR * (place == len(LAYERS) - 1), layer),
        ]
    items += [("input.0", values[0], NET), ("output.0", items[-1][1], NET)]
    made = dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in items])
    for layer in LAYERS:
        made.entries[layer].parent = NET
    return made


def origins(target: Dump, golden: Dump) -> list[str]:
    golden.framework = "pytorch"
    return [origin.target for origin in compare_dumps(target, golden, Options()).origins]


def test_a_sequence_of_layers_is_judged_by_its_layers() -> None:
    """Each makes three times as much of what it takes in, which is no fault; in all that is 729 times."""
    target, golden = side(3.0), side(0.0)
    golden.framework = "pytorch"
    comparison = compare_dumps(target, golden, Options())
    (row,) = [row for row in comparison.rows if row.target and row.target.name == f"{NET}.output.0"]
    assert row.differs and row.explained_by == PassedOn.name
    assert f"{NET}.output.0" not in [origin.target for origin in comparison.origins]


@pytest.mark.parametrize("between", [1e-2, 1.0])
def test_code_of_its_own_between_its_calls_is_told_at_the_container(between: float) -> None:
    assert origins(side(0.0, between=between), side(0.0)) == [f"{NET}.output.0"]
