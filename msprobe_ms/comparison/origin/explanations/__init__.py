"""Reasons for which two healthy runs differ, one a module, in the order in which they are tried.

The *error ratio* is the deviation of a value over what is explained; the origin is the first node with a value that
nothing explains. A new explanation is a module here and a line in ``EXPLANATIONS``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from msprobe_ms.comparison.origin.explanations.dropout import Dropout
from msprobe_ms.comparison.origin.explanations.inherited_error import InheritedError
from msprobe_ms.comparison.origin.explanations.inner_gradients import InnerGradients
from msprobe_ms.comparison.origin.explanations.later_uses import LaterUses
from msprobe_ms.comparison.origin.explanations.nearby_noise import NearbyNoise
from msprobe_ms.comparison.origin.explanations.optimizer_noise import OptimizerNoise
from msprobe_ms.comparison.origin.explanations.optimizer_updates import OptimizerUpdates
from msprobe_ms.comparison.origin.explanations.partial_gradients import PartialGradients
from msprobe_ms.comparison.origin.explanations.phase import Phase
from msprobe_ms.comparison.origin.explanations.propagated_error import PropagatedError
from msprobe_ms.comparison.origin.explanations.random_numbers import RandomNumbers
from msprobe_ms.comparison.origin.explanations.relu_switching import ReluSwitching
from msprobe_ms.comparison.origin.explanations.rounding import Rounding

if TYPE_CHECKING:
    from msprobe_ms.comparison.model import Allowance, Row
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk

__all__ = ["EXPLANATIONS", "Explanation", "Phase"]


class Explanation(Protocol):
    """One reason for which two healthy runs differ; it holds nothing but what it surveyed when it was made.

    ``name``   in the column *Explained By* and under ``--node``
    ``phase``  when it is asked
    """

    name: ClassVar[str]
    phase: ClassVar[Phase]

    def __init__(self, evidence: Evidence) -> None:
        """Survey the evidence; what the explanations before this one let pass is let pass already."""

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Say how far ``row`` of ``node`` may be apart, given what the walk met so far; None: this says nothing of it.

        It changes nothing.
        """


#: The first that explains a row whole lets it pass.
EXPLANATIONS: tuple[type[Explanation], ...] = (
    PartialGradients,
    InnerGradients,
    LaterUses,
    OptimizerNoise,
    ReluSwitching,
    InheritedError,
    Rounding,
    NearbyNoise,
    OptimizerUpdates,
    PropagatedError,
    RandomNumbers,
    Dropout,
)
