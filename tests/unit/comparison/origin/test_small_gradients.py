"""Relative errors of gradients next to nothing."""

from __future__ import annotations

import pytest
from compare_nodes import origins

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import parse_entry


def gradient(state: str, relative: float, held_against: float) -> Row:
    """A gradient ``relative`` of itself apart, and held against a size that is so many times its own."""
    name = "Functional.matmul.0.backward"
    golden = Item(name, state, ("0",), kind="tensor", type="torch.Tensor", dtype="torch.float32", shape=(8, 8),
                  maximum=0.3, minimum=-0.3, mean=0.01, norm=1.0)  # fmt: skip
    mine = golden._replace(type="mindspore.Tensor", dtype="Float32", norm=1 + relative)
    return Row(mine, golden, deviation=relative / held_against, tolerance=5e-5)


@pytest.mark.parametrize(
    ("taken", "given", "told"),
    [
        ((0.001, 50), (0.003, 11), False),  # by a matrix of norm 13 they grow as much beside that size
        ((0.001, 50), (0.02, 11), True),  # more than any call makes of error
        ((2e-5, 1), (2.4e-4, 1), False),
        ((2e-5, 1), (6e-4, 1), True),
        ((0.1, 5000), (0.5, 500), True),  # no noise has left so little: these are other values
        ((0.001, 50), (0.009, 10), False),  # far beside what is not theirs: no drift
    ],
)
def test_of_gradients_next_to_nothing_relative_errors_grow_as_any(
    taken: tuple[float, float], given: tuple[float, float], told: bool
) -> None:
    rows = [gradient("input", *taken), gradient("output", *given)]
    items = [row.target for row in rows if row.target is not None]
    entry = Entry(items[0].entry, parse_entry(items[0].entry), items)
    assert bool(origins(Pair(entry, entry, rows, "name"))) is told
