"""Code that adds adds in every step, however far trainings have drifted apart."""

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

RANDOM = np.random.default_rng(17)
DATA, WEIGHT, ATTENTION, RESULT, ERROR = (RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(5))
BLOCK = "Cell.block.Block.forward.0"
FIRST, SECOND = "Cell.block.attention.Dense.forward.0", "Cell.block.mlp.Dense.forward.0"


def step(drift: float = 0.0, *, inside: float = 1.0, outside: float = 1.0, shift: float = 0.0) -> Dump:
    """A step of a block of two layers with residual connections, which may multiply what the layers give."""
    off = np.float32(drift) * ERROR
    attention, result = ATTENTION + 2 * off, RESULT + 3 * off
    hidden = DATA + np.float32(inside) * attention + np.float32(shift)
    values = [
        ("input.0", DATA, FIRST),
        ("parameters.weight", WEIGHT + off, FIRST),
        ("output.0", attention, FIRST),
        ("input.0", hidden, SECOND),
        ("parameters.weight", WEIGHT + off, SECOND),
        ("output.0", result, SECOND),
        ("input.0", DATA, BLOCK),
        ("output.0", hidden + np.float32(outside) * result, BLOCK),
    ]
    made = dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in values])
    for layer in (FIRST, SECOND):
        made.entries[layer].parent = BLOCK
    return made


def origins(now: Dump, first: Dump, golden: Dump | None = None, golden_first: Dump | None = None) -> list[Origin]:
    golden, golden_first = golden or step(), golden_first or step()
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    return find_origins(Evidence(pairs, earlier=EarlierSteps({3: lambda: (first, golden_first)})))


def test_a_residual_connection_that_changed_is_the_origin_though_drift_is_larger() -> None:
    """The drift leaves a result 2e-4 apart, the code changes it by 1e-4."""
    (origin,) = origins(step(1e-4, outside=1.0001), step(1e-8))
    assert origin.target == f"{BLOCK}.output.0"
    assert origin.reason == (
        f"the target no longer adds {SECOND}.input.0 and {SECOND}.output.0 here, as both sides did in the first step: "
        "look at its code"
    )


def test_code_inside_a_module_shows_at_the_call_that_takes_its_sum_in() -> None:
    (origin,) = origins(step(1e-4, inside=1.0002), step(1e-8))
    assert origin.target == f"{SECOND}.input.0"


def test_the_golden_may_be_the_one_that_changed() -> None:
    (origin,) = origins(step(1e-4), step(1e-8), golden=step(outside=1.0002))
    assert origin.reason.startswith("the golden no longer adds ")


@pytest.mark.parametrize(
    ("now", "first", "golden"),
    [
        (step(1e-4), step(1e-8), step()),
        (step(1e-4, outside=1.00003), step(1e-8, outside=1.00003), step()),
        (step(1e-4, shift=1e-4), step(1e-8), step(shift=0.5e-4)),
    ],
    ids=["drift", "as in the first step", "a parameter that was zero and has left it on both sides"],
)
def test_sums_that_drift_or_change_on_both_sides_are_none(now: Dump, first: Dump, golden: Dump) -> None:
    assert origins(now, first, golden) == []
