"""Pictures of tensors in a page: of the origins, of what is around them, and of what differs most."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.pictures import SIDE, difference_map, scatter
from msprobe_ms.arrays.worst_elements import Study, study
from msprobe_ms.comparison.measuring.tensors import load_both
from msprobe_ms.comparison.model import Outcome, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.page.calls import Calls
from msprobe_ms.comparison.page.rows import Rows
from msprobe_ms.comparison.statistics import element_count
from msprobe_ms.comparison.terms import Mode
from msprobe_ms.support.translation import tr, tr_join

#: Tensors that have pictures: of calls around an origin on each side, and of those furthest apart.
_AROUND, _FURTHEST = 3, 50
#: Elements that are read for pictures: so many in any case, and this share of all that were compared.
_ELEMENTS, _SHARE = 1 << 24, 0.05
#: Share of the squared error from which on the one index that holds it is named.
_MOST = 0.5


def pictures(outcome: Outcome, rows: Rows, calls: Calls) -> list[dict[str, Any]]:
    """Return the pictures of the tensors that matter most (docs/report_page_design.md); [] without real data."""
    if outcome.comparison.mode != Mode.TENSOR:
        return []
    compared = [place for place, row in enumerate(rows.rows) if row.matched and row.deviation is not None]
    sizes = {place: _elements(rows.rows[place]) for place in compared}
    left = max(_ELEMENTS, _SHARE * sum(sizes.values()))
    found: list[dict[str, Any]] = []
    for place in _wanted(outcome, rows, calls):
        if 0 < sizes.get(place, 0) <= left:
            left -= sizes[place]
            found += _picture(outcome, place, rows.rows[place])
    return found


def _wanted(outcome: Outcome, rows: Rows, calls: Calls) -> Iterator[int]:
    """The rows in the order in which they matter, each once."""
    starts = rows.starts
    seen = dict[int, None]()
    for origin in outcome.comparison.origins:
        if (call := calls.find(origin.target, origin.golden)) is not None:
            seen.update(dict.fromkeys(range(starts[call], starts[call + 1])))
            around = slice(max(0, call - _AROUND), min(len(starts) - 1, call + _AROUND + 1))
            seen.update(dict.fromkeys(range(starts[around.start], starts[around.stop])))
    ratios = np.array([error_ratio(row) for row in rows.rows])
    furthest: Sequence[int] = np.argsort(-ratios, kind="stable")[:_FURTHEST].tolist()
    seen.update(dict.fromkeys(place for place in furthest if ratios[place] > 0))
    return iter(seen)


def _elements(row: Row) -> int:
    return element_count(row.golden) if row.golden is not None and row.golden.kind == "tensor" else 0


def _picture(outcome: Outcome, place: int, row: Row) -> Iterator[dict[str, Any]]:
    both = load_both(outcome.target.tensors, outcome.golden.tensors, row)
    if both is None or both[0].shape != both[1].shape or any(array.dtype.kind not in "fiub" for array in both):
        return
    target, golden = both
    shown, found = difference_map(target, golden), study(target, golden, causes=False)
    yield {
        "row": place,
        "shape": list(golden.shape),
        "where": _where(found),
        "map": {
            "rows": shown.tiles.shape[0], "columns": shown.tiles.shape[1], "data": _text(shown.tiles),
            "low": shown.low, "high": shown.high, "of": _axes(golden.ndim),
        },
        **_values(target, golden),
        "worst": [
            [list(each.index), f"{each.target.real:.9g}", f"{each.golden.real:.9g}"]
            for each in found.largest
        ],
    }  # fmt: skip


def _where(found: Study) -> str:
    """How many elements differ, and in which slices of which axes most of the squared error sits."""
    if not found.differing:
        return tr("all {size} elements are equal", size=found.size)
    sits = [
        tr(
            "index {place} of axis {axis} (of {size}) holds {share:.0%} of the squared error",
            place=each.place,
            axis=each.axis,
            size=each.size,
            share=each.share,
        )
        if each.share >= _MOST
        else tr(
            "{holding} of {size} indices of axis {axis} hold 90 % of the squared error",
            holding=each.holding,
            size=each.size,
            axis=each.axis,
        )
        for each in found.axes
        if each.is_concentrated
    ]
    where = tr_join(tr("; "), sits) or tr("in no few slices of any axis")
    return tr("{differing} of {size} elements differ: {where}", differing=found.differing, size=found.size, where=where)


def _values(target: npt.NDArray[Any], golden: npt.NDArray[Any]) -> dict[str, Any]:
    """The scatter, and the histograms at its edges."""
    if (found := scatter(target, golden)) is None:
        return {"scatter": None, "histograms": None}
    within = {"low": found.low, "high": found.high, "linear": found.linear}
    return {
        "scatter": {"size": SIDE, "data": _text(found.counts), **within},
        "histograms": {"target": found.target.tolist(), "golden": found.golden.tolist(), **within},
    }


def _axes(dimensions: int) -> str:
    """Which axes of a tensor run down and to the right in its map."""
    if dimensions < 2:
        return tr("all elements, left to right")
    down = tr("axis 0") if dimensions == 2 else tr("axes 0 to {dimensions}", dimensions=dimensions - 2)
    return tr("{down} downwards, axis {dimensions} to the right", down=down, dimensions=dimensions - 1)


def _text(cells: npt.NDArray[np.uint8]) -> str:
    return b64encode(np.ascontiguousarray(cells).tobytes()).decode("ascii")
