"""Say what explanations allowed a row that is beyond its tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msprobe_ms.comparison.model import Allowance, Effect, Row


def describe_explanations(row: Row, tried: Sequence[tuple[str, Allowance | None]]) -> str:
    """Say of a row what let it pass, then what every explanation that was asked allowed."""
    item = row.target or row.golden
    return f"{(item.suffix if item is not None else '') or 'itself'}: {describe_allowances(row, tried)}"


def describe_allowances(row: Row, tried: Sequence[tuple[str, Allowance | None]]) -> str:
    """The same without the name of the row."""
    allowed = [f"{name} {_amount(each.up_to)}" for name, each in tried if each is not None]
    silent = [name for name, each in tried if each is None]
    parts = [_outcome(row)]
    if allowed:
        parts.append(f"allowed by {', '.join(allowed)}")
    if silent:
        parts.append(f"nothing by {', '.join(silent)}")
    return "; ".join(parts)


def _outcome(row: Row) -> str:
    explained = row.explained
    if explained is None:
        return "nothing explains it" if not row.inherited_from else "not explained, as the error begins before it"
    if explained.effect is Effect.HOLDS:
        return f"held to {explained.up_to:.3g}, less than its tolerance"
    return f"explained by {explained.by}"


def _amount(up_to: float) -> str:
    return f"up to {up_to:.3g}" if math.isfinite(up_to) else "to any extent"
