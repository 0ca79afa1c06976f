"""A parameter that differs before the step has computed anything with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.explanations.random_numbers import SEED
from msprobe_ms.comparison.origin.layer_kinds import Kind
from msprobe_ms.comparison.origin.nodes import Node, worst
from msprobe_ms.comparison.origin.protocols import Found
from msprobe_ms.comparison.origin.sentences import describe_difference, origin_at

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.search import Walk

#: The share of modules with other parameters from which on a checkpoint was not loaded.
_ALL = 0.8
#: Times that what a module gives out is further apart than its parameter before another fault must be in it.
_PARAMETER = 100.0


class WrongParameter:
    """A parameter that differs though the inputs of its module agree."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def find(self, node: Node, unexplained: Sequence[Row], walk: Walk) -> Found | None:
        """The unexplained parameter that differs most, once for all calls of its module."""
        row = worst(row for row in unexplained if row.state == "parameters")
        if row is None:
            return None
        return Found(node, self._origin(node, row) if walk.is_untold(node) else None, whole_module=True)

    def _origin(self, node: Node, row: Row) -> Origin:
        besides = ""
        more = node.ratio_out > _PARAMETER * node.ratio_parameters
        if more and (out := worst(node.rows("output"))) is not None:
            excess = f"{describe_difference(out)}, which is more than the parameter explains"
            besides = f"; {excess}: look at the layer's settings, too"
        reason = (
            f"its inputs agree, but its parameter differs before the computation: {describe_difference(row)}"
            f"{self._other_parameters(node)}; look at initialisation and checkpoint loading, in later steps at the "
            f"optimizer, its learning rate and the gradients of the step before{besides}"
        )
        if random := self._random_operation():
            reason += f"; {random} draws random numbers, so that gradients of earlier steps differ by right: {SEED}"
            return origin_at(row, reason, OriginKind.RANDOM)
        return origin_at(row, reason, OriginKind.PARAMETER)

    @cached_property
    def _holders(self) -> set[str]:
        """Modules with parameters."""
        return {each.module for each in self._evidence.nodes if any(True for _ in each.rows("parameters"))}

    def _other_parameters(self, node: Node) -> str:
        """How many modules it shares this with: one is a slip, all are an update."""
        holders = self._holders
        others = {each.module for each in self._evidence.nodes if each.ratio_parameters > 1} - {node.module}
        if len(others) + 1 > max(1.0, _ALL * len(holders)) and not self._evidence.updated:
            return f" (parameters of {len(others) + 1} of {len(holders)} modules differ: was the checkpoint loaded?)"
        return (
            f" (so do parameters of {len(others)} of the {len(holders) - 1} other modules with parameters)"
            if others
            else ""
        )

    def _random_operation(self) -> str:
        """A random operation that differs, where the parameters have been through updates; "" if there is none."""
        found = (node.name for node in self._evidence.nodes if node.ratio_out > 1 and node.kind is Kind.RANDOM)
        return next(found, "") if self._evidence.updated else ""
