"""Layouts of attention: what is filled through the sequences is the tensor."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import normal

from msprobe_ms.accuracy.references import NotReproducible
from msprobe_ms.accuracy.references.attention.layout import LAYOUTS, Sequences, key_heads

SHAPES = {"BSND": (2, 5, 3, 4), "BNSD": (2, 3, 5, 4), "SBH": (5, 2, 12), "BSH": (2, 5, 12), "TND": (10, 3, 4)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sequences_are_views_of_the_tensor(layout: str) -> None:
    tensor = normal(*SHAPES[layout])
    described = Sequences.of(tensor, layout, 3, [5, 10] if layout == "TND" else None)
    found = described.split(tensor)
    assert [each.shape for each in found] == [(3, 5, 4)] * 2
    copy = described.empty()
    for place, each in zip(described.split(copy), found, strict=True):
        place[...] = each
    np.testing.assert_array_equal(copy, tensor)
    assert described.empty(2).shape == (*tensor.shape[:-1], 6 if layout in ("SBH", "BSH") else 2)


def test_key_heads_are_read_off_the_shape() -> None:
    query = Sequences.of(normal(2, 5, 16), "BSH", 4)
    assert key_heads(query, normal(2, 7, 8)) == 2
    assert key_heads(Sequences.of(normal(2, 4, 5, 4), "BNSD", 4), normal(2, 1, 7, 4)) == 1


@pytest.mark.parametrize("ends", [None, [], [5, 9], [5, 11]])
def test_sequences_must_end_where_the_tokens_do(ends: list[int] | None) -> None:
    with pytest.raises(NotReproducible, match="sequences"):
        Sequences.of(normal(10, 3, 4), "TND", 3, ends)


def test_heads_must_divide() -> None:
    with pytest.raises(NotReproducible, match="has no 5 heads"):
        Sequences.of(normal(2, 5, 12), "BSH", 5)
