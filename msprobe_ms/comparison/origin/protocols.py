"""Say what an explanation of a difference and a cause of an error are: the protocols that the walk asks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from msprobe_ms.comparison.model import Allowance, Effect, Origin, Row

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class Phase(Enum):
    """When an explanation is asked; those that are ``Surveyed`` know their rows before and are not asked.

    ``WALK``    of each value that is beyond its tolerance, in the order of execution
    ``ORIGIN``  of what nothing else explains: whether it differs by right and hides what follows
    """

    WALK = "walk"
    ORIGIN = "origin"


class Explanation(Protocol):
    """One reason for which two healthy runs differ, asked during the walk; it holds what it read of the evidence.

    ``name``   in the column *Explained By* and under ``--node``
    ``phase``  when it is asked
    """

    name: ClassVar[str]
    phase: ClassVar[Phase]

    def __init__(self, evidence: Evidence) -> None:
        """Survey the evidence, whose rows hold what earlier explanations let pass."""

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Say how far ``row`` of ``node`` may be apart, given what the walk met so far; None: this says nothing of it.

        It changes nothing.
        """


class Surveyed:
    """Base of the explanations that find their rows when they are made, before the walk.

    ``name``   as that of an ``Explanation``
    ``found``  each row with its node and how far it may be apart
    """

    name: ClassVar[str]
    effect: ClassVar[Effect] = Effect.NO_ERROR

    def __init__(self, evidence: Evidence) -> None:
        """Survey the evidence, and note each row that this explains with ``let_pass``."""
        self.found: dict[Row, tuple[Node, Allowance]] = {}
        self._allowance = Allowance(self.name, effect=self.effect)

    def let_pass(self, row: Row, node: Node) -> None:
        """Note that ``row`` of ``node`` may be as far apart as it is."""
        self.found[row] = node, self._allowance

    def allowance(self, row: Row) -> Allowance | None:
        """Return how far the row may be apart; None if the survey did not find it."""
        found = self.found.get(row)
        return found[1] if found is not None else None


class Found(NamedTuple):
    """What a cause found: a node where error begins.

    ``node``          the node; None where the one that was asked about is told as another
    ``origin``        what is told of it; None where it, or a call inside it, was told already
    ``whole_module``  whether further calls of its module add nothing
    """

    node: Node | None
    origin: Origin | None = None
    whole_module: bool = False


class Cause(Protocol):
    """One kind of origin; it holds nothing but what it surveyed when it was made."""

    def __init__(self, evidence: Evidence) -> None:
        """Survey the evidence, in which all is let pass that can be before the walk."""

    def find(self, node: Node, unexplained: Sequence[Row], walk: Walk) -> Found | None:
        """Say whether error begins at ``node``, and why; ``unexplained`` are its rows that nothing explains."""


class EarlyCause(Protocol):
    """One kind of origin from which all else that differs in the step follows."""

    def __init__(self, evidence: Evidence) -> None: ...

    def find(self) -> list[Origin]:
        """Return its origins; [] where there are none."""


class LateCause(Protocol):
    """One kind of origin that shows only once the walk is over."""

    def __init__(self, evidence: Evidence) -> None: ...

    def find(self, walk: Walk, found: Sequence[tuple[float, Origin]]) -> list[tuple[float, Origin]]:
        """Return further origins with their places in the order; ``found`` are those known already."""
