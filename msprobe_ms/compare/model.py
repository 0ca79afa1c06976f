"""What flows through compare: paired entries, their rows, what was measured and what was judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msprobe_ms.compare.completeness import is_incomplete, sides_without_values
from msprobe_ms.store.model import Entry, Item

#: Measured values by metric name: numbers, or the fixed tokens of the format (`"N/A"`…).
Metrics = dict[str, float | int | str | None]


@dataclass(slots=True)
class Row:
    """One line of the report: an item of the target beside its golden twin; one of the two may be missing.

    ``metrics``    filled by measure: what the two tensors differ by
    ``deviation``  filled by measure: relative difference of the pair as one number (0 = equal, inf = not comparable
                   in value, e.g. other shape or one-sided NaN); None when there is nothing to compare
    ``tolerance``  the deviation up to which the two are held to agree; None together with ``deviation``
    ``refuted``    filled by the origin finder: the record differs, yet every later use of the tensor agrees; or it is
                   a part of a gradient where the other side recorded the whole
    ``result``     filled by judge: the text of the Result / Accuracy column
    ``reason``     filled by judge: one reason, a person can read it
    ``colour``     filled by judge: "red", "yellow" or ""
    """

    target: Item | None
    golden: Item | None
    metrics: Metrics = field(default_factory=dict)
    deviation: float | None = None
    tolerance: float | None = None
    refuted: bool = False
    result: str = ""
    reason: str = ""
    colour: str = ""

    @property
    def matched(self) -> bool:
        return self.target is not None and self.golden is not None

    @property
    def differs(self) -> bool:
        """Whether the two are further apart than their dtype, size and framework explain."""
        if self.refuted or self.deviation is None or self.tolerance is None:
            return False
        return not self.deviation <= self.tolerance


@dataclass(slots=True)
class Pair:
    """An entry of the target beside its golden twin (one of the two may be missing) with the rows of their items.

    ``how`` names what paired them: ``name``, ``cell``, ``layer``, ``data`` or "" for an unmatched entry.
    """

    target: Entry | None
    golden: Entry | None
    rows: list[Row]
    how: str = ""

    @property
    def matched(self) -> bool:
        return self.target is not None and self.golden is not None


@dataclass(slots=True)
class Origin:
    """A place where error begins: what it takes in agrees, what it gives out does not.

    ``target``/``golden`` are full item or entry names as in dump.json.
    """

    target: str
    golden: str
    state: str
    reason: str
    metrics: Metrics


@dataclass(slots=True)
class Comparison:
    """Everything one run of compare found. ``mode`` is ``statistics``, ``md5`` or ``tensor``."""

    mode: str
    pairs: list[Pair]
    origins: list[Origin] = field(default_factory=list)

    @property
    def rows(self) -> Iterator[Row]:
        return (row for pair in self.pairs for row in pair.rows)

    @property
    def verdict(self) -> str:
        """``divergent``, ``incomplete`` or ``consistent``.

        Divergent where there is an origin of error or nothing has a twin; consistent only when nothing differs and most
        was compared.
        """
        if self.origins:
            return "divergent"
        if sides_without_values(self.pairs):
            return "incomplete"
        if not any(row.matched for row in self.rows):
            return "divergent"
        return "incomplete" if is_incomplete(self.pairs) else "consistent"
