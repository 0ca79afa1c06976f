"""Small histories of a step, written down node by node."""

from __future__ import annotations

import re

from msprobe_ms.comparison.model import Origin, Pair, Row
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.origin.sentences import LONGEST_SENTENCE
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import parse_entry

#: Deviations in tolerances: rounding, a fault, and what a fault becomes further on.
REST, FAULT, CARRIED = 0.02, 400.0, 60.0
BLOCK = "Cell.layers.0.Block.forward.0"
NEXT = "Cell.layers.1.Block.forward.0"
_ENTRY = re.compile(r"\b[A-Z]\w+\.[\w.\[\]]+\.(forward|backward|parameters_grad)[\w.]*")


def node(
    name: str,
    parent: str | None = None,
    figures: tuple[float, float] = (3.0, 1.0),
    size: int | tuple[int, ...] = 6,
    given: tuple[float, float] | None = None,
    **ratios: float,
) -> Pair:
    """A matched pair of entries; ``input_0=400`` is a row whose deviation is 400 tolerances.

    ``figures`` are the target's recorded Max and Norm, by which a tensor is known again; ``given`` those of
    its results, where it does not pass on what it takes in. ``size``: elements a row, or the shape.
    """
    rows, shape = [], size if isinstance(size, tuple) else (size,)
    for place, amount in ratios.items():
        state, _, path = place.rpartition("_")
        maximum, norm = given if given is not None and state != "input" else figures
        item = Item(name, state, (path,), kind="tensor", type="mindspore.Tensor", dtype="Float32", shape=shape,
                    maximum=maximum, minimum=-1.0, mean=0.1, norm=norm)  # fmt: skip
        rows.append(Row(item, item, deviation=amount * 1e-5, tolerance=1e-5))
    entry = Entry(name, parse_entry(name), [row.target for row in rows if row.target], parent)
    return Pair(entry, entry, rows, "name")


def origins(*pairs: Pair) -> list[str]:
    return [origin.target for origin in found_origins(*pairs)]


def only(*pairs: Pair) -> Origin:
    (found,) = found_origins(*pairs)
    return found


def found_origins(*pairs: Pair) -> list[Origin]:
    """The origins, each told in sentences that a line has room for."""
    found = find_origins(Evidence(pairs))
    for origin in found:
        assert_short(origin)
    return found


def assert_short(origin: Origin) -> None:
    """A reason of one sentence, then details; names of entries do not count."""
    assert origin.reason and all(origin.details) and not isinstance(origin.details, str)
    for sentence in (origin.reason, *origin.details):
        assert len(_ENTRY.sub("", sentence)) <= LONGEST_SENTENCE, sentence
        assert not sentence.endswith((".", " ")) and "; ; " not in sentence and "figures" not in sentence
        assert "twin" not in sentence and "\n" not in sentence
