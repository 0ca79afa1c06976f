"""The first step stands as a later one is paired: the same entries and items, measured anew."""

from __future__ import annotations

import numpy as np
from compare_updates import CALL, GRADIENT, UPDATE, WEIGHT, step

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.first_step import evidence_at_first
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings


def later(*before: np.ndarray) -> Evidence:
    """A step after updates that nearly agree, and the first one, of which one side has these weights."""
    target, golden = step(WEIGHT + UPDATE, GRADIENT), step(WEIGHT + np.float32(1.0001) * UPDATE, GRADIENT)
    pairs = pair(target, golden, Mappings())
    measure(pairs, target, golden, "statistics")
    steps = {1: lambda: (step(before[0], GRADIENT), step(WEIGHT, GRADIENT))} if before else {}
    return Evidence(pairs, earlier=EarlierSteps(steps))


def test_values_of_the_first_step_are_measured_beside_each_other() -> None:
    first = evidence_at_first(later(np.float32(1.01) * WEIGHT))
    assert first is not None
    rows = {row.target.name: row for node in first.nodes for row in node.pair.rows if row.target is not None}
    weight = rows[f"{CALL}.parameters.weight"]
    assert weight.deviation is not None and abs(weight.deviation - 0.01) < 1e-4
    assert rows[f"{CALL}.input.0"].deviation == 0


def test_without_an_earlier_step_nothing_is_known() -> None:
    assert evidence_at_first(later()) is None
