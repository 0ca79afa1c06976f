"""The rows of all nodes one after another, so that something can be asked of a million of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.row_fingerprints import keys_of, norms_of
from msprobe_ms.comparison.row_items import Mask, RowItems, items_of
from msprobe_ms.comparison.terms import Side


class RowsOfNodes:
    """The rows of ``nodes``, in their order.

    ``starts``  the place of the first row of each node, and behind them how many rows there are
    """

    def __init__(self, nodes: Sequence[Node], sides: tuple[RowItems, RowItems] | None = None) -> None:
        """``sides``: the items of the rows, where they are at hand."""
        self.nodes = nodes
        self._sizes = [len(node.pair.rows) for node in nodes]
        self.starts: npt.NDArray[np.intp] = np.cumsum([0, *self._sizes])
        self._known_sides = sides
        self._matched: dict[str, Mask] = {}

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """The place of each row's node among the nodes."""
        return np.arange(len(self._sizes)).repeat(self._sizes)

    def matched_in(self, state: str) -> Mask:
        """Return whether each row is of this state and has a counterpart."""
        if state not in self._matched:
            in_state = np.array([row.state == state for row in self._rows], np.bool_)
            self._matched[state] = in_state & self._sides[0].present & self._sides[1].present
        return self._matched[state]

    def keys(self, side: Side) -> npt.NDArray[np.uint64]:
        """Return a number for the fingerprint of each row on one side; 0 where there is none."""
        return keys_of(self._sides[side])

    def norms(self, side: Side) -> npt.NDArray[np.float64]:
        """Return the Norm of each row on one side; NaN where there is none."""
        return norms_of(self._sides[side])

    def at(self, places: npt.NDArray[np.intp]) -> Iterator[tuple[Node, Row]]:
        """Yield the rows at these places, each with its node."""
        of_nodes = np.searchsorted(self.starts, places, "right") - 1
        for place, number in zip(places.tolist(), of_nodes.tolist(), strict=True):
            yield self.nodes[number], self._rows[place]

    @cached_property
    def _rows(self) -> Sequence[Row]:
        return [row for node in self.nodes for row in node.pair.rows]

    @cached_property
    def _sides(self) -> tuple[RowItems, RowItems]:
        return self._known_sides or items_of(self._rows)
