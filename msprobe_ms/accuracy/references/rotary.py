"""Rotary position embedding in its four modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, Computed, Gradient, NotReproducible, sum_to
from msprobe_ms.support.translation import tr, tr_list

#: By the numbers that operators know them by.
MODES = ("half", "interleave", "quarter", "interleave-half")


class _Reordering(NamedTuple):
    """A linear map of the last axis: element k becomes ``signs[k] * x[order[k]]``."""

    order: Array
    signs: Array

    def of(self, x: Array) -> Array:
        return x[..., self.order] * self.signs

    def transposed(self, g: Array) -> Array:
        """What its matrix, transposed, makes of g."""
        gradient = np.empty_like(g)
        gradient[..., self.order] = g * self.signs
        return gradient


def _maps(mode: str, size: int) -> tuple[_Reordering, _Reordering]:
    """What is multiplied with the cosine, and what with the sine."""
    places, ones = np.arange(size), np.ones(size)
    same = _Reordering(places, ones)
    halves = np.split(places, 2)
    if mode == "half":  # (-x2, x1)
        return same, _Reordering(np.concatenate(halves[::-1]), np.where(places < size // 2, -1.0, 1.0))
    if mode == "interleave":  # -x[2i+1], x[2i]
        return same, _Reordering(places ^ 1, np.where(places % 2, 1.0, -1.0))
    if mode == "quarter":  # (-x2, x1, -x4, x3)
        first, second, third, fourth = np.split(places, 4)
        return same, _Reordering(
            np.concatenate([second, first, fourth, third]), np.where(places * 4 // size % 2, 1.0, -1.0)
        )
    # interleave-half: the even elements before the odd ones, then as half
    even, odd = places[::2], places[1::2]
    return (
        _Reordering(np.concatenate([even, odd]), ones),
        _Reordering(np.concatenate([odd, even]), np.where(places < size // 2, -1.0, 1.0)),
    )


def rotary(x: Array, cos: Array, sin: Array, mode: str | int = "half") -> Computed:
    """y = cos * x + sin * rot(x), cos and sin broadcast to x; rot of the last axis:

    half (-x2, x1) of halves; interleave rot[2i] = -x[2i+1], rot[2i+1] = x[2i]; quarter (-x2, x1, -x4, x3) of quarters;
    interleave-half: x with its even elements before its odd ones, then half.
    dx = cos * g + rot transposed of (sin * g); dcos = sum of g * x, dsin = sum of g * rot(x) where they were broadcast.
    """
    name = MODES[mode] if isinstance(mode, int) and mode in range(len(MODES)) else mode
    if name not in MODES:
        raise NotReproducible(tr("no rotary mode {mode} is known; {modes} are", mode=repr(mode), modes=tr_list(MODES)))
    size = x.shape[-1]
    if size % (4 if name == "quarter" else 2):
        raise NotReproducible(tr("a last axis of {size} cannot be rotated by mode {name}", size=size, name=name))
    straight, rotated = _maps(str(name), size)
    kept, turned = straight.of(x), rotated.of(x)

    def backward(g: Array) -> Mapping[str, Gradient]:
        return {
            "x": straight.transposed(cos * g) + rotated.transposed(sin * g),
            "cos": sum_to(g * kept, cos.shape),
            "sin": sum_to(g * turned, sin.shape),
        }

    return Computed((cos * kept + sin * turned,), backward)
