"""Small histories of a step, written down node by node."""

from __future__ import annotations

from msprobe_ms.comparison.model import Origin, Pair, Row
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import parse_entry

#: Deviations in tolerances: rounding, a fault, and what a fault becomes further on.
REST, FAULT, CARRIED = 0.02, 400.0, 60.0
BLOCK = "Cell.layers.0.Block.forward.0"
NEXT = "Cell.layers.1.Block.forward.0"


def node(
    name: str, parent: str | None = None, figures: tuple[float, float] = (3.0, 1.0), size: int = 6, **ratios: float
) -> Pair:
    """A matched pair of entries; ``input_0=400`` is a row whose deviation is 400 tolerances.

    ``figures`` are the target's recorded Max and Norm, by which a tensor is known again. ``size``: elements a row.
    """
    rows = []
    for place, amount in ratios.items():
        state, _, path = place.rpartition("_")
        item = Item(name, state, (path,), kind="tensor", type="mindspore.Tensor", dtype="Float32", shape=(size,),
                    maximum=figures[0], minimum=-1.0, mean=0.1, norm=figures[1])  # fmt: skip
        rows.append(Row(item, item, deviation=amount * 1e-5, tolerance=1e-5))
    entry = Entry(name, parse_entry(name), [row.target for row in rows if row.target], parent)
    return Pair(entry, entry, rows, "name")


def origins(*pairs: Pair) -> list[str]:
    return [origin.target for origin in find_origins(Evidence(pairs))]


def only(*pairs: Pair) -> Origin:
    found = find_origins(Evidence(pairs))
    assert len(found) == 1
    return found[0]
