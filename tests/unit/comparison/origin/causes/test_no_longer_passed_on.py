"""Code that passes a tensor on passes it on in every step, however far trainings have drifted apart."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

RANDOM = np.random.default_rng(7)
DATA, WEIGHT, RESULT, ERROR = (RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(4))
BLOCK, LAYER = "Cell.block.Block.forward.0", "Cell.block.fc.Dense.forward.0"


def step(drift: float = 0.0, times: float = 1.0, *, rolled: bool = False) -> Dump:
    """A step of a block that returns what its layer returns, but ``times`` as much or ``rolled``."""
    inner = RESULT + np.float32(3 * drift) * ERROR
    outer = np.roll(inner, 1) if rolled else np.float32(times) * inner
    values = [
        ("input.0", DATA, LAYER),
        ("parameters.weight", WEIGHT + np.float32(drift) * ERROR, LAYER),
        ("output.0", inner, LAYER),
        ("input.0", DATA, BLOCK),
        ("output.0", outer, BLOCK),
    ]
    made = dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in values])
    made.entries[LAYER].parent = BLOCK
    return made


def origins(now: Dump, first: Dump) -> list[str]:
    """Those beside a step whose weights drift apart by half their tolerance."""
    golden = step()
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    return [each.target for each in find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: (first, step())})))]


@pytest.mark.parametrize("now", [step(2e-5, 1.00007), step(2e-5, rolled=True)])
def test_a_result_that_is_changed_on_its_way_out_is_the_origin(now: Dump) -> None:
    assert origins(now, step(1e-8)) == [f"{BLOCK}.output.0"]


def test_what_is_passed_on_drifts_as_where_it_was_made() -> None:
    assert origins(step(2e-5), step(1e-8)) == []


def test_what_was_not_passed_on_in_the_first_step_is_judged_by_what_it_is_computed_from() -> None:
    assert origins(step(2e-5, 1.00001), step(1e-8, 1.00001)) == []


SCALE, SHIFT = "Tensor.mul.0.forward", "Tensor.add.0.forward"


def shifted_step(drift: float = 0.0, shift: float = 0.0) -> Dump:
    """A step of a block that scales, then adds a number, and returns that."""
    scaled = RESULT + np.float32(3 * drift) * ERROR
    values = [
        ("input.0", DATA, SCALE),
        ("input.1", WEIGHT + np.float32(drift) * ERROR, SCALE),
        ("output.0", scaled, SCALE),
        ("input.0", scaled, SHIFT),
        ("output.0", scaled + np.float32(shift), SHIFT),
        ("input.0", DATA, BLOCK),
        ("parameters.weight", WEIGHT + np.float32(drift) * ERROR, BLOCK),
        ("output.0", scaled + np.float32(shift), BLOCK),
    ]
    made = dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in values])
    for call in (SCALE, SHIFT):
        made.entries[call].parent = BLOCK
    return made


def test_what_added_zero_at_first_is_still_passed_on() -> None:
    """The golden's number has left zero, the target's has not: both still return what the addition gives."""
    now, golden, first = shifted_step(2e-5), shifted_step(shift=5e-5), shifted_step(1e-8)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    earlier = EarlierSteps({1: lambda: (first, shifted_step())})
    assert find_origins(Evidence(pairs, earlier=earlier)) == []
