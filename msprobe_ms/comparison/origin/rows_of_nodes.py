"""The rows of all nodes one after another, so that something can be asked of a million of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.row_fingerprints import keys_of, norms_of
from msprobe_ms.comparison.row_items import Mask, RowItems, items_of
from msprobe_ms.comparison.terms import Side

#: Nodes whose rows are looked at together: all at once would take a tenth of the memory of their comparison.
_AT_ONCE = 4096


class RowsOfNodes:
    """The rows of ``nodes``, in their order.

    ``starts``  the place of the first row of each node, and behind them how many rows there are
    """

    def __init__(self, nodes: Sequence[Node], sides: tuple[RowItems, RowItems] | None = None) -> None:
        """``sides``: the items of the rows, where they are at hand."""
        self.nodes = nodes
        self.starts = np.cumsum([0, *(len(node.pair.rows) for node in nodes)], dtype=np.int32)
        self._known_sides = sides
        self._matched: dict[str, Mask] = {}

    def at(self, places: npt.NDArray[np.intp]) -> Iterator[tuple[Node, Row]]:
        """Yield the rows at these places, each with its node."""
        for place, number in zip(places, self.nodes_of(places), strict=True):
            node = self.nodes[number]
            yield node, node.pair.rows[place - self.starts[number]]

    def nodes_of(self, places: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
        """Return the places of the nodes that these rows are of."""
        return np.searchsorted(self.starts, places, "right").astype(np.int32) - 1

    def matched_in(self, state: str) -> npt.NDArray[np.intp]:
        """Return the places of the rows of this state that have a counterpart."""
        if state not in self._matched:
            in_state = (row.state == state for node in self.nodes for row in node.pair.rows)
            target, golden = self._sides
            self._matched[state] = np.fromiter(in_state, np.bool_, self.starts[-1]) & target.present & golden.present
        return np.flatnonzero(self._matched[state])

    def keys(self, side: Side) -> Iterator[tuple[Node, Sequence[int]]]:
        """Yield each node and a number for the fingerprint of each of its rows on one side; 0 where there is none."""
        for first in range(0, len(self.nodes), _AT_ONCE):
            starts = self.starts[first : first + _AT_ONCE + 1].tolist()
            keys = keys_of(self._sides[side].of(np.arange(starts[0], starts[-1]))).tolist()
            for node, (start, stop) in zip(self.nodes[first : first + _AT_ONCE], pairwise(starts), strict=True):
                yield node, keys[start - starts[0] : stop - starts[0]]

    def norms(self, side: Side, places: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """Return the Norm of the rows at these places on one side; NaN where there is none."""
        return norms_of(self._sides[side].of(places))

    @cached_property
    def _sides(self) -> tuple[RowItems, RowItems]:
        return self._known_sides or items_of([row for node in self.nodes for row in node.pair.rows])
