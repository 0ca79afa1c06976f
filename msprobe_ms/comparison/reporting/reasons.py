"""Say in a line why values are beyond their tolerances though no error begins at them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from msprobe_ms.comparison.model import Effect, Row
from msprobe_ms.support.translation import tr, tr_count, tr_join

#: What each explanation says of a value, after "because"; "" is that of values which none explains.
REASONS = {
    "": tr("small errors add up"),
    "ReLU switching": tr("rounding decides the side of a ReLU"),
    "growth since the first step": tr("rounding grows with updates"),
    "agreed where made": tr("they agree where they are made"),
    "aligned updates": tr("updates point the same way"),
    "calls across borders": tr("they are computed elsewhere"),
    "condition of the loss": tr("the loss amplifies rounding"),
    "dropout": tr("dropout is random"),
    "index without use": tr("nothing uses these indices"),
    "inherited error": tr("an earlier value differs"),
    "inner gradients": tr("a side recorded an inner step"),
    "input without effect": tr("they do not affect the results"),
    "later uses agree": tr("later uses of the tensor agree"),
    "nearby noise": tr("a parameter near them is noise"),
    "optimizer noise": tr("the optimizer amplifies noise"),
    "optimizer updates": tr("earlier updates carry rounding"),
    "other borders": tr("their modules end elsewhere"),
    "other counterpart": tr("the call pairs with another"),
    "other layout": tr("the elements are reordered"),
    "other order": tr("later layers take in the same"),
    "other value at first": tr("so it was in the first step"),
    "partial gradients": tr("one side has parts of a sum"),
    "propagated error": tr("the call amplifies rounding"),
    "random numbers": tr("random numbers differ"),
    "results agree": tr("results that use them agree"),
    "result of a call inside": tr("a call inside gave it out"),
    "result without use": tr("nothing uses this result"),
    "rounding": tr("rounding reaches that far"),
    "running statistics": tr("they are running statistics"),
    "step agrees": tr("the step's gradients agree"),
    "waves": tr("angles of sines are rounded"),
}
#: Reasons that are told; of more, how many values they explain.
_TOLD = 2


def differing_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Say how many values are beyond their tolerances and why, and where each is told; nothing where none is."""
    if not (told := why_beyond(rows)):
        return
    yield tr("  {line}", line=told)
    yield tr("  the reason of each is in the table's column Explained By; --node NAME tells more of one")


def why_beyond(rows: Iterable[Row]) -> str:
    """Return how many values are beyond their tolerances and why; "" where none is."""
    by = Counter(row.explained_by for row in rows if row.differs)
    beyond = tr_count("1 value is beyond its tolerance", "{count} values are beyond their tolerances", by.total())
    return _with_reasons(beyond, by) if by else ""


def most_let_pass(rows: Iterable[Row]) -> tuple[float, str]:
    """Return the largest deviation of a result or gradient that was accepted beyond its tolerance, and its name.

    An error that hides in them is no larger. 0 and "" where there are none. What calls take in is judged as what others
    give out.
    """
    differing = (row for row in rows if row.differs and row.state != "input" and row.target is not None)
    accepted = (row for row in differing if row.explained is not None and row.explained.effect is Effect.PASSES)
    told = ((row.deviation, row) for row in accepted if row.deviation is not None and math.isfinite(row.deviation))
    largest, found = max(told, key=lambda each: each[0], default=(0.0, None))
    return largest, found.target.name if found is not None and found.target is not None else ""


def withdrawn_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Say how many values are beyond their tolerances and no error, as only their record differs; nothing if none."""
    by = Counter(row.explained_by for row in rows if row.misrecorded)
    if by:
        beyond = tr_count(
            "1 value is beyond its tolerance and is not judged",
            "{count} values are beyond their tolerances and are not judged",
            by.total(),
        )
        yield tr("  {line}", line=_with_reasons(beyond, by))


def _with_reasons(beyond: str, by: Counter[str]) -> str:
    ranked = by.most_common()
    if len(by) == 1:
        return tr("{beyond} because {why}", beyond=beyond, why=REASONS[ranked[0][0]])
    parts = [tr("{count} because {why}", count=count, why=REASONS[name]) for name, count in ranked[:_TOLD]]
    if others := [count for _, count in ranked[_TOLD:]]:
        reasons = tr_count("1 other reason", "{count} other reasons", count=len(others))
        parts.append(tr("{count} for {reasons}", count=sum(others), reasons=reasons))
    return tr("{beyond}: {why}", beyond=beyond, why=tr_join(", ", parts))
