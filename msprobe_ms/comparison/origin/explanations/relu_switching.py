"""How far a gradient may be off because a derivative has a kink.

Where ReLU, max pooling or clipping switch, rounding decides the side: of n elements that differ by δ relative to their
size about nδ lie on the other side, and each of those has a gradient that differs wholly. So the gradients of two
healthy nets differ by about sqrt(nδ / n), as soon as nδ is not negligible; one switch at least costs sqrt(1 / n).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.scale import element_count

#: Modules without a kink, whatever the framework calls them, when nothing else runs inside.
_SMOOTH = (
    "dense", "linear", "conv", "norm", "embedding", "gelu", "tanh", "sigmoid", "silu", "softmax", "dropout", "lstm",
    "gru",
)  # fmt: skip
#: Expected switches in a tensor from which on one is no surprise: a step has hundreds of tensors.
_PLAUSIBLE = 1e-3
#: A gradient's largest elements are a few times its root mean square.
_LARGE = 4.0


def is_smooth(class_name: str) -> bool:
    """Whether a module of this class cannot have a kink: ``Dense``, ``LayerNorm``, ``Conv2d``…; ``LeakyReLU`` can."""
    name = class_name.lower()
    return any(smooth in name for smooth in _SMOOTH) and "hard" not in name


def allowed_by_kinks(forward: Iterable[Row]) -> float:
    """The deviation of a gradient that switches in these tensors of the forward call explain; 0 when none is likely."""
    allowed = 0.0
    for row in forward:
        if row.golden is None or not row.deviation or not parse_dtype(row.golden.dtype).epsilon:
            continue
        count = element_count(row.golden)
        switched = count * row.deviation
        if switched >= _PLAUSIBLE and math.isfinite(switched):
            allowed = max(allowed, _LARGE * math.sqrt(max(1.0, switched) / count))
    return allowed
