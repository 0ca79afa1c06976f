"""Attention as the fused operators of Ascend and PyTorch's own have it; the formulae are in ``core``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msprobe_ms.accuracy.references.attention import bias as attention_bias
from msprobe_ms.accuracy.references.attention.bias import AlibiBias, Bias, GivenBias, LastRowsBias
from msprobe_ms.accuracy.references.attention.core import DropMask, Heads, Scores, attend, attend_backward
from msprobe_ms.accuracy.references.attention.layout import Sequences, head_size, key_heads
from msprobe_ms.accuracy.references.attention.mask import Mask
from msprobe_ms.accuracy.references.reference import Array, Computed, Gradient, NotJudged, NotReproducible
from msprobe_ms.support.translation import tr

NEEDS_RECORDED_MASK = tr("needs recorded mask")
#: What is to be said of outputs beside the result.
_RESERVED = NotJudged(tr("reserved for the operator"))
_NO_KEY = NotJudged(tr("operators differ in what rows without a key give"))
_OWN_ORDER = NotJudged(tr("its order in memory is the operator's own"))
#: Copies of each maximum and sum that operators give.
_COPIES = 8


def flash_attention(
    query: Array,
    key: Array,
    value: Array,
    head_num: int,
    layout: str = "BSH",
    *,
    pse: Array | None = None,
    drop_mask: Array | None = None,
    mask: Array | None = None,
    prefix: Sequence[int] | Array | None = None,
    query_ends: Sequence[int] | Array | None = None,
    key_ends: Sequence[int] | Array | None = None,
    keep_prob: float = 1.0,
    scale: float = 1.0,
    before: int = 2147483647,
    after: int = 2147483647,
    sparse_mode: int = 0,
    pse_type: int = attention_bias.ADDED_THEN_SCALED,
    query_start: Sequence[int] | None = None,
    key_start: Sequence[int] | None = None,
    softmax_layout: str = "",
    modes: int = 9,
    result_alone: bool = False,
) -> Computed:
    """Attention of Ascend's training operators.

    Outputs attention_out, softmax_max and softmax_sum (eight copies of each), then what is reserved and not judged: the
    softmax, the seed, the offset and the length of the drop mask; or the first alone. ``modes``: how many sparse modes
    the operator has. Dropout is applied as the mask given says, and cannot be without one.
    """
    if mask is not None and sparse_mode >= modes:
        raise NotReproducible(
            tr("sparse mode {sparse_mode} is not implemented by the operator", sparse_mode=sparse_mode)
        )
    if sparse_mode in (7, 8) and layout != "TND":
        raise NotReproducible(tr("sparse mode {sparse_mode} outside of layout TND", sparse_mode=sparse_mode))
    if layout != "TND" and (query_ends is not None or key_ends is not None):
        raise NotReproducible(tr("lengths of sequences in layout {layout}", layout=layout))
    if keep_prob < 1 and drop_mask is None:
        raise NotReproducible(NEEDS_RECORDED_MASK)
    tensors = _Tensors.of((query, key, value), head_num, layout, query_ends, key_ends)
    scores = Scores(
        scale,
        Mask(mask, sparse_mode, before, after, prefix, len(tensors.sizes)),
        _bias(pse, pse_type, tensors, mask, sparse_mode, after, _first(query_start), _first(key_start)),
        pse_type == attention_bias.ADDED_THEN_SCALED,
        None
        if keep_prob >= 1 or drop_mask is None
        else DropMask.of(drop_mask, keep_prob, tensors.layouts[0].heads, tensors.sizes),
    )
    out, statistics, empty = tensors.attend(scores)

    def backward(g: Array, *_: Any) -> Mapping[str, Gradient]:
        gradients = tensors.gradients(scores, g)
        return {**gradients, "pse": None if scores.bias is None else scores.bias.gradient}

    if result_alone:
        return Computed((out,), backward)
    return Computed((out, *_shown(statistics, layout, softmax_layout, empty), *[_RESERVED] * 4), backward)


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Computed:
    """PyTorch's own: softmax(scale Q K^T + mask) V, (…, S, D) with any leading axes, or none.

    A mask of bools says which keys are seen, one of floats is added after the scale. ``is_causal``: no key after i.
    ``scale`` None: 1 / sqrt(D). Key heads are shared by query heads with ``enable_gqa``.
    """
    if dropout_p > 0:
        raise NotReproducible(NEEDS_RECORDED_MASK)
    if query.ndim < 2 or (query.shape[:-2] != key.shape[:-2] and not enable_gqa) or key.shape[:-2] != value.shape[:-2]:
        raise NotReproducible(
            tr(
                "queries {shape}, keys {shape2} and values {shape3}",
                shape=query.shape,
                shape2=key.shape,
                shape3=value.shape,
            )
        )

    def four(tensor: Array) -> Array:
        return tensor.reshape(-1, *(1, *tensor.shape)[-3:])

    tensors = _Tensors.of((four(query), four(key), four(value)), (1, *query.shape)[-3], "BNSD")
    seen_by_all = (*query.shape[:-2], query.shape[-2], key.shape[-2])
    sizes = seen_by_all[-2:]
    given, bias = np.triu(np.ones(sizes, bool), 1) if is_causal else None, None
    if attn_mask is not None and attn_mask.dtype.kind == "b":
        given = four(np.broadcast_to(~attn_mask, seen_by_all))
    elif attn_mask is not None:
        bias = _bias_of_any_shape(attn_mask, query.ndim)
    mask = Mask(given, 1, 0, 0, None, len(tensors.sizes))
    scores = Scores(1 / np.sqrt(query.shape[-1]) if scale is None else scale, mask, bias)
    out, _, _ = tensors.attend(scores)

    def backward(g: Array) -> Mapping[str, Gradient]:
        found = tensors.gradients(scores, four(g))
        shapes = {"query": query.shape, "key": key.shape, "value": value.shape}
        return {
            **{name: found[name].reshape(shape) for name, shape in shapes.items()},
            "attn_mask": None if bias is None else bias.gradient,
        }

    return Computed((out.reshape(*query.shape[:-1], value.shape[-1]),), backward)


def _bias_of_any_shape(attn_mask: Array, axes: int) -> GivenBias:
    if axes > 4 and attn_mask.ndim > 2:
        raise NotReproducible(tr("a mask of shape {shape} for {axes} axes", shape=attn_mask.shape, axes=axes))
    return GivenBias(attn_mask)


@dataclass(frozen=True)
class _Tensors:
    """Query, key and value of one call: how they are laid out, and their sequences."""

    layouts: tuple[Sequences, Sequences, Sequences]
    sequences: tuple[Heads, ...]

    @staticmethod
    def of(
        tensors: tuple[Array, Array, Array],
        head_num: int,
        layout: str,
        query_ends: Sequence[int] | Array | None = None,
        key_ends: Sequence[int] | Array | None = None,
    ) -> _Tensors:
        """Check that query, key and value fit each other.

        :raises NotReproducible: they do not
        """
        query, key, value = tensors
        of_query = Sequences.of(query, layout, head_num, query_ends)
        shared = key_heads(of_query, key)
        if shared < 1 or head_num % shared:
            raise NotReproducible(tr("{head_num} query heads for {shared} key heads", head_num=head_num, shared=shared))
        layouts = (
            of_query,
            Sequences.of(key, layout, shared, key_ends),
            Sequences.of(value, layout, shared, key_ends),
        )
        queries, keys, values = (each.split(tensor) for each, tensor in zip(layouts, tensors, strict=True))
        if not len(queries) == len(keys) == len(values):
            raise NotReproducible(tr("queries and keys of unequal numbers of sequences"))
        sequences = tuple(map(Heads, queries, keys, values))
        for one in sequences:
            if len(one.query) != head_num or one.query.shape[2] != one.key.shape[2]:
                raise NotReproducible(
                    tr(
                        "{head_num} heads of queries {shape} and keys {shape2}",
                        head_num=head_num,
                        shape=query.shape,
                        shape2=key.shape,
                    )
                )
            if one.key.shape[:2] != one.value.shape[:2]:
                raise NotReproducible(tr("keys {shape} and values {shape2}", shape=key.shape, shape2=value.shape))
        return _Tensors(layouts, sequences)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """S1 and S2 of each sequence."""
        return [(one.query.shape[1], one.key.shape[1]) for one in self.sequences]

    def attend(self, scores: Scores) -> tuple[Array, list[Array], bool]:
        """The result in the query's layout, maximum and sum of each sequence, and whether a row has no key."""
        query, _, value = self.layouts
        out = query.empty(head_size(value))
        statistics = [np.zeros((2, *one.query.shape[:2])) for one in self.sequences]
        empty = [
            attend(one, batch, scores, place, statistics[batch])
            for batch, (one, place) in enumerate(zip(self.sequences, query.split(out), strict=True))
        ]
        return out, statistics, any(empty)

    def gradients(self, scores: Scores, g: Array) -> dict[str, Any]:
        """Those of query, key and value, each in its layout."""
        query, key, value = (each.empty() for each in self.layouts)
        places = map(
            Heads, *(each.split(tensor) for each, tensor in zip(self.layouts, (query, key, value), strict=True))
        )
        for batch, (one, of_out) in enumerate(zip(self.sequences, self.layouts[0].split(g), strict=True)):
            attend_backward(one, batch, scores, of_out, next(places))
        return {"query": query, "key": key, "value": value}


