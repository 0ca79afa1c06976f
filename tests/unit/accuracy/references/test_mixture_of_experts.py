"""Gating and routing of experts: ties, examples of the documents, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import assert_gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotReproducible

GATING = reference("npu_moe_gating_top_k_softmax")
PERMUTE, UNPERMUTE = (reference(f"moe_token_{name}", "Functional", "mindspore") for name in ("permute", "unpermute"))


def test_the_first_of_equal_ones_wins() -> None:
    y, experts, rows = outputs(GATING, np.array([[1.0, 3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 0.0]]), k=2)
    assert experts.tolist() == [[1, 2], [0, 1]] and experts.dtype == rows.dtype == np.int32
    assert experts.tolist() != [[3, 2], [3, 2]]
    assert rows.tolist() == [[0, 2], [1, 3]]
    np.testing.assert_allclose(y[1], [0.25, 0.25])


def test_finished_rows_have_no_expert() -> None:
    x, finished = normal(3, 5), np.array([False, True, False])
    experts = outputs(GATING, x, finished, 2)[1]
    assert experts[1].tolist() == [5, 5]
    np.testing.assert_array_equal(experts[[0, 2]], outputs(GATING, x, None, 2)[1][[0, 2]])


def test_gating_of_three_axes() -> None:
    x = normal(2, 3, 6)
    y, experts, rows = outputs(GATING, x, None, 3)
    assert y.shape == experts.shape == rows.shape == (2, 3, 3)
    p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    np.testing.assert_allclose(y, -np.sort(-p, axis=-1)[..., :3], rtol=1e-13)
    np.testing.assert_allclose(np.take_along_axis(p, experts, -1), y, rtol=1e-13)
    assert rows.reshape(6, 3).T.reshape(-1).tolist() == list(range(18))
    assert_gradients(GATING, x, None, 3)
    with pytest.raises(NotReproducible, match="the 7 largest of 6"):
        outputs(GATING, x, None, 7)


def test_the_example_of_the_document() -> None:
    tokens = np.repeat(np.array([1.0, 7, 2, 1, 2, 3])[:, np.newaxis], 3, 1)
    permuted, places = outputs(PERMUTE, tokens, np.array([5, 0, 3, 1, 2, 4]))
    assert permuted[:, 0].tolist() == [7, 1, 2, 2, 3, 1] and places.tolist() == [5, 0, 3, 1, 2, 4]


@pytest.mark.parametrize("kept", [None, 0, 6, 5])
def test_tokens_go_and_come_back(kept: int | None) -> None:
    tokens, experts = normal(4, 3), np.array([[1, 0], [0, 2], [1, 1], [2, 0]])
    permuted, places = outputs(PERMUTE, tokens, experts, kept)
    order = sorted(range(8), key=lambda place: (experts.reshape(-1)[place], place))
    np.testing.assert_array_equal(permuted, tokens[np.array(order) // 2][: kept or 8])
    assert_gradients(PERMUTE, tokens, experts, kept)
    probs = normal(4, 2, seed=1)
    expected = np.zeros((4, 3))
    for row, place in enumerate(order[: kept or 8]):
        expected[place // 2] += probs[place // 2, place % 2] * permuted[row]
    np.testing.assert_allclose(outputs(UNPERMUTE, permuted, places, probs)[0], expected, rtol=1e-13)
    assert_gradients(UNPERMUTE, permuted.copy(), places, probs)


def test_without_probabilities_each_token_is_one() -> None:
    permuted, places = normal(4, 3), np.array([2, 0, 3, 1])
    np.testing.assert_array_equal(outputs(UNPERMUTE, permuted, places)[0], permuted[places])
    assert_gradients(UNPERMUTE, permuted, places)


def test_what_documents_leave_open_is_refused() -> None:
    with pytest.raises(NotReproducible, match="twice"):
        outputs(UNPERMUTE, normal(3, 2), np.array([0, 0, 1]))
    for found in (PERMUTE, UNPERMUTE):
        with pytest.raises(NotReproducible, match="padded mode"):
            outputs(found, normal(3, 2), np.array([0, 2, 1]), padded_mode=True)
