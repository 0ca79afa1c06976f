"""A container whose borders are others in the first step has them in later ones, where updates have set all apart."""

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

_RANDOM = np.random.default_rng(6)
X, Y, NORMAL, WEIGHT, SLOPE, ERROR = (_RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(6))
BLOCK, LAYER, NORM = "Cell.block.Block.forward.0", "Cell.block.fc.Dense.forward.0", "Cell.norm.Norm.forward.0"


def step(updates: int, apart: float, *, inside: bool, wrong: float = 0.0) -> Dump:
    """A block of one layer, which adds what it was given ``inside`` or has code behind it do so, and a norm.

    ``apart``  part of an update by which this side's differ; results differ by as much, and by ``wrong`` besides
    """
    drift = 1e-6 * apart + 0.1 * updates * apart
    made = Y + np.float32(drift) * ERROR + np.float32(wrong) * X
    whole = X + made
    weight = WEIGHT - 0.1 * updates * (SLOPE + np.float32(apart) * ERROR)
    values = [
        ("input.0", X, LAYER), ("parameters.weight", weight, LAYER), ("output.0", made, LAYER),
        ("input.0", X, BLOCK), ("output.0", whole if inside else made, BLOCK),
        ("input.0", whole, NORM), ("output.0", NORMAL + np.float32(drift + wrong) * ERROR, NORM),
        ("parameters_grad.weight", SLOPE + np.float32(6 * drift) * ERROR, "Cell.block.fc.Dense.parameters_grad"),
    ]  # fmt: skip
    arrays = [(place, np.asarray(each, np.float32), entry) for place, each, entry in values]
    found = dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in arrays])
    found.entries[LAYER].parent = BLOCK
    return found


def origins(now: Dump, before: Dump) -> list[str]:
    golden, golden_before = step(1, 0.0, inside=True), step(0, 0.0, inside=True)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    found = find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: (before, golden_before)})))
    return [each.target for each in found]


def test_a_block_that_code_behind_it_completes_is_the_same_code_after_updates() -> None:
    before = step(0, 0.01, inside=False)
    assert origins(step(1, 0.01, inside=False), before) == []


@pytest.mark.parametrize("inside", [True, False])
def test_what_is_wrong_now_and_was_right_at_first_is_an_origin(*, inside: bool) -> None:
    before = step(0, 0.01, inside=inside)
    assert origins(step(1, 0.01, inside=inside, wrong=0.5), before)[0] == f"{LAYER}.output.0"


def test_a_block_that_no_later_use_cleared_in_the_first_step_is_none_in_a_later_one() -> None:
    """What comes behind it differed as well: the first step's own origin, and this one's."""
    before = step(0, 0.01, inside=False, wrong=0.5)
    assert origins(step(1, 0.01, inside=False, wrong=0.5), before)[0] == f"{LAYER}.output.0"
