"""Say what explanations allowed a row that is beyond its tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.support.translation import tr, tr_join


def describe_explanations(row: Row, tried: Sequence[tuple[str, Allowance | None]], entry: str = "") -> str:
    """Say of a row what let it pass, then what every explanation that was asked allowed.

    ``entry``: the entry below which it is told.
    """
    item = row.target or row.golden
    return tr(
        "{which}: {allowances}",
        which=(item.name_in(entry or item.entry) if item is not None else "") or tr("itself"),
        allowances=describe_allowances(row, tried, in_full=False),
    )


def describe_allowances(row: Row, tried: Sequence[tuple[str, Allowance | None]], *, in_full: bool = True) -> str:
    """The same without the name of the row; ``in_full``: also name the explanations that do not apply."""
    allowed = _largest([(name, each.up_to) for name, each in tried if each is not None])
    silent = tuple(name for name, each in tried if each is None)
    explained_by = tr(row.explained.by) if row.explained is not None else ""
    parts = [_outcome(row, dict(allowed).get(explained_by))]
    if others := [(name, up_to) for name, up_to in allowed if name != explained_by]:
        parts.append(_allowed(row, others))
    if silent and in_full:
        parts.append(_silent(silent))
    return tr_join(tr("; "), parts)


def _largest(allowed: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Each explanation once, with the most it allowed: some are asked again once more is known."""
    largest: dict[str, float] = {}
    for name, up_to in allowed:
        largest[name] = max(up_to, largest.get(name, 0.0))
    return [(tr(name), up_to) for name, up_to in largest.items()]


@lru_cache(maxsize=64)
def _silent(names: tuple[str, ...]) -> str:
    """That explanations do not apply, in a message that many rows share."""
    return tr("explanations that do not apply: {silent}", silent=tr_join(", ", map(tr, names)))


def _outcome(row: Row, up_to: float | None) -> str:
    """What let a row pass, and up to which deviation; or that nothing did."""
    explained = row.explained
    if explained is None:
        if row.inherited_from:
            return tr("its error comes from {origin}", origin=row.inherited_from)
        return tr("its deviation is an error")
    if explained.effect is Effect.HOLDS:
        return tr("judged by {up_to:.3g}, which is less than its tolerance", up_to=explained.up_to)
    if up_to is None or not math.isfinite(up_to):
        return tr("explained by {by}", by=tr(explained.by))
    return tr("explained by {by} (up to {up_to:.3g})", by=tr(explained.by), up_to=up_to)


def _allowed(row: Row, allowed: Sequence[tuple[str, float]]) -> str:
    """What each explanation that was not needed, or was not enough, lets pass."""
    deviation = math.inf if row.deviation is None else row.deviation
    groups = [[each for each in allowed if (each[1] >= deviation) is enough] for enough in (False, True)]
    small, enough = (tr_join(", ", [_accepts(name, up_to) for name, up_to in group]) for group in groups)
    parts = [tr("too small to explain it: {small}", small=small)] if groups[0] else []
    return tr_join(tr("; "), [*parts, tr("also explained by {enough}", enough=enough)] if groups[1] else parts)


def _accepts(name: str, up_to: float) -> str:
    """How large a deviation an explanation lets pass."""
    if math.isfinite(up_to):
        return tr("{name} (up to {up_to:.3g})", name=name, up_to=up_to)
    return tr("{name} (any deviation)", name=name)
