"""Waves that no layer made are as far apart as their arguments round; other values are not."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.run import Options, compare_dumps

LINEAR = "Module.time.Linear.forward.0"
_RANDOM = np.random.default_rng(3)
#: Times of a diffusion of 2000 steps, and frequencies of its waves.
TIMES = np.array([[1818.12], [1203.4], [77.7]])
ANGLES = TIMES * 10.0 ** -np.linspace(0, 3, 16)
WEIGHT = _RANDOM.standard_normal((8, 32)).astype(np.float32)


AROUND = "Module.Embedding.forward.0"


def compared(angles: np.ndarray, golden: np.ndarray, *, cosines: float = 1.0, inside: bool = False) -> Comparison:
    """A layer that takes in what the script made of these angles, or the module around it of the times."""
    sides = []
    for each in (angles, golden):
        taken = np.concatenate([np.sin(each), cosines * np.cos(each)], 1).astype(np.float32)
        given = (taken.astype(np.float64) @ WEIGHT.T.astype(np.float64)).astype(np.float32)
        values = {"input.0": taken, "parameters.weight": WEIGHT, "output.0": given}
        items = values.items()
        sides.append(dump([tensor(at, it, LINEAR, sketch=encode(sketch(it), it.dtype)) for at, it in items]))
        if inside:
            around = {"input.0": TIMES.astype(np.float32), "output.0": given}.items()
            whole = [tensor(at, it, AROUND, sketch=encode(sketch(it), it.dtype)) for at, it in around]
            sides[-1].entries |= dump(whole).entries
            sides[-1].entries[LINEAR].parent = AROUND
    return compare_dumps(*sides, Options())


#: As float32 rounds an exponential, a product, and a time of that size.
ROUNDED = ANGLES * (1 + 6e-7 * _RANDOM.standard_normal(ANGLES.shape))


def test_large_arguments_round_and_their_waves_are_apart() -> None:
    found = compared(ROUNDED, ANGLES)
    assert not found.origins and found.verdict == "consistent"
    assert next(row for row in found.rows if row.state == "input").explained_by == "waves"


def test_a_module_that_makes_waves_of_times_gives_out_what_is_as_far_apart() -> None:
    found = compared(ROUNDED, ANGLES, inside=True)
    assert found.rows[-1].deviation is not None and found.rows[-1].deviation > 1.5 * (found.rows[-1].tolerance or 0)
    assert not found.origins and found.verdict == "consistent"


@pytest.mark.parametrize("angles", [ANGLES * 1.00002, ANGLES + 0.05, ANGLES[::-1] * 1.0])
def test_other_waves_are_an_origin(angles: np.ndarray) -> None:
    assert [each.state for each in compared(angles, ANGLES).origins] == ["input"]


def test_what_is_no_wave_is_held_to_rounding() -> None:
    """Its squares are not one half in the mean."""
    assert [each.state for each in compared(ROUNDED, ANGLES, cosines=0.9).origins] == ["input"]


@pytest.mark.parametrize(("wrong", "told"), [(0.0, []), (0.05, ["input"])])
def test_what_code_makes_of_waves_in_front_of_a_modules_first_call_is_as_far_apart(wrong: float, told: list) -> None:
    """The first layer is a function on both sides: what it makes is all that is seen of it."""
    sides = []
    for each, error in ((ROUNDED, wrong), (ANGLES, 0.0)):
        waves = np.concatenate([np.sin(each), np.cos(each)], 1).astype(np.float32)
        made = (waves @ WEIGHT.T + error * waves[:, :8]).astype(np.float32)
        values = [("input.0", made, LINEAR), ("output.0", np.maximum(made, 0), LINEAR)]
        values += [("input.0", waves, AROUND), ("output.0", np.maximum(made, 0), AROUND)]
        items = [tensor(at, it, entry, sketch=encode(sketch(it), it.dtype)) for at, it, entry in values]
        sides.append(dump(items))
        sides[-1].entries[LINEAR].parent = AROUND
    assert [each.state for each in compare_dumps(*sides, Options()).origins] == told
