"""Parameters that differ after updates, by right: what their gradients are is rounding, and optimizers magnify it.

A parameter whose true gradient is zero (a softmax's key bias, a bias before a batch normalisation) gets one of rounding
noise, which Adam scales to steps of full size; it drifts, another way in each run, and its effect cancels further on.
It is told by its gradient, noise in this step too, or by the enclosing module, whose output agrees; where elements were
recorded, element by element (the keys' part of the bias of a fused projection). And where updates have been, every
parameter carries the noise of its gradients, some far more than others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.explanations.dropout import Load
from msprobe_ms.comparison.origin.nodes import Node, strain
from msprobe_ms.comparison.statistics import odd_word
from msprobe_ms.dump.model import Item

#: A gradient whose Norm, or both extremes, differ by more than this share, though it agrees held against its terms, is
#: noise.
_NOISE = 0.05
#: Up to this strain a parameter has drifted: 6e-4 of a float32 one, where sharp attention was seen to leave 4e-4.
_DRIFT = 10.0


def forgive_parameters(nodes: list[Node], load: Load | None = None) -> None:
    """Move the strain of parameters that differ without effect to ``Node.noise``; to be used once they were updated.

    ``load``: the tensors of a row, where elements were recorded.
    """
    gradients = dict(_gradients(nodes))
    for node in nodes:
        if node.strain_parameters > 1:
            rows = [row for row in node.rows("parameters") if strain(row) > 0]
            noise = [row for row in rows if _is_noise(node, row, gradients, load)]
            node.noise = max(map(strain, noise), default=0.0)
            for up in node.ancestors():
                up.noise_inside = max(up.noise_inside, node.noise)
            node.strain_parameters = max((strain(row) for row in rows if row not in noise), default=0.0)


def updated(nodes: list[Node]) -> bool:
    """Whether the parameters have been through updates: most are not exactly equal."""
    parameters = _parameters(nodes)
    return sum(row.deviation != 0 for row in parameters) > len(parameters) / 2


def _parameters(nodes: list[Node]) -> list[Row]:
    modules = [node for node in nodes if not node.is_backward and node.parsed is not None and node.parsed.is_module]
    return [row for node in modules for row in node.rows("parameters") if row.deviation is not None]


def _is_noise(node: Node, row: Row, gradients: dict[tuple[str, tuple[str, ...]], Row], load: Load | None) -> bool:
    amount = strain(row)
    if amount <= 1 or (row.target and row.golden and odd_word(row.target) != odd_word(row.golden)):
        return False
    if amount <= _DRIFT:
        return True
    gradient = gradients.get((node.module, row.target.path if row.target else ()))
    if gradient is not None:
        if not gradient.differs and _differs_by_itself(gradient.target, gradient.golden):
            return True
        if load is not None and _moved_by_noise(row, gradient, load):
            return True
    return node.strain_out > 1 and any(
        up.strain_out <= 1 and any(True for _ in up.rows("output")) for up in node.ancestors()
    )


def _moved_by_noise(row: Row, gradient: Row, load: Load) -> bool:
    """Whether a parameter differs in such elements alone as have gradients within the tolerance of zero.

    A gradient of exactly zero moves nothing: what differs there was different from the start.
    """
    both, given = load(row), load(gradient)
    if both is None or given is None or len({each.size for each in (*both, *given)}) > 1 or row.tolerance is None:
        return False
    if any(map(np.iscomplexobj, (*both, *given))):
        return False
    mine, theirs, *slopes = (each.ravel().astype(np.float64) for each in (*both, *given))
    error = np.linalg.norm(slopes[0] - slopes[1]) / math.sqrt(max(1, mine.size))
    if not gradient.deviation or gradient.tolerance is None or not error:
        return False
    # What the gradient was held against: its size, or that of the terms that cancel in it.
    scale = error / gradient.deviation
    size = np.maximum(*map(np.abs, slopes))
    moved = (size > 0) & (size <= gradient.tolerance * scale)
    rest = np.linalg.norm((mine - theirs)[~moved])
    return bool(rest <= _DRIFT * row.tolerance * np.linalg.norm(theirs))


def _gradients(nodes: list[Node]) -> Iterator[tuple[tuple[str, tuple[str, ...]], Row]]:
    for node in nodes:
        if node.is_parameter_gradient:
            for row in node.pair.rows:
                if row.matched and row.target is not None:
                    yield (node.module, row.target.path), row


def _differs_by_itself(target: Item | None, golden: Item | None) -> bool:
    if target is None or golden is None:
        return False
    ends = ((target.maximum, golden.maximum), (target.minimum, golden.minimum))
    return _apart(target.norm, golden.norm) > _NOISE or all(_apart(mine, theirs) > _NOISE for mine, theirs in ends)


def _apart(mine: Statistic, theirs: Statistic) -> float:
    if not isinstance(mine, (int, float)) or not isinstance(theirs, (int, float)) or mine == theirs:
        return 0.0
    return abs(mine - theirs) / max(abs(mine), abs(theirs))
