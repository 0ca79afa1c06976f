"""Dumps of single layers that numpy computes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from compare_parts import dump, tensor

from msprobe_ms.dump.model import Dump

Array = npt.NDArray[np.float32]
NORM = "Cell.net.norm.LayerNorm.forward.0"


def normal(*shape: int, scale: float = 1.0, mean: float = 0.0) -> Array:
    """Numbers of a normal distribution, the same in every run of a test."""
    return (np.random.standard_normal(shape) * scale + mean).astype(np.float32)


def layer_norm(x: Array, epsilon: float, *, wide: bool = False) -> Array:
    """In float32, or in double precision and rounded once: two frameworks' ways."""
    x = x.astype(np.float64) if wide else x
    mean = x.mean(-1, keepdims=True)
    deviation = np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + x.dtype.type(epsilon))
    return ((x - mean) / deviation).astype(np.float32)


def call(name: str, x: Array, y: Array, **parameters: Array) -> Dump:
    """The dump of one call of a layer that took x and gave y."""
    items = [tensor("input.0", x, name), tensor("output.0", y, name)]
    return dump(items + [tensor(f"parameters.{key}", value, name) for key, value in parameters.items()])
