"""Gating and routing of mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, Computed, Gradient, NotReproducible
from msprobe_ms.accuracy.references.softmax import softmax
from msprobe_ms.support.translation import tr


def gating_top_k_softmax(x: Array, finished: Array | None = None, k: int = 1) -> Computed:
    """p = softmax(x); outputs the k largest of p, where they are (the first of equal ones wins), and the rows.

    Rows that are finished have the number of experts in place of each index. Row indices: 0 … rows * k - 1 as
    (k, rows), transposed. dx = p (d - sum(d p)), d being g put where it came from.
    """
    experts = x.shape[-1]
    if not 0 < k <= experts:
        raise NotReproducible(tr("the {k} largest of {experts}", k=k, experts=experts))
    p = softmax(x)
    index = np.argsort(-p, axis=-1, kind="stable")[..., :k]
    shown = index if finished is None else np.where(finished[..., np.newaxis] != 0, experts, index)
    rows = p[..., 0].size
    row_index = np.arange(rows * k).reshape(k, rows).T.reshape(index.shape)

    def backward(g: Array, *_: Array) -> Mapping[str, Gradient]:
        d = np.zeros_like(p)
        np.put_along_axis(d, index, g, -1)
        return {"x": p * (d - np.sum(d * p, axis=-1, keepdims=True))}

    outputs = np.take_along_axis(p, index, -1), shown.astype(np.int32), row_index.astype(np.int32)
    return Computed(outputs, backward)


def token_permute(
    tokens: Array, indices: Array, num_out_tokens: int | None = None, padded_mode: bool = False
) -> Computed:
    """Tokens brought together by expert, those of one expert in their order, and where each went.

    order = stable sort of the flat indices; permuted = tokens[order // top_k], the first ``num_out_tokens`` of them
    (None and 0: all); sorted_indices[order] = 0, 1, 2, …. dtokens[order // top_k] += g. tokens: (tokens, hidden);
    indices: (tokens,) or (tokens, top_k).
    """
    if padded_mode:
        raise NotReproducible(tr("padded mode is not defined"))
    top_k = 1 if indices.ndim == 1 else indices.shape[1]
    order = np.argsort(indices.reshape(-1), kind="stable")
    source = order[: num_out_tokens or None] // top_k

    def backward(g: Array, _: Array | None = None) -> Mapping[str, Gradient]:
        gradient = np.zeros_like(tokens)
        np.add.at(gradient, source, g)
        return {"tokens": gradient}

    return Computed((tokens[source], np.argsort(order).astype(np.int32)), backward)


def token_unpermute(
    permuted: Array,
    sorted_indices: Array,
    probs: Array | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> Computed:
    """The inverse of ``token_permute``: y = sum over top_k of probs * permuted[sorted_indices].

    Tokens that were dropped (their index is beyond permuted) count as 0. dpermuted[sorted_indices] = g probs,
    dprobs = sum over hidden of g permuted[sorted_indices]. probs: (tokens, top_k), 1 where not given.
    """
    if padded_mode:
        raise NotReproducible(tr("padded mode is not defined"))
    if len(np.unique(sorted_indices)) != sorted_indices.size:
        raise NotReproducible(tr("sorted_indices has an index twice, which leaves the result open"))
    top_k = 1 if probs is None else probs.shape[1]
    kept = sorted_indices < len(permuted)
    tokens = np.zeros((sorted_indices.size, permuted.shape[1]))
    tokens[kept] = permuted[sorted_indices[kept]]
    tokens = tokens.reshape(-1, top_k, permuted.shape[1])
    shares = np.ones(tokens.shape[:2]) if probs is None else probs

    def backward(g: Array) -> Mapping[str, Gradient]:
        of_tokens = (g[:, np.newaxis] * shares[..., np.newaxis]).reshape(-1, permuted.shape[1])
        gradient = np.zeros_like(permuted)
        gradient[sorted_indices[kept]] = of_tokens[kept]
        return {"permuted": gradient, "probs": np.sum(g[:, np.newaxis] * tokens, axis=-1)}

    return Computed((np.sum(tokens * shares[..., np.newaxis], axis=1),), backward)
