"""Trainings that have gone apart: inputs further off than any drift, where no layer is the origin of an error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.amplification import Amplification
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.propagation import drift_after

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: Tolerances beyond which a value is far apart. Healthy nets of one weight stay below 10 however deep; after updates
#: the noise of gradients was seen to reach 40 in common nets, and thousands in nets of 50 layers.
_FAR = 100.0
#: Times that an input may be further apart than a parameter that updates set apart: what a layer may make of what it
#: takes in where something differed before.
_GAIN = 30.0


def inputs_far_apart(evidence: Evidence) -> int:
    """Count inputs of forward calls that differ by more than any drift of sound computations from equal weights.

    Where no origin is found for them, trainings have gone apart: an earlier step shows where. Inputs are none of them
    that are about as far apart as a parameter whose updates are known to have set it apart, nor after a
    call whose condition makes error grow, as a difference of what is nearly equal. Nor such as are as far apart as the
    network makes of what updates set apart, by what it made of rounding in the first step: a deep one of batch norms
    over few values makes thousands of tolerances.
    """
    forward = [node for node in evidence.nodes if not (node.is_backward or node.is_save or node.is_update)]
    far = [row for node in forward if node.ratio_in > _FAR for row in node.rows("input") if _is_far(row, _FAR, 0.0)]
    if not far:
        return 0
    most, updates = max(_FAR, drift_after(forward)), _GAIN * _apart_by_updates(forward)
    far = [row for row in far if _is_far(row, most, updates)]
    if not far or evidence.first_step is None:
        return len(far)
    drift = max(evidence.drift, _apart_within_tolerance(forward))
    amplification = Amplification(evidence, drift)
    return sum((row.deviation or 0.0) > amplification.of_updates(row) for row in far)


def _is_far(row: Row, tolerances: float, updates: float) -> bool:
    bound = max(updates, tolerances * (row.tolerance or 0.0))
    return row.differs and row.deviation is not None and not row.deviation <= bound


def _apart_within_tolerance(nodes: Iterable[Node]) -> float:
    """The largest deviation of a parameter that agrees."""
    rows = (row for node in nodes for row in node.rows("parameters") if not row.differs)
    return max((row.deviation or 0.0 for row in rows), default=0.0)


def _apart_by_updates(nodes: Iterable[Node]) -> float:
    """The largest deviation of a parameter of which an explanation says how large it may be."""
    rows = (row for node in nodes for row in node.rows("parameters") if row.explained is not None)
    return max(
        (row.deviation or 0.0 for row in rows if row.explained and math.isfinite(row.explained.up_to)), default=0
    )
