"""What was said of rows in arrays, a place for each row: many say one thing, and are asked for it more than once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.terms import Effect
from msprobe_ms.page.columns import Codes

if TYPE_CHECKING:
    from msprobe_ms.comparison.model import Row


class Coded(NamedTuple):
    """A value for each row: its place among the ``values`` that there are, in the order in which they come first."""

    codes: npt.NDArray[np.uint32]
    values: Sequence[Any]

    def at(self, places: npt.NDArray[np.intp]) -> list[Any]:
        """Return the values of some of the rows."""
        return [*map(self.values.__getitem__, self.codes[places].tolist())]


class RowVerdicts(NamedTuple):
    """Results, what differences are inherited from, what explains them, reasons; "" for nothing.

    A reason is a text, or what makes it of a row (see ``Row``).
    """

    results: Coded
    inherited: Coded
    explained: Coded
    reasons: Coded


def verdicts_of(rows: Sequence[Row]) -> RowVerdicts:
    """Return what is said of rows that were judged."""
    said = [row.said for row in rows]
    shared = {id(each): each for each in said}
    codes = _coded(map(id, said)).codes - 1  # the first code is that of nothing
    results, reasons = _coded(each.result for each in shared.values()), _coded(each.reason for each in shared.values())
    return RowVerdicts(
        Coded(results.codes[codes], results.values),
        _coded([row.inherited_from for row in rows]),
        _coded(
            [
                "" if (explained := row.explained) is None or explained.effect is Effect.HOLDS else explained.by
                for row in rows
            ]
        ),
        Coded(reasons.codes[codes], reasons.values),
    )


def _coded(values: Iterable[Any]) -> Coded:
    codes = Codes("")
    return Coded(codes.numbers(values), codes.values)
