"""Arguments that must be more than within a range."""

from __future__ import annotations

import numpy as np

from msprobe_ms.accuracy.calls import ApiCall, RecordedTensor
from msprobe_ms.accuracy.data import drawn


def values(prefix: str, api: str, place: str, tensor: RecordedTensor) -> np.ndarray:
    call = ApiCall(f"{prefix}.{api}.0", prefix, api)
    return drawn(call, 0)(tensor._replace(place=f"forward.{place}")).values


def test_indices_of_a_scatter_are_distinct() -> None:
    index = values("Functional", "scatter", "input.2", RecordedTensor("int64", (3, 8), 9, 0))
    assert all(len(set(row)) == 8 for row in index.tolist())
    assert index.min() >= 0 and index.max() <= 9


def test_boundaries_are_sorted() -> None:
    boundaries = values("Mint", "bucketize", "input.1", RecordedTensor("float32", (20,), 5.0, -5.0))
    assert (np.diff(boundaries) >= 0).all()


def test_a_matrix_to_factorise_is_positive_definite() -> None:
    matrix = values("Functional", "cholesky", "input.0", RecordedTensor("float32", (2, 6, 6), 1.0, -1.0))
    assert (np.linalg.eigvalsh(matrix.astype(np.float64)) > 0).all()


def test_a_matrix_to_invert_is_well_conditioned() -> None:
    matrix = values("Functional", "inverse", "input.0", RecordedTensor("float32", (6, 6), 1.0, -1.0))
    assert np.linalg.cond(matrix) < 10
