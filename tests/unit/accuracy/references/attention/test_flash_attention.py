"""Fused attention against one written out over whole scores: layouts, heads, masks, position codes, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference_calls import assert_gradients, gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotJudged, NotReproducible
from msprobe_ms.accuracy.references.attention import core as attention_core

FUSED, V2 = reference("npu_fusion_attention"), reference("npu_fusion_attention_v2")
FLASH, SPEED = (
    reference(name, "Functional", "mindspore") for name in ("flash_attention_score", "speed_fusion_attention")
)
OWN = reference("scaled_dot_product_attention", "Functional")
#: B, N1, N2, S1, S2, D
SIZES = 2, 4, 2, 3, 5, 4
COMPRESSED = np.triu(np.ones((2048, 2048), bool), 1)


def written_out(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float = 1.0, before: Any = 0.0, after: Any = 0.0,
    dropped: Any = False, kept: Any = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Attention of (B, N, S, D) with each key head repeated for the query heads that share it; rows without a key 0."""
    share = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    scores = scale * (q @ k.swapaxes(-1, -2) + before) + after
    scores = np.where(dropped, -np.inf, scores)
    largest = scores.max(-1, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    total = exponentials.sum(-1, keepdims=True)
    return exponentials / np.where(total == 0, 1, total) * kept @ v, largest[..., 0], total[..., 0]


def three(sizes: tuple[int, ...] = SIZES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query, key and value as (B, N, S, D)."""
    b, n1, n2, s1, s2, d = sizes
    return normal(b, n1, s1, d), normal(b, n2, s2, d, seed=1), normal(b, n2, s2, d, seed=2)


def laid_out(tensor: np.ndarray, layout: str) -> np.ndarray:
    """(B, N, S, D) in another layout."""
    _, n, _, d = tensor.shape
    places = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}[layout]
    moved = tensor.transpose(places)
    return np.ascontiguousarray(moved if layout[-1] == "D" else moved.reshape(*moved.shape[:2], n * d))


@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH"])
@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_layouts_and_grouped_heads(layout: str, key_heads: int) -> None:
    q, k, v = three((2, 4, key_heads, 3, 5, 4))
    expected, largest, total = written_out(q, k, v, 0.5)
    given = [laid_out(each, layout) for each in (q, k, v)]
    found = outputs(FUSED, *given, 4, layout, scale=0.5)
    np.testing.assert_allclose(found[0], laid_out(expected, layout), rtol=1e-12, atol=1e-14)
    for value, statistic in zip(found[1:3], (largest, total), strict=True):
        assert value.shape == (2, 4, 3, 8)
        np.testing.assert_allclose(value, np.repeat(statistic[..., None], 8, -1), rtol=1e-12)
    assert all(isinstance(each, NotJudged) for each in found[3:]) and len(found) == 7
    assert_gradients(FUSED, *given, 4, layout, scale=0.5)


def test_heads_in_turn_would_be_another_attention() -> None:
    q, k, v = three()
    found = outputs(FUSED, q, k, v, 4, "BNSD")[0]
    in_turn = written_out(q, np.tile(k, (1, 2, 1, 1)), np.tile(v, (1, 2, 1, 1)))[0]
    np.testing.assert_allclose(found, written_out(q, k, v)[0], rtol=1e-12, atol=1e-14)
    assert np.abs(found - in_turn).max() > 0.1


@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (2, 1, 3, 5), (1, 1, 3, 5), (3, 5)])
@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_masks_of_every_shape(shape: tuple[int, ...], dtype: type) -> None:
    q, k, v = three()
    mask = normal(*shape, seed=3) > 0.3
    mask[..., 0] = False
    for mode in (0, 1):
        found = outputs(FUSED, q, k, v, 4, "BNSD", atten_mask=mask.astype(dtype), sparse_mode=mode)[0]
        np.testing.assert_allclose(found, written_out(q, k, v, dropped=mask)[0], rtol=1e-12, atol=1e-14)
    assert_gradients(FUSED, q, k, v, 4, "BNSD", atten_mask=mask.astype(dtype), scale=0.7)


def mode_mask(mode: int, s1: int, s2: int, before: int, after: int, prefix: int) -> np.ndarray:
    """What a mode drops, as its document words it."""
    i, j = np.arange(s1)[:, None], np.arange(s2)
    corner = s2 - s1
    return {
        0: (j > i + after) | (j < i - before),
        2: j > i,
        3: j > i + corner,
        4: (j > i + corner + after) | (j < i + corner - before),
        6: (j > i + corner) & (j >= prefix),
    }[mode]


@pytest.mark.parametrize(("s1", "s2"), [(5, 5), (3, 6), (6, 3)])
@pytest.mark.parametrize("mode", [0, 2, 3, 4, 6])
def test_sparse_modes_are_told_from_ones_shifted_by_one(mode: int, s1: int, s2: int) -> None:
    q, k, v = three((1, 2, 2, s1, s2, 4))
    mask = np.vstack([COMPRESSED, np.tile(np.arange(2048) >= 1024, (1024, 1))]) if mode == 6 else COMPRESSED
    given = {"atten_mask": np.zeros((s1, s2), bool) if mode == 0 else mask, "sparse_mode": mode, "prefix": [2]}
    found = outputs(FUSED, q, k, v, 2, "BNSD", pre_tockens=2, next_tockens=1, **given)[0]
    dropped = mode_mask(mode, s1, s2, 2, 1, 2)
    np.testing.assert_allclose(found, written_out(q, k, v, dropped=dropped)[0], rtol=1e-12, atol=1e-14)
    for shift in (-1, 1):
        moved = np.roll(dropped, shift, axis=-1)
        if not np.array_equal(moved, dropped):
            assert np.abs(found - written_out(q, k, v, dropped=moved)[0]).max() > 1e-2


def test_dropped_keys_count_for_nothing_however_low_the_others_are() -> None:
    q, k, v = np.full((1, 1, 1, 1), 1e3), np.array([-100.0, 0.0]).reshape(1, 1, 2, 1), normal(1, 1, 2, 1)
    mask = np.array([[False, True]])
    assert outputs(FUSED, q, k, v, 1, "BNSD", atten_mask=mask)[0] == v[0, 0, 0, 0]


def test_a_prefix_that_is_given_whole() -> None:
    q, k, v = three()
    mask = np.stack([mode_mask(6, 3, 5, 0, 0, n) for n in (3, 4)])[:, None]
    found = outputs(FUSED, q, k, v, 4, "BNSD", atten_mask=mask, sparse_mode=5, prefix=[3, 4])[0]
    np.testing.assert_allclose(found, written_out(q, k, v, dropped=mask)[0], rtol=1e-12, atol=1e-14)
    with pytest.raises(NotReproducible, match="not that of sparse mode 5"):
        outputs(FUSED, q, k, v, 4, "BNSD", atten_mask=mask, sparse_mode=5, prefix=[3, 3])
    with pytest.raises(NotReproducible, match="without a prefix for each of 2"):
        outputs(FUSED, q, k, v, 4, "BNSD", atten_mask=mask, sparse_mode=5)


def test_without_a_mask_every_key_is_seen_in_any_mode() -> None:
    q, k, v = three()
    found = outputs(FUSED, q, k, v, 4, "BNSD", sparse_mode=2, next_tockens=0)[0]
    np.testing.assert_allclose(found, written_out(q, k, v)[0], rtol=1e-12, atol=1e-14)


def test_rows_without_a_key_are_zero() -> None:
    q, k, v = three((1, 2, 1, 6, 3, 4))
    given = {"atten_mask": COMPRESSED, "sparse_mode": 3}
    found = outputs(FUSED, q, k, v, 2, "BNSD", **given)
    assert not found[0][0, :, :3].any() and found[0][0, :, 3:].all()
    assert isinstance(found[1], NotJudged) and isinstance(found[2], NotJudged)
    assert_gradients(FUSED, q, k, v, 2, "BNSD", **given)


@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (2, 4, 1, 5), (1, 4, 3, 5)])
@pytest.mark.parametrize(("found", "name", "kind", "is_scaled"), [
    (FUSED, "pse", {}, True), (V2, "pse", {"pse_type": 0}, False), (SPEED, "pse", {}, True),
    (SPEED, "pse", {"pse_type": 0}, False), (FLASH, "real_shift", {}, False),
])  # fmt: skip
def test_position_codes_before_and_after_the_scale(
    shape: tuple[int, ...], found: Any, name: str, kind: dict[str, int], is_scaled: bool
) -> None:
    q, k, v = three()
    codes = normal(*shape, seed=4)
    scale = {"scalar_value" if found is FLASH else "scale": 0.3, "input_layout": "BNSD"}
    before, after = (codes, 0.0) if is_scaled else (0.0, codes)
    result = outputs(found, q, k, v, 4, **{name: codes}, **kind, **scale)[0]
    np.testing.assert_allclose(result, written_out(q, k, v, 0.3, before=before, after=after)[0], rtol=1e-12, atol=1e-14)
    assert np.abs(result - written_out(q, k, v, 0.3, before=after, after=before)[0]).max() > 1e-2
    assert_gradients(found, q, k, v, 4, **{name: codes}, **kind, **scale)


@pytest.mark.parametrize("root", [False, True])
def test_position_codes_from_slopes(root: bool) -> None:
    q, k, v = three()
    slopes = np.array([0.5, 0.25, 0.125, 0.0625])
    distance = np.abs(np.arange(5) + 1 - np.arange(3)[:, None] - 3.0)
    codes = -slopes[:, None, None] * (np.sqrt(distance) if root else distance)
    result = outputs(
        V2, q, k, v, 4, "BNSD", pse=slopes, pse_type=2 + root, scale=0.3, q_start_idx=[3], kv_start_idx=[1]
    )[0]
    np.testing.assert_allclose(result, written_out(q, k, v, 0.3, after=codes)[0], rtol=1e-12, atol=1e-14)


def test_the_last_rows_of_position_codes_stand_for_all() -> None:
    size = 1100
    q, k, v = normal(1, 1, size, 2), normal(1, 1, size, 2, seed=1), normal(1, 1, size, 2, seed=2)
    codes = 0.01 * (np.arange(size) - np.arange(size)[:, None])[None, None]
    given = {"atten_mask": COMPRESSED, "sparse_mode": 2, "scale": 0.5}
    found = outputs(FUSED, q, k, v, 1, "BNSD", pse=codes[:, :, -1024:].astype(float), **given)[0]
    dropped = np.triu(np.ones((size, size), bool), 1)
    np.testing.assert_allclose(found, written_out(q, k, v, 0.5, before=codes, dropped=dropped)[0], rtol=1e-11)
    with pytest.raises(NotReproducible, match="distance"):
        outputs(FUSED, q, k, v, 1, "BNSD", pse=normal(1, 1, 1024, size), **given)
    with pytest.raises(NotReproducible, match="without a mask"):
        outputs(FUSED, q, k, v, 1, "BNSD", pse=codes[:, :, -1024:].astype(float))


def test_dropout_needs_the_recorded_mask_and_applies_it() -> None:
    q, k, v = three((2, 4, 2, 3, 8, 4))
    for found in (FUSED, V2, SPEED, FLASH):
        with pytest.raises(NotReproducible) as refused:
            outputs(found, q, k, v, 4, input_layout="BNSD", keep_prob=0.9)
        assert refused.value.reason == "needs recorded mask"
    kept = normal(2, 4, 3, 8, seed=5) > -0.5
    bits = np.packbits(kept, axis=-1, bitorder="little")
    given = {"drop_mask": bits, "keep_prob": 0.75, "input_layout": "BNSD", "scalar_value": 0.5}
    found = outputs(FLASH, q, k, v, 4, **given)[0]
    np.testing.assert_allclose(found, written_out(q, k, v, 0.5, kept=kept / 0.75)[0], rtol=1e-12, atol=1e-14)
    assert_gradients(FLASH, q, k, v, 4, **given)
    with pytest.raises(NotReproducible, match="drop mask of 12"):
        outputs(FLASH, q, k, v, 4, **{**given, "drop_mask": bits[:1]})


ENDS = {"actual_seq_qlen": [3, 5, 9], "actual_seq_kvlen": (4, 8, 13)}


def ragged(q: np.ndarray, k: np.ndarray, v: np.ndarray, masks: list[Any], kept: Any = None) -> np.ndarray:
    """Each of the sequences of ``ENDS`` on its own."""
    found = []
    for number, (start, end, first, last) in enumerate([(0, 3, 0, 4), (3, 5, 4, 8), (5, 9, 8, 13)]):
        one = (q[start:end].swapaxes(0, 1)[None], *(each[first:last].swapaxes(0, 1)[None] for each in (k, v)))
        factors = 1.0 if kept is None else kept[number]
        found.append(written_out(*one, 0.5, dropped=masks[number], kept=factors)[0][0].swapaxes(0, 1))
    return np.concatenate(found)


@pytest.mark.parametrize("mode", [None, 0, 2, 3, 4, 7, 8])
def test_sequences_one_after_the_other(mode: int | None) -> None:
    q, k, v = normal(9, 4, 4), normal(13, 2, 4, seed=1), normal(13, 2, 4, seed=2)
    sizes = [(3, 4), (2, 4), (4, 5)]
    band = [mode_mask(4, *size, 3, 1, 0) for size in sizes]
    right, left = ([mode_mask(corner, *size, 0, 0, 0) for size in sizes] for corner in (3, 2))
    whole = normal(4, 5) > 1.0
    masks: dict[int | None, list[Any]] = {
        None: [False] * 3, 0: [whole[:a, :b] for a, b in sizes], 2: left, 3: right, 4: band,
        7: [*right[:2], band[2]], 8: [band[0], *left[1:]],
    }  # fmt: skip
    given: dict[str, Any] = {"scale": 0.5, **ENDS}
    if mode is not None:
        given |= {"atten_mask": COMPRESSED if mode else whole, "sparse_mode": mode}
    if mode in (4, 7, 8):
        given |= {"pre_tockens": 3, "next_tockens": 1}
    found = outputs(FUSED, q, k, v, 4, "TND", **given)
    np.testing.assert_allclose(found[0], ragged(q, k, v, masks[mode]), rtol=1e-12, atol=1e-14)
    assert isinstance(found[1], NotJudged)
    if mode in (None, 3):
        assert outputs(FUSED, q, k, v, 4, "TND", softmax_layout="TND", **given)[1].shape == (9, 4, 8)
        assert_gradients(FUSED, q, k, v, 4, "TND", **given)


def test_dropout_of_sequences_one_after_the_other() -> None:
    q, k, v = normal(9, 4, 4), normal(13, 2, 4, seed=1), normal(13, 2, 4, seed=2)
    kept = [normal(4, *size, seed=6) > -0.5 for size in ((3, 4), (2, 4), (4, 5))]
    bits = np.packbits(np.concatenate([each.reshape(-1) for each in kept]), bitorder="little")
    given = {"drop_mask": bits, "keep_prob": 0.75, "input_layout": "TND", "scalar_value": 0.5, **ENDS}
    expected = ragged(q, k, v, [False] * 3, [each[None] / 0.75 for each in kept])
    np.testing.assert_allclose(outputs(FLASH, q, k, v, 4, **given)[0], expected, rtol=1e-12, atol=1e-14)


def test_sequences_at_the_end_may_take_no_part() -> None:
    q, k, v = normal(5, 2, 4), normal(8, 2, 4, seed=1), normal(8, 2, 4, seed=2)
    ends = {"actual_seq_qlen": [3, 5, 0], "actual_seq_kvlen": [4, 8, 0]}
    without = {name: each[:2] for name, each in ends.items()}
    np.testing.assert_array_equal(
        outputs(FUSED, q, k, v, 2, "TND", **ends)[0], outputs(FUSED, q, k, v, 2, "TND", **without)[0]
    )


@pytest.mark.parametrize("block", [1, 7, 20, 1 << 21])
def test_blocks_of_any_size_give_the_same(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_core, "_BLOCK", block)
    q, k, v = three((1, 2, 1, 9, 8, 4))
    codes, mask = normal(1, 2, 9, 8, seed=4), normal(9, 8) > 0.5
    kept = normal(1, 2, 9, 8, seed=5) > -0.5
    given = {
        "real_shift": codes, "attn_mask": mask, "drop_mask": np.packbits(kept, axis=-1, bitorder="little"),
        "keep_prob": 0.75, "input_layout": "BNSD",
    }  # fmt: skip
    found = outputs(FLASH, q, k, v, 2, **given)[0]
    expected = written_out(q, k, v, after=codes, dropped=mask, kept=kept / 0.75)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert_gradients(FLASH, q, k, v, 2, **given)


@pytest.mark.parametrize(("given", "reason"), [
    ({"input_layout": "NBSD"}, "no layout 'NBSD'"), ({"input_layout": "BSH"}, "none of layout BSH"),
    ({"input_layout": "TND"}, "none of layout TND"), ({"head_num": 3}, "3 query heads for 2 key heads"),
    ({"head_num": 8}, "8 heads of queries"), ({"padding_mask": np.zeros(1)}, "has no padding_mask"),
    ({"actual_seq_qlen": [1]}, "lengths of sequences in layout BNSD"), ({"nothing": 1}, "unexpected keyword"),
    ({"atten_mask": np.zeros((3, 5), bool), "sparse_mode": 9}, "sparse mode 9 is not implemented"),
    ({"atten_mask": np.zeros((3, 5), bool), "sparse_mode": 2}, "not that of sparse mode 2"),
    ({"atten_mask": ~COMPRESSED, "sparse_mode": 3}, "not the upper triangle"),
    ({"atten_mask": np.zeros((3, 4), bool)}, "for 3 queries and 5 keys"), ({"sparse_mode": 7}, "outside of layout TND"),
    ({"pse": np.zeros((1, 4, 2, 5))}, "position codes of shape"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(given: dict[str, Any], reason: str) -> None:
    q, k, v = three()
    with pytest.raises(NotReproducible, match=reason):
        outputs(FUSED, q, k, v, **{"head_num": 4, "input_layout": "BNSD", **given})


def test_modes_that_mindspore_has_not_are_refused() -> None:
    q, k, v = three()
    with pytest.raises(NotReproducible, match="mode 6 is not implemented"):
        outputs(FLASH, q, k, v, 4, input_layout="BNSD", attn_mask=COMPRESSED, sparse_mode=6, prefix=[1, 1])


@pytest.mark.parametrize("axes", [3, 4, 5])
def test_scaled_dot_product_attention(axes: int) -> None:
    q, k, v = (each[0] if axes == 3 else each[None] if axes == 5 else each for each in three((2, 4, 4, 3, 5, 4)))
    four = [each.reshape(-1, *each.shape[-3:]) for each in (q, k, v)]
    added, seen = normal(3, 5), normal(3, 5, seed=1) < 0.5
    for mask, given in ((added, {"after": added}), (seen, {"dropped": ~seen}), (None, {})):
        found = outputs(OWN, q, k, v, mask)[0]
        np.testing.assert_allclose(found, written_out(*four, 0.5, **given)[0].reshape(q.shape), rtol=1e-12, atol=1e-14)
        assert_gradients(OWN, q, k, v, mask)
    found = outputs(OWN, q, k, v, is_causal=True, scale=2.0)[0]
    causal = mode_mask(2, 3, 5, 0, 0, 0)
    np.testing.assert_allclose(found, written_out(*four, 2, dropped=causal)[0].reshape(q.shape), rtol=1e-12, atol=1e-14)


def test_shared_heads_and_dropout_of_scaled_dot_product_attention() -> None:
    q, k, v = three()
    np.testing.assert_allclose(
        outputs(OWN, q, k, v, enable_gqa=True)[0], written_out(q, k, v, 0.5)[0], rtol=1e-12, atol=1e-14
    )
    with pytest.raises(NotReproducible, match="queries"):
        outputs(OWN, q, k, v)
    with pytest.raises(NotReproducible, match="needs recorded mask"):
        outputs(OWN, q, k, v, dropout_p=0.1, enable_gqa=True)


def test_values_may_have_smaller_heads() -> None:
    q, k, _ = three()
    v = normal(2, 2, 5, 3)
    expected = written_out(q, k, v)[0]
    for layout in ("BNSD", "BSH"):
        given = [laid_out(each, layout) for each in (q, k, v)]
        found = outputs(FUSED, *given, 4, layout)[0]
        np.testing.assert_allclose(found, laid_out(expected, layout), rtol=1e-12, atol=1e-14)
        assert_gradients(FUSED, *given, 4, layout)


def test_only_the_result_carries_gradients_back() -> None:
    q, k, v = three()
    of_maximum = np.ones((2, 4, 3, 8))
    for found in gradients(FUSED, [np.zeros(q.shape), of_maximum], q, k, v, 4, "BNSD"):
        assert not found.any()
