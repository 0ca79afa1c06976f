"""Error of which no single node makes too much: where it crosses the tolerance, and where it grows most."""

from __future__ import annotations

import math
from typing import NamedTuple

from msprobe_ms.comparison.model import Origin, Pair, Row
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, nodes_of, strain, worst
from msprobe_ms.comparison.origin.propagation import GAIN_IN_DOUBT
from msprobe_ms.comparison.origin.reasons import figures, origin_at

#: Where nothing jumps, error that grew by degrees is told from this strain on; below it the net is only deep.
DRIFTED = 10.0


class Growth(NamedTuple):
    """A value in forward, its strain, and the largest strain of what it is computed from, 1 at least."""

    row: Row
    before: float
    after: float

    @property
    def factor(self) -> float:
        return self.after / self.before

    def __str__(self) -> str:
        name = self.row.target.name if self.row.target is not None else ""
        after = f"{self.after:.3g} times its tolerance" if math.isfinite(self.after) else "beyond measure"
        return f"{name}, from {self.before:.3g} to {after}"


def drift(nodes: list[Node], *, switched: bool, trained: bool) -> list[Origin]:
    """Nothing jumps, yet something is far out of bounds: the first value that is out of bounds at all.

    ``switched``: switches at kinks explain what gradients differ by, but nothing of forward.
    ``trained``: updates of the parameters make rounding grow as far; ``completeness.far_apart`` tells what is beyond.
    """
    if trained:
        return []
    judged = [node for node in nodes if not (switched and node.is_backward)]
    if all(strain(row) <= DRIFTED for node in judged for row in node.pair.rows):
        return []
    first = next((row for node in judged if (row := worst(node.pair.rows)) is not None and strain(row) > 1), None)
    if first is None:
        return []
    if (growth := steepest(judged)) is None or growth.row is first:
        return [origin_at(first, f"error grows by degrees and crosses the tolerance here: {figures(first)}", "drift")]
    if growth.factor > GAIN_IN_DOUBT:  # what is no drift, however much drifted before
        reason = f"{figures(growth.row)}: of the error that grows before and after, most comes in here: {growth}"
        return [origin_at(growth.row, reason, "drift")]
    reason = f"error grows by degrees and crosses the tolerance here: {figures(first)}; it grows most at {growth}"
    return [origin_at(first, reason, "drift")]


def steepest(nodes: list[Node]) -> Growth | None:
    """The value in forward whose strain is the largest multiple of what came before; None where none is beyond 1."""
    found: Growth | None = None
    seen = 1.0
    for node in nodes:
        if node.is_backward or node.is_save:
            continue
        arrived, given = worst(node.rows("input")), worst(node.rows(*RESULTS))
        for row, before in ((arrived, seen), (given, max(1.0, node.strain_taken))):
            after = strain(row) if row is not None else 0.0
            if row is not None and after > before and (found is None or after / before > found.factor):
                found = Growth(row, before, after)
        seen = max(seen, node.strain_in, node.strain_parameters, node.strain_out, node.noise)
    return found


def steepest_of(pairs: list[Pair]) -> Growth | None:
    """``steepest`` of measured pairs."""
    return steepest(nodes_of(pairs))
