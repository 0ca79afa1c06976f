"""Steps of one layer before and after an update."""

from __future__ import annotations

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.updates import Update, updates_since
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(3)
WEIGHT, UPDATE, GRADIENT = (_RANDOM.standard_normal((40, 30)).astype(np.float32) for _ in range(3))
CALL = "Cell.fc.Dense.forward.0"


def step(weight: np.ndarray, gradient: np.ndarray | None = None, *, sketches: bool = True) -> Dump:
    places = [("input.0", WEIGHT, CALL), ("parameters.weight", weight, CALL), ("output.0", weight, CALL)]
    if gradient is not None:
        places.append(("parameters_grad.weight", gradient, "Cell.fc.Dense.parameters_grad"))
    items = [
        tensor(place, values, entry, sketch=encode(sketch(values), values.dtype) if sketches else None)
        for place, values, entry in places
    ]
    return dump(items)


def updates(ours: np.ndarray, theirs: np.ndarray, *before: Dump) -> list[Update]:
    target, golden = step(WEIGHT + ours), step(WEIGHT + theirs)
    pairs = pair(target, golden, Mappings())
    measure(pairs, target, golden, "statistics")
    both = before or (step(WEIGHT, GRADIENT), step(WEIGHT, GRADIENT))
    return list(updates_since(Evidence(pairs).nodes, *both))
