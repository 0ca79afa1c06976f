"""Float32 statistics that are numbers of a narrower float: a cast to float16 or bfloat16 that no dtype shows.

Max and Min of a tensor that went through float16 are float16 numbers; of any other one in 2^13 is, by chance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Numbers with so few significant bits (0, 1, 0.5, 6, -100) come from anywhere.
_ROUND_BITS = 5


def rounded_on_one_side(mine: Floats, golden: Floats) -> npt.NDArray[np.bool_]:
    """For rows of (Max, Min) of two float32 tensors: whether those of one side alone are numbers of a narrower float.

    One of the two may be equal on both sides (the 0 of a ReLU).
    """
    one_sided = [_narrow(a) & ~_narrow(b) for a, b in ((mine, golden), (golden, mine))]
    same = mine == golden
    found: npt.NDArray[np.bool_] = np.zeros(len(mine), np.bool_)
    for marks in one_sided:
        found |= (marks | same).all(axis=1) & marks.any(axis=1)
    return found & (mine[:, 0] != mine[:, 1])


def _narrow(values: Floats) -> npt.NDArray[np.bool_]:
    """Whether the values have no more bits than float16 or bfloat16 numbers, and more than round numbers have."""
    with np.errstate(all="ignore"):
        mantissas = np.frexp(values)[0]
        half = values.astype(np.float16).astype(np.float64) == values
        brain = _has_bits(mantissas, 8)
    found: npt.NDArray[np.bool_] = (half | brain) & ~_has_bits(mantissas, _ROUND_BITS) & np.isfinite(values)
    return found


def _has_bits(mantissas: Floats, bits: int) -> npt.NDArray[np.bool_]:
    scaled = np.ldexp(mantissas, bits)
    found: npt.NDArray[np.bool_] = scaled == np.rint(scaled)
    return found
