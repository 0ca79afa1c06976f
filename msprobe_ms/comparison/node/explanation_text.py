"""What explains a row, and how much each explanation allowed it, as a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msprobe_ms.comparison.model import Allowance, Effect, Row


def describe_explanations(row: Row, tried: Sequence[tuple[str, Allowance | None]]) -> str:
    """Say what let a row pass that is beyond its tolerance, then what every other explanation allowed."""
    item = row.target or row.golden
    allowed = [f"{name} {_amount(each.up_to)}" for name, each in tried if each is not None]
    silent = [name for name, each in tried if each is None]
    parts = [f"{(item.suffix if item is not None else '') or 'itself'}: {_outcome(row)}"]
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
    return f"up to {up_to:.3g}" if math.isfinite(up_to) else "whatever it is"
