"""How far a gradient may be off because a derivative has a kink.

Where ReLU, max pooling or clipping switch, rounding decides the side: of n elements that differ by δ relative to their
size about nδ lie on the other side, and each of those has a gradient that differs wholly. So the gradients of two
healthy nets differ by about sqrt(nδ / n), as soon as nδ is not negligible; one switch at least costs sqrt(1 / n).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.statistics import element_count

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk

#: Modules without a kink, whatever the framework calls them, when nothing else runs inside.
_SMOOTH = (
    "dense", "linear", "conv", "norm", "embedding", "gelu", "tanh", "sigmoid", "silu", "softmax", "dropout", "lstm",
    "gru",
)  # fmt: skip
#: Functions with a kink; a function is nothing but itself, where a module may call others that are not recorded.
_KINKED = re.compile(
    r"(?<!g)elu|hard|clamp|clip|(?<!soft)max|min|abs|sort|topk|(?<!avg)(?<!avg_)pool|thresh|shrink|sign|where|"
    r"median|(?<!smooth)(?<!smooth_)l1|hinge|(?<!soft)(?<!soft_)margin|embedding_loss"
)
#: Expected switches in a tensor from which on one is no surprise: a step has hundreds of tensors.
_PLAUSIBLE = 1e-3
#: A gradient's largest elements are a few times its root mean square.
_LARGE = 4.0


class ReluSwitching:
    """Gradients of a call, all or none: what switches explain of one, statistics may hide in another further on."""

    name: ClassVar[str] = "ReLU switching"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._unrecorded = evidence.unrecorded

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """As much as switches in its forward calls explain, or explained of the gradients before it.

        Of a call whose turn has not come nothing, as the gradients inside it are not known yet.
        """
        if not node.is_backward or walk.turn is not node:
            return None
        if node.is_module:
            own = _of_node(node)
        else:
            # What it takes in decides the side; what it gives out may be wrong itself.
            taken = (each for each in _forward(node) if each.state == "input")
            own = allowed_by_switching(taken) if row.state != "input" and _is_kinked(node) else 0.0
        if row.state == "input" and self._unrecorded.stands_before(node.pair):  # what has no counterpart may switch
            own = max(own, _of_outputs(node))
        up_to = max(walk.largest_allowed.get(self.name, 0.0), own)
        if not 0 < node.deviation <= up_to:
            return None
        allowance = Allowance(self.name, up_to)
        return walk.no_more_than_amplified(allowance, row, node) if walk.comes_from_the_loss(row, node) else allowance


def _of_node(node: Node) -> float:
    """The deviation of a module's gradients that switches explain, given how its forward calls differ."""
    smooth = node.parsed is not None and not node.children and is_smooth(node.parsed.class_name)
    if smooth and (node.ratio_in <= 1 or _takes_what_arrives(node)):
        return 0.0
    return allowed_by_switching(_forward(node))


def _of_outputs(node: Node) -> float:
    return allowed_by_switching(row for row in _forward(node) if row.state == "output")


def _forward(node: Node) -> Iterator[Row]:
    return (row for each in node.context if not each.is_backward for row in each.pair.rows)


def _is_kinked(node: Node) -> bool:
    return node.parsed is None or bool(_KINKED.search(node.parsed.name.lower()))


def _takes_what_arrives(node: Node) -> bool:
    """Whether a gradient comes to it as it came to the module around it, past no other code: what is off was off."""
    if node.parent is None:
        return True
    arriving = {fingerprint(row) for row in node.parent.rows("input")}
    return any(error_ratio(row) > 1 and fingerprint(row) in arriving for row in node.rows("input"))


def is_smooth(class_name: str) -> bool:
    """Whether a module of this class cannot have a kink: ``Dense``, ``LayerNorm``, ``Conv2d``…; ``LeakyReLU`` can."""
    name = class_name.lower()
    return any(smooth in name for smooth in _SMOOTH) and "hard" not in name


def allowed_by_switching(forward: Iterable[Row]) -> float:
    """The deviation of a gradient that switches in these tensors of the forward call explain; 0 when none is likely."""
    allowed = 0.0
    for row in forward:
        if row.golden is None or not row.deviation or not parse_dtype(row.golden.dtype).epsilon:
            continue
        if row.explained is not None and row.explained.effect in (Effect.NO_ERROR, Effect.NO_EFFECT):
            continue  # nothing was computed from what differs
        count = element_count(row.golden)
        allowed = max(allowed, allowed_by_switches(count * row.deviation, count))
    return allowed


def allowed_by_switches(switched: float, count: int) -> float:
    """Return how far apart ``count`` elements may be of which about ``switched`` are others; 0 if none is likely."""
    if not _PLAUSIBLE <= switched < math.inf:
        return 0.0
    return _LARGE * math.sqrt(max(1.0, switched) / max(1, count))
