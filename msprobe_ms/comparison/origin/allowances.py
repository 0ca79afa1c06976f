"""Say what explanations allowed a row that is beyond its tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.support.translation import tr, tr_join


def describe_explanations(row: Row, tried: Sequence[tuple[str, Allowance | None]]) -> str:
    """Say of a row what let it pass, then what every explanation that was asked allowed."""
    item = row.target or row.golden
    return tr(
        "{which}: {allowances}",
        which=(item.suffix if item is not None else "") or tr("itself"),
        allowances=describe_allowances(row, tried),
    )


def describe_allowances(row: Row, tried: Sequence[tuple[str, Allowance | None]]) -> str:
    """The same without the name of the row."""
    allowed = [
        tr("{name} {amount}", name=tr(name), amount=_amount(each.up_to)) for name, each in tried if each is not None
    ]
    silent = [tr(name) for name, each in tried if each is None]
    parts = [_outcome(row)]
    if allowed:
        parts.append(tr("allowed by {allowed}", allowed=tr_join(", ", allowed)))
    if silent:
        parts.append(tr("nothing by {silent}", silent=tr_join(", ", silent)))
    return tr_join("; ", parts)


def _outcome(row: Row) -> str:
    explained = row.explained
    if explained is None:
        return (
            tr("nothing explains it") if not row.inherited_from else tr("not explained, as the error begins before it")
        )
    if explained.effect is Effect.HOLDS:
        return tr("held to {up_to:.3g}, less than its tolerance", up_to=explained.up_to)
    return tr("explained by {by}", by=tr(explained.by))


def _amount(up_to: float) -> str:
    return tr("up to {up_to:.3g}", up_to=up_to) if math.isfinite(up_to) else tr("to any extent")
