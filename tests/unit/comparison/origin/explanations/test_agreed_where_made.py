"""A division gives its divisor a gradient beside a far larger one; what takes it in holds it against its own size."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(4)
ARRIVED, DIVIDEND, DIVISOR, NOISE = (_RANDOM.standard_normal((4, 16)).astype(np.float32) for _ in range(4))
DIVISION, SUM = "Tensor.__truediv__.0.backward", "Tensor.__add__.0.backward"


def side(off: float, taken: float | None = None) -> Dump:
    """The divisor's gradient, ``off`` by so much of its size, as the division gives it out and as a sum takes it in."""
    given, taken_in = (DIVISOR[:, :8] * (1 + off * NOISE[:, :8]) for off in (off, off if taken is None else taken))
    values = [
        (DIVISION, "input.0", ARRIVED),
        (DIVISION, "output.0", 1e6 * DIVIDEND),
        (DIVISION, "output.1", given),
        (SUM, "input.0", taken_in),
        (SUM, "output.0", taken_in),
    ]
    return dump([
        tensor(place, value.astype(np.float32), name, sketch=encode(sketch(value), np.dtype(np.float32)))
        for name, place, value in values
    ])  # fmt: skip


def compared(target: Dump) -> Comparison:
    golden = side(0.0)
    golden.framework = "pytorch"
    return compare_dumps(target, golden, Options())


def test_the_same_tensor_is_no_further_apart_where_it_is_taken_in() -> None:
    comparison = compared(side(3e-4))
    assert comparison.origins == []
    assert [row.explained_by for row in comparison.rows if row.differs][:1] == ["agreed where made"]


@pytest.mark.parametrize(
    "target", [side(0.1), side(0.0, taken=3e-4)], ids=["an error behind larger gradients", "another tensor"]
)
def test_what_is_far_apart_or_was_not_given_out_is_told(target: Dump) -> None:
    assert [origin.target for origin in compared(target).origins] == [f"{SUM}.input.0"]
