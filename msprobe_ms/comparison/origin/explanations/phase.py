"""When an explanation is asked, and the base of those that survey single rows before the walk."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Effect, Row

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class Phase(Enum):
    """When an explanation is asked.

    ``SURVEY``  before the walk: it has found its rows when it is made (see ``Surveyed``)
    ``WALK``    of each value that is beyond its tolerance, in the order of execution
    ``ORIGIN``  of what nothing else explains: whether it differs by right and hides what follows
    """

    SURVEY = "survey"
    WALK = "walk"
    ORIGIN = "origin"


class Surveyed:
    """Base of the explanations that know their rows before the walk.

    ``found``  each row with its node and how far it may be apart
    """

    name: ClassVar[str]
    phase: ClassVar[Phase] = Phase.SURVEY
    effect: ClassVar[Effect] = Effect.NO_ERROR

    def __init__(self) -> None:
        self.found: dict[Row, tuple[Node, Allowance]] = {}
        self._allowance = Allowance(self.name, effect=self.effect)

    def let_pass(self, row: Row, node: Node) -> None:
        """Note that ``row`` of ``node`` may be as far apart as it is."""
        self.found[row] = node, self._allowance

    def allowance(self, row: Row) -> Allowance | None:
        """Return how far the row may be apart; None if the survey did not find it."""
        found = self.found.get(row)
        return found[1] if found is not None else None

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Return the same, wherever the walk has come."""
        return self.allowance(row)
