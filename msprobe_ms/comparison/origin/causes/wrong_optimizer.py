"""Updates as optimizers were seen to make them: with another setting, of another gradient, or by another rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msprobe_ms.arrays import sketch
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.sentences import describe_difference, origin_at
from msprobe_ms.comparison.origin.updates import ROUNDING, Update, Vector
from msprobe_ms.dump.model import Item
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: Times that the gradient an optimizer is given may be further off than the one that backward gave, and the least
#: error ratio that counts: it sums those of several backwards, whose noise adds up.
_MORE, _NOISE = 10.0, 30.0
#: Part of a gradient or of the state up to which it is the same for an update; what of an update may then be apart.
#: Where a gradient is rounding in single elements Adam makes steps of full size of it: a tenth of all, say.
_SAME, _APART = 1e-3, 0.3


class WrongOptimizer:
    """The update of a parameter that differs though what it is computed from agrees."""

    def __init__(self, evidence: Evidence) -> None:
        self._gradients: dict[tuple[str, str], Row] = {
            (node.module, row.target.path[-1]): row
            for node in evidence.nodes
            if node.is_parameter_gradient
            for row in node.pair.rows
            if row.matched and row.target is not None and row.target.path
        }

    def find(self, node: Node) -> Origin | None:
        """Say that error begins at ``node``, an update, and why; None where it does not."""
        rows = {".".join(row.target.path): row for row in node.pair.rows if row.matched and row.target is not None}
        inputs = {path: row for path, row in rows.items() if row.state == "input"}
        return _of_setting(inputs) or self._of_gradient(node, inputs) or _of_result(node, inputs)

    def _of_gradient(self, node: Node, inputs: Mapping[str, Row]) -> Origin | None:
        gradient = inputs.get("gradient")
        module, _, name = node.parsed.name.rpartition(".") if node.parsed is not None else ("", "", "")
        given = self._gradients.get((module, name))
        if gradient is None or given is None or _ratio(gradient) <= max(_NOISE, _MORE * _ratio(given)):
            return None
        agrees = tr("though the gradient that backward gave agrees: look at clipping, unscaling, accumulation")
        return origin_at(
            gradient,
            tr("{difference}, {agrees}", difference=describe_difference(gradient), agrees=agrees),
            kind=OriginKind.UPDATE,
        )


def _of_setting(inputs: Mapping[str, Row]) -> Origin | None:
    """A setting of the optimizer that differs; the others that do are details."""
    found = [row for row in inputs.values() if _is_other_setting(row)]
    if not found:
        return None
    first, *others = found
    reason = tr("{difference}: the optimizers have different settings", difference=describe_difference(first))
    return origin_at(first, reason, map(describe_difference, others), OriginKind.UPDATE)


def _is_other_setting(row: Row) -> bool:
    return row.target is not None and row.target.kind == "value" and _ratio(row) > 1


def _ratio(row: Row) -> float:
    """Deviation over tolerance, whatever lets it pass elsewhere: Adam makes the same of a gradient twice as large."""
    if not row.deviation or row.tolerance is None:
        return 0.0
    return row.deviation / row.tolerance if row.tolerance > 0 else math.inf


def _of_result(node: Node, inputs: Mapping[str, Row]) -> Origin | None:
    """An update that differs though gradient and state are the same; sketches tell."""
    after, before = next(node.rows("output"), None), inputs.get("parameter")
    if after is None or before is None or after.target is None or not after.matched:
        return None
    if any(_apart(row) > _SAME for path, row in inputs.items() if path != "parameter" and _is_tensor(row)):
        return None
    vectors = [_sketched(item) for item in (after.target, before.target, after.golden, before.golden)]
    if any(vector is None for vector in vectors):
        return None
    ours, held, theirs, golden_held = (vector for vector in vectors if vector is not None)
    rounding = ROUNDING * parse_dtype(after.target.dtype).epsilon * max(map(sketch.norm, (held, golden_held)))
    update = Update(after, ours - held, theirs - golden_held, held, golden_held, rounding, slope=None)
    if update.left_alone_by:
        reason = tr(
            "the {left_alone_by} does not update this parameter, though it is given the same gradient",
            left_alone_by=update.left_alone_by,
        )
        return origin_at(after, reason, kind=OriginKind.UPDATE)
    if not update.is_known or update.apart <= _APART:
        return None
    reason = tr("the update differs by {apart:.0%}, though what it is computed from agrees", apart=update.apart)
    factor = tr("it is {factor:.3g} times the golden's", factor=update.factor) if update.beside_factor <= _APART else ""
    return origin_at(
        after, tr("{reason}: look at the rule of the optimizer", reason=reason), [factor], OriginKind.UPDATE
    )


def _is_tensor(row: Row) -> bool:
    return row.target is not None and row.target.kind == "tensor"


def _apart(row: Row) -> float:
    """By which part of the golden's the two differ."""
    mine, other = _sketched(row.target), _sketched(row.golden)
    if mine is None or other is None:
        return row.deviation or 0.0
    size = sketch.norm(other)
    return sketch.distance(mine, other) / size if size else float(sketch.norm(mine) > 0)


def _sketched(item: Item | None) -> Vector | None:
    return sketch.decode(item.sketch) if item is not None and item.sketch else None
