"""Tell from the parameters alone whether both sides have updated them since they were the same."""

from __future__ import annotations

from collections.abc import Sequence

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import PARAMETERS_GRAD

#: The deviation of parameters up to which updates may have set them apart: the median of all. Weights of another
#: checkpoint are further apart; updates of one rate and schedule move both sides alike.
_UPDATED = 0.05

#: A parameter: name of its module, path below it.
_Place = tuple[str, tuple[str, ...]]


def were_updated(pairs: Sequence[Pair]) -> bool:
    """Whether the deviations of parameters say that updates were: most are not exactly equal, nor far apart.

    Only those have a say that have a gradient, where any has: what nothing trains, as a frozen part, stays equal.
    """
    trained = {place for pair in pairs if pair.target is not None for place in _with_gradients(pair.target)}
    parameters = [
        (pair, row)
        for pair in pairs
        if pair.matched
        for row in pair.rows
        if row.state == "parameters" and row.deviation is not None and row.matched
    ]
    deviations = [row.deviation or 0.0 for pair, row in parameters if not trained or _place(pair, row) in trained]
    apart = sorted(deviation for deviation in deviations if deviation)
    return len(apart) > len(deviations) / 2 and apart[len(apart) // 2] <= _UPDATED


def _place(pair: Pair, row: Row) -> _Place | None:
    parsed = pair.target.parsed if pair.target is not None else None
    return (parsed.name, row.target.path) if parsed is not None and row.target is not None else None


def _with_gradients(entry: Entry) -> Sequence[_Place]:
    """The parameters of which this entry holds a gradient that is not zero."""
    parsed = entry.parsed
    if parsed is None or parsed.direction != PARAMETERS_GRAD:
        return ()
    gradients = (item for item in entry.items if item.kind == "tensor" and not item.maximum == item.minimum == 0)
    return [(parsed.name, item.path) for item in gradients]
