"""Layouts of attention: from tensors as operators take them to heads of single sequences, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, NotReproducible
from msprobe_ms.support.translation import tr, tr_list

#: Axes of a tensor of four: the places of batch, heads, sequence and head size.
_PLACES = {"BSND": (0, 2, 1, 3), "BNSD": (0, 1, 2, 3), "SBH": (1, 2, 0, 3), "BSH": (0, 2, 1, 3)}
LAYOUTS = (*_PLACES, "TND")


@dataclass(frozen=True)
class Sequences:
    """One tensor of an attention as its sequences, each (heads, length, head size): views of it, nothing is copied.

    ``layout``  one of ``LAYOUTS``; T is all sequences of a batch one after the other, whose ends are ``ends``
    """

    layout: str
    shape: tuple[int, ...]
    heads: int
    ends: tuple[int, ...] = ()

    @staticmethod
    def of(tensor: Array, layout: str, heads: int, ends: Sequence[int] | Array | None = None) -> Sequences:
        """Describe a tensor with this number of heads.

        :raises NotReproducible: it cannot be such a tensor
        """
        if layout not in LAYOUTS:
            raise NotReproducible(
                tr("no layout {layout} is known; {layouts} are", layout=repr(layout), layouts=tr_list(LAYOUTS))
            )
        if tensor.ndim != (4 if layout in ("BSND", "BNSD") else 3):
            raise NotReproducible(tr("shape {shape} is none of layout {layout}", shape=tensor.shape, layout=layout))
        if layout in ("SBH", "BSH") and tensor.shape[2] % heads:
            raise NotReproducible(tr("shape {shape} has no {heads} heads", shape=tensor.shape, heads=heads))
        if layout != "TND":
            return Sequences(layout, tensor.shape, heads)
        if ends is None:
            raise NotReproducible(tr("layout TND without the lengths of its sequences"))
        # Zeros at the end stand for sequences that take no part.
        cumulated = tuple(np.maximum.accumulate(np.asarray(ends, np.int64)).tolist())
        if not cumulated or cumulated[-1] != len(tensor):
            raise NotReproducible(
                tr("sequences that end at {cumulated} in {count} tokens", cumulated=cumulated, count=len(tensor))
            )
        return Sequences(layout, tensor.shape, heads, cumulated)

    def split(self, tensor: Array) -> list[Array]:
        """The sequences of a tensor of this shape."""
        if self.layout == "TND":
            starts = (0, *self.ends[:-1])
            return [tensor[start:end].swapaxes(0, 1) for start, end in zip(starts, self.ends, strict=True)]
        four = tensor if tensor.ndim == 4 else tensor.reshape(*tensor.shape[:2], self.heads, -1)
        return list(four.transpose(_PLACES[self.layout]))

    def empty(self, head_size: int | None = None) -> Array:
        """Zeros of its shape, or of that with another head size; ``split`` gives views to be filled."""
        shape = list(self.shape)
        if head_size is not None:
            shape[-1] = head_size if self.layout not in ("SBH", "BSH") else head_size * self.heads
        return np.zeros(shape)


def head_size(sequences: Sequences) -> int:
    """Elements of one head."""
    last = sequences.shape[-1]
    return last // sequences.heads if sequences.layout in ("SBH", "BSH") else last


def key_heads(query: Sequences, key: Array) -> int:
    """The heads of a key, from its shape: as many as its last axis has of the query's size in BSH and SBH."""
    if query.layout in ("SBH", "BSH"):
        return key.shape[-1] // head_size(query)
    return int(key.shape[1 if query.layout in ("BNSD", "TND") else 2])
