"""Records that are wrong where the computation is right: every later use of the very tensor agrees.

Tools that record the gradient of ``cross_entropy`` with respect to its inner log-softmax leave such records. So does a
container that stands beside one whose borders are others: what that one gives out is used later in agreement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.rows_of_nodes import RowsOfNodes


#: Inputs that are looked at together: all at once would take a twentieth of the memory of their comparison.
_AT_ONCE = 16_384


class LaterUses(Surveyed):
    """Outputs that differ and that later nodes took in, each time in agreement: same size, same four statistics.

    What encloses a call took in before what it stands behind: it uses nothing that the call gives out.
    """

    name: ClassVar[str] = "later uses agree"
    side: ClassVar[Side] = TARGET

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        side, rows = self.side, evidence.rows
        doubted = np.fromiter(_doubted(rows, side), np.intp)
        # By whom each was taken in, and where last in disagreement.
        uses: dict[Fingerprint, list[Node]] = defaultdict(list)
        last_differing: dict[Fingerprint, int] = {}
        for node, row in rows.at(_taken_in(rows, doubted, side)) if len(doubted) else ():
            if key := fingerprint(row, side):
                uses[key].append(node)
                if error_ratio(row) > 1:
                    last_differing[key] = node.order
        for node, row in rows.at(doubted) if uses else ():
            key = fingerprint(row, side)
            if key is None or node.order < last_differing.get(key, -1):
                continue
            if _is_used_after(node, uses.get(key, ())):
                self.let_pass(row, node)


class LaterUsesOfGolden(LaterUses):
    """Outputs of containers of which later nodes took in what the golden gives out, each time in agreement."""

    side: ClassVar[Side] = GOLDEN


def _is_used_after(node: Node, uses: Sequence[Node]) -> bool:
    """Whether one of ``uses``, in the order of execution, begins after ``node``."""
    above = set(node.ancestors())
    last = next((use for use in reversed(uses) if use not in above), None)
    return last is not None and last.order > node.order


def _doubted(rows: RowsOfNodes, side: Side) -> Iterator[int]:
    """The places of the outputs that differ.

    Of the golden those that containers have made: what they only pass on may be used later beside what they do.
    """
    for node, start in zip(rows.nodes, rows.starts.tolist(), strict=False):
        if node.ratio_out > 1 and (side is TARGET or any(child.is_module for child in node.children)):
            taken = {fingerprint(row, side) for row in node.rows("input")} if side is GOLDEN else set()
            for place, row in enumerate(node.pair.rows, start):
                differs = row.state == "output" and error_ratio(row) > 1
                if differs and (side is TARGET or fingerprint(row, side) not in taken):
                    yield place


def _taken_in(rows: RowsOfNodes, doubted: npt.NDArray[np.intp], side: Side) -> npt.NDArray[np.intp]:
    """The places of the inputs behind the first of the doubted that have the norm of one of them."""
    inputs, known = rows.matched_in("input"), np.unique(rows.norms(side, doubted))
    inputs, found = inputs[np.searchsorted(inputs, doubted[0]) :], [inputs[:0]]
    for start in range(0, len(inputs), _AT_ONCE):
        some = inputs[start : start + _AT_ONCE]
        norms = rows.norms(side, some)
        found.append(some[known.take(np.searchsorted(known, norms), mode="clip") == norms])
    return np.concatenate(found)
