"""A parameter that differs before the step has computed anything with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.explanations.random_numbers import SEED
from msprobe_ms.comparison.origin.nodes import Node, worst
from msprobe_ms.comparison.origin.protocols import Found
from msprobe_ms.comparison.origin.sentences import (
    describe_briefly,
    describe_difference,
    describe_order,
    fitting,
    origin_at,
)
from msprobe_ms.comparison.origin.updates import Update, place_of
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk

#: Where to look: in the first step, and later.
_BEGINNING, _UPDATE = tr("the checkpoint"), tr("the optimizer and its learning rate")
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
        row = worst(row for row in unexplained if row.state == "parameters") if unexplained else None
        if row is None:
            return None
        return Found(node, self._origin(node, row) if walk.is_untold(node) else None, whole_module=True)

    def _origin(self, node: Node, row: Row) -> Origin:
        difference, besides = describe_difference(row), ""
        more = node.ratio_out > _PARAMETER * node.ratio_parameters
        if more and (out := worst(node.rows("output"))) is not None:
            excess = tr("more than the parameter explains: check the layer's settings, too")
            besides = fitting(
                tr("{difference}, {excess}", difference=describe_difference(out), excess=excess),
                tr("{briefly}, {excess}", briefly=describe_briefly(out), excess=excess),
            )
        everywhere, others = self._other_parameters(node)
        details = [besides, everywhere and difference, others, describe_order(row)]
        updates = self._updates_that_agreed(row)
        recorded = any(each.gradients is not None for each in updates)  # so that no random number set them apart
        if not recorded and (random := self._random_operation()):
            reason = tr("gradients of earlier steps may differ, because random numbers were drawn: {seed}", seed=SEED)
            return origin_at(
                row,
                reason,
                [tr("{random} draws random numbers", random=random), difference, *details],
                OriginKind.RANDOM,
            )
        if updates:
            before = tr("though it and its gradient agreed in the step before")
            look = tr("look at the optimizer, weight decay, clipping")
            reason = fitting(
                tr("{difference}, {before}: {look}", difference=difference, before=before, look=look),
                tr("{briefly}, {before}: {look}", briefly=describe_briefly(row), before=before, look=look),
            )
            return origin_at(row, reason, details, OriginKind.UPDATE)
        reason = everywhere or fitting(
            tr(
                "{difference} before it is used: check {beginning} (first step) or {update} (later step)",
                difference=difference,
                beginning=_BEGINNING,
                update=_UPDATE,
            ),
            tr(
                "{difference}: check {beginning} (first step) or {update} (later step)",
                difference=difference,
                beginning=_BEGINNING,
                update=_UPDATE,
            ),
            tr(
                "{briefly}: check {beginning} (first step) or {update} (later step)",
                briefly=describe_briefly(row),
                beginning=_BEGINNING,
                update=_UPDATE,
            ),
        )
        return origin_at(row, reason, details, OriginKind.PARAMETER)

    def _updates_that_agreed(self, row: Row) -> list[Update]:
        """The updates of a parameter that was the same in the step before, where its gradient agreed as well."""
        place = place_of(row)
        updates = [each for each in self._evidence.updates if place_of(each.row) == place]
        return [each for each in updates if each.began_equal and each.same_gradient]

    @cached_property
    def _holders(self) -> set[str]:
        """Modules with parameters."""
        return {each.module for each in self._evidence.nodes if any(True for _ in each.rows("parameters"))}

    def _other_parameters(self, node: Node) -> tuple[str, str]:
        """The reason where nearly all modules share this, else a detail: one is a slip, all are an update."""
        holders = self._holders
        others = {each.module for each in self._evidence.nodes if each.ratio_parameters > 1} - {node.module}
        if len(others) + 1 > max(1.0, _ALL * len(holders)) and not self._evidence.updated:
            differ = tr(
                "parameters of {count} of {other_count} modules differ before they are used",
                count=len(others) + 1,
                other_count=len(holders),
            )
            return tr(
                "{differ}: was the checkpoint loaded? (in a later step check {update})", differ=differ, update=_UPDATE
            ), ""
        if not others:
            return "", ""
        return "", tr(
            "parameters of {count} of the {other_count} other modules with parameters differ, too",
            count=len(others),
            other_count=len(holders) - 1,
        )

    def _random_operation(self) -> str:
        """A random operation that differs, where the parameters have been through updates; "" if there is none."""
        found = (node.name for node in self._evidence.nodes if node.ratio_out > 1 and node.kind is Kind.RANDOM)
        return next(found, "") if self._evidence.updated else ""
