"""Operations that draw random numbers: with another seed or generator their results differ by right."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.comparison.origin.nodes import RESULTS
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk

#: What makes random operations comparable.
SEED = tr("seed both sides alike (seed_all, or with rm_dropout) and dump again")
#: What random numbers mean for the rest of the step.
HIDDEN = tr("what follows it cannot be judged")
_BECAUSE = tr("it draws random numbers, so its result may differ: {seed}", seed=SEED), HIDDEN


class RandomNumbers:
    """Results of calls that draw random numbers."""

    name: ClassVar[str] = "random numbers"
    phase: ClassVar[Phase] = Phase.ORIGIN

    def __init__(self, evidence: Evidence) -> None:
        self._allowance = Allowance(self.name, because=_BECAUSE, effect=Effect.RANDOM)

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Anything, of what such a call gives out."""
        return self._allowance if row.state in RESULTS and not node.is_save and node.kind is Kind.RANDOM else None
