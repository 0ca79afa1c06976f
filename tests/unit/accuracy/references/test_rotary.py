"""Rotary position embedding: the modes as documents write them, layouts, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import assert_gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotReproducible

ROTARY = reference("npu_rotary_mul")
BY_NUMBER = reference("rotary_position_embedding", "Functional", "mindspore")
MODES = ("half", "interleave", "quarter", "interleave-half")


def rotated(x: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """What the cosine is multiplied with, and what the sine."""
    if mode == "half":
        x1, x2 = np.split(x, 2, -1)
        return x, np.concatenate([-x2, x1], -1)
    if mode == "interleave":
        return x, np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    if mode == "quarter":
        x1, x2, x3, x4 = np.split(x, 4, -1)
        return x, np.concatenate([-x2, x1, -x4, x3], -1)
    even, odd = x[..., ::2], x[..., 1::2]
    return np.concatenate([even, odd], -1), np.concatenate([-odd, even], -1)


#: Shapes of x and of the cosine: BNSD, BSND, SBND; and whole ones.
SHAPES = [
    ((2, 3, 4, 8), (1, 1, 4, 8)), ((2, 4, 3, 8), (1, 4, 1, 8)), ((4, 2, 3, 8), (4, 1, 1, 8)),
    ((2, 3, 4, 8), (2, 1, 4, 8)),    ((2, 3, 1, 8), (2, 3, 1, 8)), ((5, 8), (5, 8)), ((2, 5, 8), (5, 8)),
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "of_cos"), SHAPES)
def test_every_mode_in_every_layout(mode: str, shape: tuple[int, ...], of_cos: tuple[int, ...]) -> None:
    x, cos, sin = normal(*shape), normal(*of_cos, seed=1), normal(*of_cos, seed=2)
    straight, turned = rotated(x, mode)
    expected = cos * straight + sin * turned
    np.testing.assert_allclose(outputs(ROTARY, x, cos, sin, mode)[0], expected, rtol=1e-14)
    np.testing.assert_allclose(outputs(BY_NUMBER, x, cos, sin, MODES.index(mode))[0], expected, rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_all_three(mode: str) -> None:
    assert_gradients(ROTARY, normal(2, 2, 3, 4), normal(1, 1, 3, 4, seed=1), normal(1, 1, 3, 4, seed=2), mode)
    assert_gradients(ROTARY, normal(2, 4), normal(2, 4, seed=1), normal(2, 4, seed=2), rotary_mode=mode)


def test_halves_are_told_from_pairs() -> None:
    x, cos, sin = normal(1, 1, 2, 4), normal(1, 1, 2, 4, seed=1), normal(1, 1, 2, 4, seed=2)
    by_default = outputs(ROTARY, x, cos, sin)[0]
    np.testing.assert_array_equal(by_default, outputs(ROTARY, x, cos, sin, "half")[0])
    assert np.abs(by_default - outputs(ROTARY, x, cos, sin, "interleave")[0]).max() > 0.1


def test_what_cannot_be_rotated_is_refused() -> None:
    x = normal(1, 1, 2, 6)
    with pytest.raises(NotReproducible, match="no rotary mode 'other'"):
        outputs(ROTARY, x, x, x, "other")
    with pytest.raises(NotReproducible, match="6 cannot be rotated by mode quarter"):
        outputs(ROTARY, x, x, x, "quarter")
