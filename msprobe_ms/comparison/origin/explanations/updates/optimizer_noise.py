"""Parameters that differ after updates, by right: what their gradients are is rounding, and optimizers magnify it.

A parameter whose true gradient is zero (a softmax's key bias, a bias before a batch normalisation) gets one of rounding
noise, which Adam scales to steps of full size; it drifts, another way in each run, and its effect cancels further on.
It is told by its gradient, noise in this step too, or by the enclosing module, whose output agrees; where elements were
recorded, element by element (the keys' part of the bias of a fused projection). And where updates have been, every
parameter carries the noise of its gradients, some far more than others. Until its effect cancels, inputs inside the
module carry it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.fingerprints import fingerprints
from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.protocols import Phase, Surveyed
from msprobe_ms.comparison.origin.updates import place_of
from msprobe_ms.comparison.statistics import describe_non_finite
from msprobe_ms.dump.model import Item

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence, Load
    from msprobe_ms.comparison.origin.walk import Walk

#: A gradient whose Norm, or both extremes, differ by more than this share, though it agrees held against its terms, is
#: noise.
_NOISE = 0.05
#: Up to this error ratio a parameter has drifted: 6e-4 of a float32 one, where sharp attention was seen to leave 4e-4.
_DRIFT = 10.0


class OptimizerNoise(Surveyed):
    """Parameters that differ without effect, once they were updated."""

    name: ClassVar[str] = "optimizer noise"
    effect: ClassVar[Effect] = Effect.NO_EFFECT

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        if not evidence.updated:
            return
        gradients = dict(_gradients(evidence.nodes))
        for node in evidence.nodes:
            for row in node.rows("parameters") if node.ratio_parameters > 1 else ():
                # Where its updates tell how far they set it apart, that bounds it (`optimizer_updates`).
                if place_of(row) in evidence.apart_by_updates:
                    continue
                if _is_noise(node, row, gradients, evidence.load):
                    self.let_pass(row, node)
        # Functions take them in before the entries of their modules tell whose they are.
        harmless = {fingerprints(row) for row in self.found} - {(None, None)}
        for node in evidence.nodes if harmless else ():
            for row in node.rows("input") if node.ratio_in > 1 and not node.is_module else ():
                if error_ratio(row) > 1 and fingerprints(row) in harmless:
                    self.let_pass(row, node)


class NearbyNoise:
    """Inputs of calls in the same module as a call whose parameters are optimizer noise."""

    name: ClassVar[str] = "nearby noise"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._allowance = Allowance(self.name)

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Anything, of an input where the noise around it is beyond a tolerance."""
        if row.state != "input" or walk.reached.noise_around(node) <= 1:
            return None
        return walk.no_more_than_amplified(self._allowance, row, node)


def _is_noise(node: Node, row: Row, gradients: dict[tuple[str, tuple[str, ...]], Row], load: Load | None) -> bool:
    ratio = error_ratio(row)
    if ratio <= 1 or (row.target and row.golden and describe_non_finite(row.target) != describe_non_finite(row.golden)):
        return False
    if ratio <= _DRIFT:
        return True
    gradient = gradients.get((node.module, row.target.path if row.target else ()))
    if gradient is not None:
        if not gradient.differs and _differs_by_itself(gradient.target, gradient.golden):
            return True
        if load is not None and _moved_by_noise(row, gradient, load):
            return True
    return node.ratio_out > 1 and any(up.comes_out_right for up in node.ancestors())


def _moved_by_noise(row: Row, gradient: Row, load: Load) -> bool:
    """Whether a parameter differs in such elements alone as have gradients within the tolerance of zero.

    A gradient of exactly zero moves nothing: what differs there was different from the start.
    """
    both, given = load(row), load(gradient)
    if both is None or given is None or len({each.size for each in (*both, *given)}) > 1 or row.held_to is None:
        return False
    if any(map(np.iscomplexobj, (*both, *given))):
        return False
    mine, theirs, *slopes = (each.ravel().astype(np.float64) for each in (*both, *given))
    error = np.linalg.norm(slopes[0] - slopes[1]) / math.sqrt(max(1, mine.size))
    if not gradient.deviation or gradient.held_to is None or not error:
        return False
    # What the gradient was held against: its size, or that of the terms that cancel in it.
    scale = error / gradient.deviation
    size = np.maximum(*map(np.abs, slopes))
    moved = (size > 0) & (size <= gradient.held_to * scale)
    rest = np.linalg.norm((mine - theirs)[~moved])
    return bool(rest <= _DRIFT * row.held_to * np.linalg.norm(theirs))


def _gradients(nodes: list[Node]) -> Iterator[tuple[tuple[str, tuple[str, ...]], Row]]:
    for node in nodes:
        if node.is_parameter_gradient:
            for row in node.pair.rows:
                if row.matched and row.target is not None:
                    yield (node.module, row.target.path), row


def _differs_by_itself(target: Item | None, golden: Item | None) -> bool:
    if target is None or golden is None:
        return False
    if _relative_difference(target.norm, golden.norm) > _NOISE:
        return True
    ends = ((target.maximum, golden.maximum), (target.minimum, golden.minimum))
    return all(_relative_difference(mine, theirs) > _NOISE for mine, theirs in ends)


def _relative_difference(mine: Statistic, theirs: Statistic) -> float:
    if not isinstance(mine, (int, float)) or not isinstance(theirs, (int, float)) or mine == theirs:
        return 0.0
    return abs(mine - theirs) / max(abs(mine), abs(theirs))