def _bias(
    pse: Array | None,
    pse_type: int,
    tensors: _Tensors,
    mask: Array | None,
    sparse_mode: int,
    after: int,
    query_start: int,
    key_start: int,
) -> Bias | None:
    """The position codes: given, of the last rows alone, or made from slopes."""
    if pse is None:
        return None
    if pse_type in (attention_bias.ALIBI, attention_bias.ALIBI_ROOT):
        return AlibiBias(pse, pse_type == attention_bias.ALIBI_ROOT, query_start, key_start)
    if pse_type not in (attention_bias.SCALED_THEN_ADDED, attention_bias.ADDED_THEN_SCALED):
        raise NotReproducible(tr("no kind {pse_type} of position codes is known", pse_type=pse_type))
    if pse.ndim != 4:
        raise NotReproducible(tr("position codes of shape {shape}", shape=pse.shape))
    longest = max(queries for queries, _ in tensors.sizes)
    if pse.shape[2] == attention_bias.COMPRESSED_ROWS and longest > pse.shape[2]:
        if mask is None or not (sparse_mode in (2, 3) or (sparse_mode == 0 and after <= 0)):
            raise NotReproducible(tr("compressed position codes without a mask of all keys after the query"))
        return LastRowsBias(pse)
    return GivenBias(pse)


def _first(start: Sequence[int] | None) -> int:
    return 0 if start is None or not len(start) else int(start[0])


def _shown(statistics: Sequence[Array], layout: str, softmax_layout: str, empty: bool) -> list[Array | NotJudged]:
    """softmax_max and softmax_sum as the operator gives them."""
    if empty:
        return [_NO_KEY] * 2
    if layout != "TND":
        each = np.stack(statistics, axis=1)
    elif softmax_layout == "TND":
        each = np.concatenate(statistics, axis=2).swapaxes(1, 2)
    else:
        return [_OWN_ORDER] * 2
    return list(np.repeat(each[..., np.newaxis], _COPIES, axis=-1))
