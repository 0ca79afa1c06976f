"""What is added to the scores of an attention: position codes (pse), given or made from slopes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, NotJudged, NotReproducible
from msprobe_ms.support.translation import tr

#: Kinds of position codes, as operators number them.
SCALED_THEN_ADDED, ADDED_THEN_SCALED, ALIBI, ALIBI_ROOT = range(4)
#: Rows of position codes that are given in the place of all, where more rows follow the same pattern.
COMPRESSED_ROWS = 1024


class Bias(ABC):
    """Added to the scores of each head."""

    @abstractmethod
    def rows(self, batch: int, head: int, rows: slice, sizes: tuple[int, int]) -> Array:
        """What is added to some rows of one head, broadcast to (rows, S2). ``sizes``: S1, S2."""

    def add_gradient(self, batch: int, head: int, rows: slice, gradient: Array) -> None:
        """Take in the gradient of ``rows``."""
        return None

    @property
    def gradient(self) -> Any:
        """That of the tensor it was made from."""
        return NotJudged(tr("position codes that follow a pattern have no gradient"))


class GivenBias(Bias):
    """A tensor that broadcasts to (B, N, S1, S2)."""

    def __init__(self, tensor: Array) -> None:
        self._shape = tensor.shape
        self._tensor = tensor.reshape((1,) * (4 - tensor.ndim) + tensor.shape)
        self._gradient: Array | None = None

    def rows(self, batch: int, head: int, rows: slice, sizes: tuple[int, int]) -> Array:
        if self._tensor.shape[2] not in (1, sizes[0]) or self._tensor.shape[3] not in (1, sizes[1]):
            raise NotReproducible(
                tr(
                    "position codes of shape {shape} for {sizes} queries and {sizes2} keys",
                    shape=self._shape,
                    sizes=sizes[0],
                    sizes2=sizes[1],
                )
            )
        return self._place(self._tensor, batch, head, rows)

    def add_gradient(self, batch: int, head: int, rows: slice, gradient: Array) -> None:
        if self._gradient is None:
            self._gradient = np.zeros_like(self._tensor)
        place = self._place(self._gradient, batch, head, rows)
        gradient = gradient if place.shape[0] == len(gradient) else gradient.sum(axis=0, keepdims=True)
        place += gradient if place.shape[1] == gradient.shape[1] else gradient.sum(axis=1, keepdims=True)

    @property
    def gradient(self) -> Any:
        return None if self._gradient is None else self._gradient.reshape(self._shape)

    @staticmethod
    def _place(tensor: Array, batch: int, head: int, rows: slice) -> Array:
        of_head = tensor[batch if len(tensor) > 1 else 0, head if tensor.shape[1] > 1 else 0]
        return of_head if len(of_head) == 1 else of_head[rows]


class LastRowsBias(Bias):
    """The last 1024 rows of codes that depend on j - i alone: the last row has them all, for keys not after i."""

    def __init__(self, tensor: Array) -> None:
        if not np.array_equal(tensor[..., 1:, 1:], tensor[..., :-1, :-1]):
            raise NotReproducible(
                tr("compressed position codes that do not depend on the distance of query and key alone")
            )
        self._last = tensor[..., -1, :]

    def rows(self, batch: int, head: int, rows: slice, sizes: tuple[int, int]) -> Array:
        if sizes[0] != sizes[1]:
            raise NotReproducible(tr("compressed position codes for sequences of unequal lengths"))
        last = self._last[batch if len(self._last) > 1 else 0, head if self._last.shape[1] > 1 else 0]
        i, j = np.arange(sizes[0])[rows, np.newaxis], np.arange(sizes[1])
        # Keys after i are dropped by the mask, whatever is added.
        return last[np.minimum(len(last) - 1 + j - i, len(last) - 1)]


class AlibiBias(Bias):
    """-slope |d| or -slope sqrt(|d|), d = (j + key start) - (i + query start), from one slope for each head."""

    def __init__(self, slopes: Array, root: bool, query_start: int, key_start: int) -> None:
        self._slopes = slopes.reshape(-1, slopes.shape[-1])
        self._root, self._shift = root, key_start - query_start

    def rows(self, batch: int, head: int, rows: slice, sizes: tuple[int, int]) -> Array:
        i, j = np.arange(sizes[0])[rows, np.newaxis], np.arange(sizes[1])
        distance = np.abs(j - i + self._shift).astype(np.float64)
        return -self._slopes[batch if len(self._slopes) > 1 else 0, head] * (
            np.sqrt(distance) if self._root else distance
        )
