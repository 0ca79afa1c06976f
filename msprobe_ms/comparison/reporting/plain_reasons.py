"""Reasons of rows of which no more is to be said than how far apart they are, as it is of most that differ.

They are made when they are asked for, in English of many at once: a message of each of a million rows would take a
tenth of their comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Comparison, Row

#: What all of them begin with, before the rest that many share.
_DEVIATION = "{deviation:.3g}"


class PlainReason:
    """Makes the reason of a row: a message. ``english``: its text, with fields ``deviation``, ``held_to`` and
    ``inherited_from``."""

    def __init__(self, make: Callable[[Row], str], english: str) -> None:
        self._make = make
        self.beginning, _, self._end = english.partition(_DEVIATION)

    def __call__(self, row: Row) -> str:
        return self._make(row)

    def end(self, held_to: float, inherited_from: str) -> str:
        return self._end.format(held_to=held_to, inherited_from=inherited_from)


def reasons_of(comparison: Comparison, places: npt.NDArray[np.intp]) -> list[str]:
    """Return the reasons of the rows at these places in English, "" for none."""
    verdicts, deviations, rows = comparison.verdicts, comparison.deviations, comparison.rows
    found, codes = verdicts.reasons.at(places), verdicts.reasons.codes[places]
    made = np.array([not isinstance(reason, str) for reason in verdicts.reasons.values], np.bool_)
    if not len(left := np.flatnonzero(made[codes])):
        return found
    ends: dict[tuple[PlainReason, float, str], str] = {}
    chosen = places[left]
    values, bounds = deviations.values[chosen].tolist(), deviations.held_to[chosen].tolist()
    for place, value, bound, source in zip(
        left.tolist(), values, bounds, verdicts.inherited.at(chosen), strict=True
    ):  # fmt: skip
        reason = found[place]
        if isinstance(reason, PlainReason):
            key = reason, bound, source
            if (end := ends.get(key)) is None:
                end = ends[key] = reason.end(bound, source)
            found[place] = f"{reason.beginning}{value:.3g}{end}"
        else:
            found[place] = reason(rows[places[place]])
    return found
