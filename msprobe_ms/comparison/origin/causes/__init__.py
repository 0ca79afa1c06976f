"""Kinds of origin, one a module, in the order in which they are looked for.

Each owns its sentence. A new cause is a module here and a line in ``CAUSES``, or in ``AFTERWARDS`` where it is looked
for once the walk over the nodes is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msprobe_ms.comparison.origin.causes.found import Found
from msprobe_ms.comparison.origin.causes.missing_gradient import MissingGradient
from msprobe_ms.comparison.origin.causes.other_precision import OtherPrecision
from msprobe_ms.comparison.origin.causes.slow_drift import SlowDrift
from msprobe_ms.comparison.origin.causes.small_excess import SmallExcess
from msprobe_ms.comparison.origin.causes.wrong_input import WrongInput
from msprobe_ms.comparison.origin.causes.wrong_parameter import WrongParameter
from msprobe_ms.comparison.origin.causes.wrong_result import WrongResult

if TYPE_CHECKING:
    from msprobe_ms.comparison.model import Origin, Row
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk

__all__ = ["AFTERWARDS", "CAUSES", "Cause", "Found", "LateCause"]


class Cause(Protocol):
    """One kind of origin; it holds nothing but what it surveyed when it was made."""

    def __init__(self, evidence: Evidence) -> None:
        """Survey the evidence, in which all is let pass that can be before the walk."""

    def find(self, node: Node, unexplained: Sequence[Row], walk: Walk) -> Found | None:
        """Say whether error begins at ``node``, and why; ``unexplained`` are its rows that nothing explains."""


class LateCause(Protocol):
    """One kind of origin that shows only once the walk is over."""

    def __init__(self, evidence: Evidence) -> None: ...

    def find(self, walk: Walk, found: Sequence[tuple[int, Origin]]) -> list[tuple[int, Origin]]:
        """Return further origins with their places in the order; ``found`` are those known already."""


#: The first that speaks of a node counts.
CAUSES: tuple[type[Cause], ...] = (WrongParameter, WrongResult, OtherPrecision, WrongInput, SmallExcess)
AFTERWARDS: tuple[type[LateCause], ...] = (MissingGradient, SlowDrift)
