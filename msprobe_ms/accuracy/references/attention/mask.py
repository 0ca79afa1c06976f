"""Which keys each query of an attention may not see: masks and sparse modes of the Ascend operators.

i is the row of a query, j the column of a key; S1 queries, S2 keys. True is dropped. The corner from which a mode
counts is that of the operators' documents: mode 4 and the bands of 7 and 8 from the lower right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, NotReproducible
from msprobe_ms.support.translation import tr

#: What stands for no bound; operators have 65536 and more in older defaults, which no sequence of theirs reached.
UNBOUNDED = 2147483647
#: Side of the compressed mask: 1 above the diagonal. That of mode 6 has rows for the prefix below it.
COMPRESSED = 2048


@dataclass(frozen=True)
class Mask:
    """The mask of one call.

    ``given``   (S1, S2), or (B or 1, N or 1, S1, S2), or compressed; None: every query sees every key, in any mode
    ``mode``    the sparse mode, 0 to 8
    ``before``, ``after``  how many keys before and after its own a query sees: modes 0, 4, 7, 8
    ``prefix``  of each batch, how many keys at the beginning all queries see: modes 5 and 6
    ``batches`` how many sequences there are
    """

    given: Array | None
    mode: int
    before: int
    after: int
    prefix: Sequence[int] | Array | None
    batches: int

    def __post_init__(self) -> None:
        if self.given is None:
            return
        if self.mode not in range(9):
            raise NotReproducible(tr("no sparse mode {mode} is known", mode=self.mode))
        if self.mode in (5, 6) and (self.prefix is None or len(self.prefix) != self.batches):
            raise NotReproducible(
                tr(
                    "sparse mode {mode} without a prefix for each of {batches} sequences",
                    mode=self.mode,
                    batches=self.batches,
                )
            )
        if self.given.ndim not in (2, 4):
            raise NotReproducible(tr("a mask of shape {shape}", shape=self.given.shape))
        if self._is_compressed():
            upper = np.triu(np.ones((COMPRESSED, COMPRESSED), bool), 1)
            if not np.array_equal(self.given[:COMPRESSED] != 0, upper):
                raise NotReproducible(
                    tr("a compressed mask of sparse mode {mode} that is not the upper triangle", mode=self.mode)
                )

    def _is_compressed(self) -> bool:
        rows = COMPRESSED * 3 // 2 if self.mode == 6 else COMPRESSED
        return self.mode > 1 and self.given is not None and self.given.shape == (rows, COMPRESSED)

    def rows(self, batch: int, head: int, rows: slice, sizes: tuple[int, int]) -> Array | None:
        """The dropped elements of some rows of one head, (rows, S2); None where none is.

        :raises NotReproducible: the mask given and the mode contradict each other
        """
        if self.given is None:
            return None
        i = np.arange(sizes[0])[rows, np.newaxis]
        j = np.arange(sizes[1])[np.newaxis]
        dropped = self._by_mode(batch, i, j, sizes[1] - sizes[0])
        if self._is_compressed():
            return dropped
        given = self._given(batch, head, rows, sizes)
        if self.mode in (0, 1):
            return given | dropped
        if not np.array_equal(given, dropped):
            raise NotReproducible(tr("the mask given is not that of sparse mode {mode}", mode=self.mode))
        return dropped

    def by_mode(self, batch: int, sizes: tuple[int, int]) -> Array:
        """What the mode alone drops of all rows."""
        return self._by_mode(batch, np.arange(sizes[0])[:, np.newaxis], np.arange(sizes[1]), sizes[1] - sizes[0])

    def _by_mode(self, batch: int, i: Array, j: Array, shift: int) -> Array:
        """What the mode drops of some rows; ``shift`` is S2 - S1."""
        left_up, right_down = j > i, j > i + shift
        if self.mode == 0:
            return self._outside_band(i, j)
        if self.mode == 1:
            return np.zeros_like(left_up)
        if self.mode in (5, 6):
            assert self.prefix is not None
            return right_down & (j >= int(self.prefix[batch]))
        band = self.mode == 4 or (self.mode, batch) in ((7, self.batches - 1), (8, 0))
        if band:
            return self._outside_band(i + shift, j)
        return left_up if self.mode in (2, 8) else right_down

    def _outside_band(self, i: Array, j: Array) -> Array:
        outside = np.zeros(np.broadcast_shapes(i.shape, j.shape), bool)
        if self.after < UNBOUNDED:
            outside |= j > i + self.after
        if self.before < UNBOUNDED:
            outside |= j < i - self.before
        return outside

    def _given(self, batch: int, head: int, rows: slice, sizes: tuple[int, int]) -> Array:
        assert self.given is not None
        mask = self.given
        if mask.ndim == 4:
            mask = mask[batch if len(mask) > 1 else 0, head if mask.shape[1] > 1 else 0]
        if mask.shape[0] < sizes[0] or mask.shape[1] < sizes[1]:
            raise NotReproducible(
                tr(
                    "a mask of shape {shape} for {sizes} queries and {sizes2} keys",
                    shape=self.given.shape,
                    sizes=sizes[0],
                    sizes2=sizes[1],
                )
            )
        return mask[: sizes[0], : sizes[1]][rows] != 0
