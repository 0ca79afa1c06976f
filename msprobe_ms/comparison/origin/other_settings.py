"""Calls that were given other settings than their counterparts: what they may be off by.

Such a call computes something else, by however little. So error that comes in explains of its results no more than the
condition of the layer makes of it, and no switch of a derivative explains its gradient beyond the gradient that
arrives. Where the results agree, the setting has no effect that could be told, and nothing follows from it.
Nor does anything where inputs are so far apart that the two may be no counterparts, or where the same settings gave
results that agreed in the first recorded step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.propagation import set_apart_by_inputs
from msprobe_ms.comparison.pairing.arguments import OtherSetting, other_settings
from msprobe_ms.comparison.terms import GOLDEN, PairedBy
from msprobe_ms.dump.model import Dump, Entry

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: Deviations of inputs from which on two calls may be no counterparts: five times that of a layer in bfloat16.
_FAR = 0.05
#: Part by which two numbers differ that code writes with six digits or with all, as 0.797885 for the root of 2 / pi: by
#: so much rounding makes results differ at least.
_DIGITS = 1e-6
_RANDOM = (Kind.RANDOM, Kind.COLLECTIVE)


class OtherSettings:
    """The settings in which calls differ from their counterparts, and the bound on what follows from their inputs."""

    def __init__(self, evidence: Evidence) -> None:
        self._frameworks, self._first = evidence.frameworks, evidence.first_step
        #: Of most calls none differ, and of these nothing is kept: there may be a million.
        self._found: dict[Node, Sequence[OtherSetting]] = {}

    def of(self, node: Node) -> Sequence[OtherSetting]:
        """Return the settings that differ of a function, or of the function whose gradient this is."""
        if node in self._found:
            return self._found[node]
        if found := self._find(node):
            self._found[node] = found
        return found

    def _find(self, node: Node) -> list[OtherSetting]:
        if node.is_module:
            return []
        if node.is_backward:
            found = [each for forward in node.context for each in self.of(forward)]
        else:
            found = self._of_call(node)
        return [] if found and node.kind in _RANDOM else found

    def _of_call(self, node: Node) -> list[OtherSetting]:
        target, golden = node.pair.target, node.pair.golden
        if target is None or golden is None:
            return []
        return self._other(target, golden, node)

    def limit(self, row: Row, node: Node, *, agreed_at_first: bool) -> float | None:
        """Return the deviation of a result that error in what its call takes in may explain; None: any.

        ``agreed_at_first``: whether this result is known to have agreed in the first recorded step.
        """
        if row.state != "output" or not (found := self.of(node)):
            return None
        if agreed_at_first and self._in_first_step(node) == [*found]:
            return None
        taken = _taken(node)
        if not taken <= _FAR:
            return None
        return set_apart_by_inputs(row, node, taken)

    def _in_first_step(self, node: Node) -> list[OtherSetting]:
        """The settings that differed in the first step."""
        if self._first is None:
            return []
        nodes = node.context if node.is_backward else (node,)
        return [each for forward in nodes for each in self._of_step(forward, self._first)]

    def _of_step(self, node: Node, step: tuple[Dump, Dump]) -> list[OtherSetting]:
        target, golden = node.pair.target, node.pair.golden
        ours = step[0].entries.get(target.name) if target is not None else None
        theirs = step[1].entries.get(golden.name) if golden is not None else None
        return self._other(ours, theirs, node) if ours is not None and theirs is not None else []

    def _other(self, target: Entry, golden: Entry, node: Node) -> list[OtherSetting]:
        found = other_settings(target, golden, self._frameworks, several=node.pair.how == PairedBy.GROUP)
        return [each for each in found if not _is_written_shorter(each)]


def _is_written_shorter(setting: OtherSetting) -> bool:
    """Whether the numbers of both sides are the same to six digits."""
    ours, theirs = ([each for each in side if isinstance(each, float)] for side in (setting.target, setting.golden))
    if not len(ours) == len(theirs) == len(setting.target) == len(setting.golden):
        return False
    return all(math.isclose(mine, other, rel_tol=_DIGITS) for mine, other in zip(ours, theirs, strict=True))


def _taken(node: Node) -> float:
    """The largest deviation of what the results are computed from; 0 where nothing was compared."""
    rows = [*node.rows("input", "parameters"), *(row for each in node.context for row in each.rows("input"))]
    tensors = (row for row in rows if row.is_tensor(GOLDEN) and not row.misrecorded)
    found = [row.deviation for row in tensors if row.deviation is not None]
    return max((each if math.isfinite(each) else math.inf for each in found), default=0.0)
