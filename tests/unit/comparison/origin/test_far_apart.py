"""Inputs further apart than any drift, where no layer is the origin of an error."""

from __future__ import annotations

import numpy as np
from compare_nodes import node
from compare_parts import dump, judged, side_by_side, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.origin.causes.slow_drift import steepest
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.far_apart import inputs_far_apart
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.reporting.terminal import verdict_lines
from msprobe_ms.comparison.run import Outcome, verdict_of
from msprobe_ms.dump.model import Dump


def test_trainings_that_have_gone_far_apart_are_not_consistent() -> None:
    """No layer adds error of its own, yet what runs through the net is thousands of tolerances apart."""
    taken = side_by_side((tensor("input.0", np.ones(4)), tensor("input.0", np.ones(4) * 1.001)))
    given = side_by_side((tensor("output.0", np.ones(4)), tensor("output.0", np.ones(4) * 1.001)))
    measure([taken, given], dump([]), dump([]), "statistics")
    assert [inputs_far_apart(Evidence([each])) for each in (taken, given)] == [1, 0]
    growth = str(steepest(Evidence([taken], []).nodes))
    comparison = judged(Comparison("statistics", [taken], far_apart=1, growth=growth))
    assert comparison.verdict == "divergent"
    lines = list(verdict_lines(Outcome("", dump([]), dump([]), comparison, [])))
    assert lines[0] == "DIVERGENT: 1 input of a call lies far apart, but no single layer is the origin"
    assert lines[2] == ("  the error grows most at Functional.op.0.forward.input.0, from 1 to 999 times its tolerance")
    assert verdict_of(Comparison("statistics", [given])) == "consistent"


def far(grown: float, taken: float) -> int:
    """A difference of numbers near 1000 that leaves about 1, ``grown`` tolerances apart, and what takes it in."""
    difference = node("Tensor.sub.0.forward", None, (1e3, 1e3), given=(1.0, 1.0), input_0=0.1, output_0=grown)
    after = node("Cell.a.Dense.forward.0", None, (1.0, 1.0), given=(2.0, 3.0), input_0=taken, output_0=1.0)
    return inputs_far_apart(Evidence([difference, after]))


def test_a_difference_of_what_is_nearly_equal_makes_error_grow() -> None:
    assert far(grown=90.0, taken=300.0) == 0
    assert far(grown=90.0, taken=2000.0) == 1
    assert far(grown=900.0, taken=300.0) == 1, "its condition does not explain that much"


_RANDOM = np.random.default_rng(3)
WEIGHT, UPDATE, DATA, ERROR = (_RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(4))


def step(updates: float, apart: float, off: float) -> Dump:
    """A layer after so many updates, its weight ``apart`` by them, and what it takes in off by a part of its size."""
    name = "Cell.fc.Dense.forward.0"
    values = {"parameters.weight": WEIGHT + updates * UPDATE + apart * ERROR, "input.0": DATA + off * ERROR}
    arrays = {place: each.astype(np.float32) for place, each in values.items()}
    return dump([tensor(place, each, name, sketch=encode(sketch(each), each.dtype)) for place, each in arrays.items()])


def far_in_second_step(first_off: float, apart: float, updates: float = 0.05) -> int:
    firsts, now, golden = (step(0, 0, first_off), step(0, 0, 0)), step(updates, apart, 0.03), step(0.05, 0, 0)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    return inputs_far_apart(Evidence(pairs, earlier=EarlierSteps({3: lambda: firsts})))


def test_a_network_makes_of_updates_what_it_made_of_rounding() -> None:
    assert far_in_second_step(first_off=3e-5, apart=2e-5) == 0
    assert far_in_second_step(first_off=1e-7, apart=2e-5) == 1, "in the first step it made next to nothing of rounding"
    assert far_in_second_step(first_off=3e-5, apart=1e-8) == 1, "updates set nothing apart"
    assert far_in_second_step(first_off=3e-5, apart=0.0, updates=0.1) == 1, "the target's updates are twice as large"
