"""The rows of all nodes one after another, so that something can be asked of a million of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.row_fingerprints import keys_of, norms_of
from msprobe_ms.comparison.row_items import RowItems, items_of
from msprobe_ms.comparison.terms import Side

#: Nodes whose rows are looked at together: all at once would take a tenth of the memory of their comparison.
_AT_ONCE = 4096
#: The codes of the states that are asked for.
_STATES = {"input": 1, "output": 2}


class RowsOfNodes:
    """The rows of ``nodes``, in their order.

    ``starts``  the place of the first row of each node, and behind them how many rows there are
    """

    def __init__(self, nodes: Sequence[Node], sides: tuple[RowItems, RowItems] | None = None) -> None:
        """``sides``: the items of the rows, where they are at hand."""
        self.nodes = nodes
        self.starts = np.cumsum([0, *(len(node.pair.rows) for node in nodes)], dtype=np.int32)
        self._known_sides = sides

    def at(self, places: npt.NDArray[np.intp]) -> Iterator[tuple[Node, Row]]:
        """Yield the rows at these places, each with its node."""
        for place, number in zip(places, self.nodes_of(places), strict=True):
            node = self.nodes[number]
            yield node, node.pair.rows[place - self.starts[number]]

    def nodes_of(self, places: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
        """Return the places of the nodes that these rows are of."""
        return np.searchsorted(self.starts, places, "right").astype(np.int32) - 1

    def matched_in(self, state: str) -> npt.NDArray[np.intp]:
        """Return the places of the rows that have a counterpart and are of this state: ``input`` or ``output``."""
        return np.flatnonzero(self._states == _STATES[state])

    @cached_property
    def _states(self) -> npt.NDArray[np.uint8]:
        """The codes of the rows' states; 0 of all others, and where there is no counterpart."""
        found = (_STATES.get(row.state, 0) for node in self.nodes for row in node.pair.rows)
        target, golden = self._sides
        return np.fromiter(found, np.uint8, self.starts[-1]) * (target.present & golden.present)

    def keys(self, side: Side) -> Iterator[tuple[Node, Sequence[int], int]]:
        """Yield each node, numbers for the fingerprints of many rows on one side, and where those of its rows begin.

        A number is 0 where there is no fingerprint.
        """
        for first in range(0, len(self.nodes), _AT_ONCE):
            starts = self.starts[first : first + _AT_ONCE + 1]
            keys = keys_of(self._sides[side].of(np.arange(starts[0], starts[-1]))).tolist()
            yield from zip(
                self.nodes[first : first + _AT_ONCE], repeat(keys), (starts - starts[0]).tolist(), strict=False
            )

    def norms(self, side: Side, places: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """Return the Norm of the rows at these places on one side; NaN where there is none."""
        return norms_of(self._sides[side].of(places))

    @cached_property
    def _sides(self) -> tuple[RowItems, RowItems]:
        return self._known_sides or items_of([row for node in self.nodes for row in node.pair.rows])
