"""Blocks of rows: memory stays bounded, bits of dropout are found at any place."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from reference_calls import normal

from msprobe_ms.accuracy.references import NotReproducible
from msprobe_ms.accuracy.references.attention import core as attention_core
from msprobe_ms.accuracy.references.attention.core import DropMask, Heads, Scores, attend, attend_backward
from msprobe_ms.accuracy.references.attention.mask import Mask


def test_memory_does_not_grow_with_the_square_of_the_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_core, "_BLOCK", 1 << 17)
    size = 2048  # all scores at once would be 32 MiB for each array of them
    q, k, v = (normal(1, size, 2, seed=each) for each in range(3))
    scores = Scores(0.5, Mask(None, 0, 0, 0, None, 1))
    out, statistics = np.empty((1, size, 2)), np.empty((2, 1, size))
    tracemalloc.start()
    attend(Heads(q, k, v), 0, scores, out, statistics)
    attend_backward(Heads(q, k, v), 0, scores, out, Heads(*(np.zeros_like(each) for each in (q, k, v))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 << 20


def test_bits_are_found_within_bytes() -> None:
    kept = normal(2, 2, 3, 5) > 0
    mask = DropMask.of(np.packbits(kept, bitorder="little"), 0.5, 2, [(3, 5), (3, 5)])
    for batch in (0, 1):
        for head in (0, 1):
            np.testing.assert_array_equal(mask.factors(batch, head, slice(1, 3), (3, 5)), kept[batch, head, 1:] / 0.5)


def test_a_mask_of_another_dtype_is_refused() -> None:
    with pytest.raises(NotReproducible, match="bool for 4 scores"):
        DropMask.of(np.ones(4, bool), 0.5, 1, [(2, 2)])
