"""Made-up arguments become ones that operators accept; others stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference_calls import arguments, normal, outputs, plain, reference

from msprobe_ms.accuracy.references import NotReproducible, with_valid_contents

FUSED = reference("npu_fusion_attention")
Q, K = normal(2, 2, 4, 3), normal(2, 2, 6, 3)


def coins(*shape: int, dtype: Any = bool) -> np.ndarray:
    """A mask as it is made up."""
    return (np.random.default_rng(1).random(shape) > 0.5).astype(dtype)


@pytest.mark.parametrize(("mode", "shape", "given"), [
    (2, (2048, 2048), {}), (3, (2048, 2048), {}), (4, (2048, 2048), {"pre_tockens": 2, "next_tockens": 1}),
    (6, (3072, 2048), {"prefix": [3, 4]}), (5, (2, 2, 4, 6), {"prefix": [3, 4]}),
    (5, (2, 1, 4, 6), {"prefix": [3, 4]}),
    (2, (4, 6), {}), (0, (2, 1, 4, 6), {"pre_tockens": 2, "next_tockens": 1}), (1, (4, 6), {}), (0, (1, 1, 4, 6), {}),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_masks_of_every_mode_are_accepted(
    mode: int, shape: tuple[int, ...], given: dict[str, Any], dtype: type
) -> None:
    mask = coins(*shape, dtype=dtype)
    call = arguments(Q, K, K, 2, "BNSD", atten_mask=mask, sparse_mode=mode, **given)
    made = with_valid_contents(FUSED, call)
    assert made.keywords["atten_mask"].values.dtype == dtype and made.keywords["atten_mask"].values.shape == shape
    found = plain(FUSED.run(made).outputs)
    assert found[0].all() and isinstance(found[1], np.ndarray), "every row has a key"
    if mode in (2, 3, 4, 5):
        with pytest.raises(NotReproducible):
            FUSED.run(call)


def test_rows_without_a_key_get_one_and_others_stay() -> None:
    mask = coins(4, 6)
    mask[1] = True
    made = with_valid_contents(FUSED, arguments(Q, K, K, 2, "BNSD", atten_mask=mask)).keywords["atten_mask"].values
    assert made[1].tolist() == [False, True, True, True, True, True]
    np.testing.assert_array_equal(made[[0, 2, 3]], mask[[0, 2, 3]])
    assert mask[1].all(), "what was given is left as it is"


def test_ends_of_sequences_rise_to_the_number_of_tokens() -> None:
    flash = reference("flash_attention_score", "Functional", "mindspore")
    ends = {"actual_seq_qlen": np.array([7, 2, 5]), "actual_seq_kvlen": np.array([3, 9, 3])}
    tokens = normal(8, 2, 3), normal(9, 2, 3), normal(9, 2, 3, seed=1)
    made = with_valid_contents(flash, arguments(*tokens, 2, input_layout="TND", **ends))
    assert [made.keywords[name].values.tolist() for name in ends] == [[2, 5, 8], [3, 3, 9]]
    assert plain(flash.run(made).outputs)[0].shape == (8, 2, 3)


def test_indices_become_a_permutation() -> None:
    unpermute = reference("npu_moe_token_unpermute")
    made = with_valid_contents(unpermute, arguments(normal(4, 3), np.array([2, 2, 0, 2], np.int32)))
    assert sorted(made.positional[1].values.tolist()) == [0, 1, 2, 3] and made.positional[1].dtype == "int32"


def test_what_is_no_tensor_and_other_operators_stay() -> None:
    call = arguments(Q, K, K, 2, "BNSD")
    assert with_valid_contents(FUSED, call) == call
    norm = arguments(normal(2, 4), normal(4))
    assert with_valid_contents(reference("npu_rms_norm"), norm) is norm
    outputs(FUSED, Q, K, K, 2, "BNSD")
