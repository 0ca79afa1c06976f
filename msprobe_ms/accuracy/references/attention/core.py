"""Attention over single sequences, some rows at a time, so that scores never take more than some blocks of memory.

Of one head: P = scale (Q K^T) with the bias added before or after the scale, -inf where dropped; S = softmax(P);
D = S where dropout keeps, divided by keep_prob, else 0; out = D V. A row all of whose keys are dropped gives 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from msprobe_ms.accuracy.references.attention.bias import Bias
from msprobe_ms.accuracy.references.attention.mask import Mask
from msprobe_ms.accuracy.references.reference import Array, NotReproducible
from msprobe_ms.support.translation import tr

#: Scores that are held at a time; a few arrays of as many float64 are.
_BLOCK = 1 << 21


@dataclass(frozen=True)
class DropMask:
    """The recorded mask of dropout: a bit for each score, the lowest of a byte first; 1 is kept.

    Sequence after sequence and head after head, as in (B, N, S1, S2 / 8), without gaps.
    """

    bits: Array
    keep_prob: float
    starts: tuple[int, ...]

    @staticmethod
    def of(tensor: Array, keep_prob: float, heads: int, sizes: Sequence[tuple[int, int]]) -> DropMask:
        """Check that the mask has a bit for each score.

        :raises NotReproducible: it does not
        """
        lengths = [heads * queries * keys for queries, keys in sizes]
        if tensor.dtype != np.uint8 or tensor.size * 8 < sum(lengths):
            raise NotReproducible(
                tr(
                    "a drop mask of {size} {dtype} for {lengths} scores",
                    size=tensor.size,
                    dtype=tensor.dtype,
                    lengths=sum(lengths),
                )
            )
        return DropMask(tensor.reshape(-1), keep_prob, (0, *np.cumsum(lengths)[:-1].tolist()))

    def factors(self, batch: int, head: int, rows: slice, sizes: tuple[int, int]) -> Array:
        """1 / keep_prob or 0 for each score of some rows."""
        count = rows.stop - rows.start
        first = self.starts[batch] + (head * sizes[0] + rows.start) * sizes[1]
        last = first + count * sizes[1]
        bits = np.unpackbits(self.bits[first // 8 : -(-last // 8)], bitorder="little")
        return bits[first % 8 :][: last - first].reshape(count, sizes[1]) / self.keep_prob


@dataclass(frozen=True)
class Scores:
    """How scores are made of products of queries and keys."""

    scale: float
    mask: Mask
    bias: Bias | None = None
    bias_is_scaled: bool = False
    drop: DropMask | None = None


class _Block(NamedTuple):
    rows: slice
    share: Array
    kept: Array | None
    largest: Array
    total: Array


class Heads(NamedTuple):
    """One sequence: (N1, S1, D), (N2, S2, D), (N2, S2, Dv)."""

    query: Array
    key: Array
    value: Array

    def key_head(self, head: int) -> int:
        """The key head of a query head: as many query heads after each other share one."""
        return head // (len(self.query) // len(self.key))


def attend(heads: Heads, batch: int, scores: Scores, out: Array, statistics: Array) -> bool:
    """Write the result of one sequence into ``out`` (N1, S1, Dv), maximum and sum of each row into ``statistics``
    (2, N1, S1); return whether some row has no key.
    """
    empty = False
    for head in range(len(heads.query)):
        value = heads.value[heads.key_head(head)]
        for block in _blocks(heads, batch, head, scores):
            share = block.share if block.kept is None else block.share * block.kept
            out[head, block.rows] = share @ value
            statistics[0, head, block.rows], statistics[1, head, block.rows] = block.largest, block.total
            empty = empty or bool(np.any(block.total == 0))
    return empty


def attend_backward(heads: Heads, batch: int, scores: Scores, g: Array, gradients: Heads) -> None:
    """Add the gradients of one sequence, g (N1, S1, Dv) being that of its result, to ``gradients``.

    dD = g V^T; dS = dD where kept, divided by keep_prob; dP = S (dS - sum(dS S)); dQ = scale dP K; dK = scale dP^T Q;
    dV = D^T g; the bias gets dP, or scale dP if it is scaled. Query heads that share a key head add up.
    """
    for head in range(len(heads.query)):
        place = heads.key_head(head)
        for rows, share, kept, _, _ in _blocks(heads, batch, head, scores):
            gradient = g[head, rows]
            of_share = gradient @ heads.value[place].T
            gradients.value[place] += (share if kept is None else share * kept).T @ gradient
            if kept is not None:
                of_share = of_share * kept
            of_scores = share * (of_share - np.sum(of_share * share, axis=-1, keepdims=True))
            if scores.bias is not None:
                scores.bias.add_gradient(
                    batch, head, rows, of_scores * scores.scale if scores.bias_is_scaled else of_scores
                )
            gradients.query[head, rows] = scores.scale * (of_scores @ heads.key[place])
            gradients.key[place] += scores.scale * (of_scores.T @ heads.query[head, rows])


def _blocks(heads: Heads, batch: int, head: int, scores: Scores) -> Iterator[_Block]:
    """The softmax of one head, as many rows at a time as a block has scores."""
    query, key = heads.query[head], heads.key[heads.key_head(head)]
    sizes = (len(query), len(key))
    step = max(1, _BLOCK // max(1, sizes[1]))
    for start in range(0, sizes[0], step):
        rows = slice(start, min(start + step, sizes[0]))
        score = query[rows] @ key.T
        if scores.bias is None:
            score *= scores.scale
        elif scores.bias_is_scaled:
            score = scores.scale * (score + scores.bias.rows(batch, head, rows, sizes))
        else:
            score = scores.scale * score + scores.bias.rows(batch, head, rows, sizes)
        dropped = scores.mask.rows(batch, head, rows, sizes)
        if dropped is not None:
            score = np.where(dropped, -np.inf, score)
        no_key = np.full(len(score), sizes[1] == 0) if dropped is None else dropped.all(axis=-1)
        largest = np.max(score, axis=-1, initial=-np.inf)
        score = np.exp(score - np.where(no_key, 0.0, largest)[:, np.newaxis])
        total = score.sum(axis=-1)
        share = score / np.where(no_key, 1.0, total)[:, np.newaxis]
        kept = None if scores.drop is None else scores.drop.factors(batch, head, rows, sizes)
        yield _Block(rows, share, kept, largest, total)
