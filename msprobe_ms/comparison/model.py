"""What flows through compare: paired entries, their rows, what was measured and what was judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.row_deviations import RowDeviations, deviations_of
from msprobe_ms.comparison.row_items import RowItems, items_of
from msprobe_ms.comparison.row_verdicts import RowVerdicts, verdicts_of
from msprobe_ms.comparison.statistics import Metrics, statistic_metrics
from msprobe_ms.comparison.terms import TARGET, Effect, Mode, PairedBy, RowColour, Side, Stage, Verdict
from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import is_fused

__all__ = ["Allowance", "Comparison", "Effect", "Metrics", "Origin", "OriginKind", "Outcome", "Pair", "Row", "Tables"]

#: The columns of the two dumps, target and golden, that rows point into.
Tables = tuple[ItemTable, ItemTable]


class Allowance(NamedTuple):
    """How far one explanation lets a value be apart.

    ``by``       name of the explanation
    ``up_to``    deviation that it explains; infinity: any deviation
    ``because``  what to say of it where it is an origin: its reason, then details
    """

    by: str
    up_to: float = math.inf
    because: Sequence[str] = ()
    effect: Effect = Effect.PASSES


class Said(NamedTuple):
    """What is said of a row: the text of the Result column, the reason, or what makes it of a row, and the colour.

    Many rows share one: of a million each slot takes 8 MB.
    """

    result: str = ""
    reason: str | Callable[[Row], str] = ""
    colour: RowColour = RowColour.NONE


_NOTHING_SAID = Said()


class Row:
    """One line of the report: an item of the target beside its golden counterpart; one of the two may be missing.

    Each is given as an item, or as its number in ``tables``; then the item is made when it is asked for, so that a
    million rows fit into memory.

    ``state``      what the target's item is to its call, else the golden's
    ``measured``   filled by measure: metrics of real data, and notes; None where there are none
    ``deviation``  filled by measure: relative difference of the pair as one number (0 = equal, inf = not comparable
                   in value, e.g. other shape or one-sided NaN); None when there is nothing to compare
    ``tolerance``  the deviation up to which the two are held to agree; None together with ``deviation``
    ``unread``     filled by measure: of two tensors something recorded could not be compared, as it is no figure, dtype
                   or shape, in a file that could not be read, or on one side alone
    ``explained``  filled by the origin finder: what lets the row pass though it is beyond its tolerance, or holds it to
                   less than that; None for neither
    ``inherited_from``  filled by the origin finder: the name of the entry where the row's difference began; "" where it
                   does not differ, begins here or came by drift
    ``said``       filled by judge: ``result``, ``reason``, which a person can read, and ``colour``
    """

    __slots__ = (
        "_golden", "_measured", "_tables", "_target", "deviation", "explained", "inherited_from", "said", "state",
        "tolerance",
    )  # fmt: skip

    def __init__(
        self,
        target: Item | int | None,
        golden: Item | int | None,
        measured: Metrics | None = None,
        deviation: float | None = None,
        tolerance: float | None = None,
        *,
        tables: Tables | None = None,
        state: str | None = None,
    ) -> None:
        self._target, self._golden, self._tables = target, golden, tables
        self.state = self._state() if state is None else state
        #: Within a tuple where the row is unread, as few are.
        self._measured: Metrics | tuple[Metrics | None] | None = measured
        self.deviation, self.tolerance = deviation, tolerance
        self.explained: Allowance | None = None
        self.inherited_from = ""
        self.said = _NOTHING_SAID

    @property
    def measured(self) -> Metrics | None:
        measured = self._measured
        return measured[0] if isinstance(measured, tuple) else measured

    @measured.setter
    def measured(self, measured: Metrics | None) -> None:
        self._measured = (measured,) if self.unread else measured

    @property
    def unread(self) -> bool:
        return type(self._measured) is tuple

    @unread.setter
    def unread(self, unread: bool) -> None:
        if unread is not self.unread:
            measured = self.measured
            self._measured = (measured,) if unread else measured

    @property
    def result(self) -> str:
        return self.said.result

    @result.setter
    def result(self, result: str) -> None:
        self.said = self.said._replace(result=result)

    @property
    def reason(self) -> str:
        reason = self.said.reason
        return reason if isinstance(reason, str) else reason(self)

    @reason.setter
    def reason(self, reason: str) -> None:
        self.said = self.said._replace(reason=reason)

    @property
    def colour(self) -> RowColour:
        return self.said.colour

    @colour.setter
    def colour(self, colour: RowColour) -> None:
        self.said = self.said._replace(colour=colour)

    @property
    def target(self) -> Item | None:
        place = self._target
        return self._tables[0].item(place) if type(place) is int else place  # type: ignore[index,return-value]

    @property
    def golden(self) -> Item | None:
        place = self._golden
        return self._tables[1].item(place) if type(place) is int else place  # type: ignore[index,return-value]

    @property
    def places(self) -> tuple[Item | int | None, Item | int | None, Tables | None]:
        """The items of target and golden as they were given, and the tables that their numbers are of."""
        return self._target, self._golden, self._tables

    @property
    def numbers(self) -> tuple[Tables, int, int] | None:
        """The columns of both sides and the numbers of the two items in them; None where one is given otherwise."""
        if self._tables is not None and type(self._target) is int and type(self._golden) is int:
            return self._tables, self._target, self._golden
        return None

    def floats_in(self, tables: Tables) -> tuple[int, int] | None:
        """The numbers of the two items in these tables, where both are tensors with four statistics that are floats."""
        owners, ours, theirs = self._tables, self._target, self._golden
        if owners is None or type(ours) is not int or type(theirs) is not int:
            return None
        if owners[0] is not tables[0] or owners[1] is not tables[1]:
            return None
        return None if ours in tables[0].irregular or theirs in tables[1].irregular else (ours, theirs)

    def stored(self, side: Side) -> tuple[ItemTable, int] | None:
        """The columns of one side, and the number of its item there; None where it is not there."""
        place = self._target if side is TARGET else self._golden
        return (self._tables[side], place) if type(place) is int else None  # type: ignore[index]

    def extremes(self, side: Side) -> tuple[Statistic, Statistic] | None:
        """Max and Min of the item of one side, which need not be made for it; None where it is not there."""
        place = self._target if side is TARGET else self._golden
        if type(place) is int:
            return self._tables[side].extremes(place)  # type: ignore[index]
        return None if place is None else (place.maximum, place.minimum)  # type: ignore[union-attr]

    def is_tensor(self, side: Side) -> bool:
        """Whether one side has an item that is a tensor."""
        if (stored := self.stored(side)) is not None:
            return stored[0].sort(stored[1])[0] == "tensor"
        item = self.target if side is TARGET else self.golden
        return item is not None and item.kind == "tensor"

    def _state(self) -> str:
        for side, place in enumerate((self._target, self._golden)):
            if place is not None:
                return self._tables[side].state(place) if type(place) is int else place.state  # type: ignore
        return ""

    @property
    def metrics(self) -> Metrics:
        """Everything measured by name: the differences of the statistics and, of real data, the tensors' metrics."""
        target, golden = self.target, self.golden
        metrics = statistic_metrics(target, golden) if target is not None and golden is not None else {}
        if self.measured:
            metrics.update(self.measured)
        return metrics

    @property
    def in_target(self) -> bool:
        return self._target is not None

    @property
    def in_golden(self) -> bool:
        return self._golden is not None

    @property
    def matched(self) -> bool:
        return self._target is not None and self._golden is not None

    @property
    def held_to(self) -> float | None:
        """The deviation up to which the two are held to agree: the tolerance, or the less that is explained."""
        explained = self.explained
        return explained.up_to if explained is not None and explained.effect is Effect.HOLDS else self.tolerance

    @property
    def explained_by(self) -> str:
        """What let the row pass though it is beyond its tolerance; "" for nothing."""
        explained = self.explained
        return explained.by if explained is not None and explained.effect is not Effect.HOLDS else ""

    @property
    def misrecorded(self) -> bool:
        """Whether the record alone differs: later uses of the tensor agree, or the sides record other gradients."""
        return self.explained is not None and self.explained.effect is Effect.NO_ERROR

    @property
    def differs(self) -> bool:
        """Whether the two are further apart than their dtype, size and framework explain."""
        if self.deviation is None or self.tolerance is None:
            return False
        explained = self.explained
        if explained is None:
            return not self.deviation <= self.tolerance
        return explained.effect is not Effect.NO_ERROR and not self.deviation <= (self.held_to or 0.0)


@dataclass(slots=True)
class Pair:
    """An entry of the target beside its golden counterpart (one of the two may be missing), with rows of their items.

    ``how`` names what paired them. In a ``group`` several entries of one side are one of the other together: rows hold
    items of all of them, the pair names the last of their forward calls.

    ``taken``, ``given``  filled by the origin finder: the largest error ratio of all that explains what it gives out,
    and of what it gives out
    """

    target: Entry | None
    golden: Entry | None
    rows: list[Row]
    how: PairedBy = PairedBy.NOTHING
    taken: float = 0.0
    given: float = 0.0

    @property
    def matched(self) -> bool:
        return self.target is not None and self.golden is not None

    @property
    def fused(self) -> bool:
        """Whether one of the two was made of several modules (see ``joining``)."""
        if self.target is None or self.golden is None:
            return False
        return is_fused(self.target.name) or is_fused(self.golden.name)


class OriginKind(str, Enum):
    """What an origin of error is; files and tables hold the text.

    ``OUTSIDE``     it arrives from code that was not recorded
    ``PRECISION``   a dtype of another width
    ``COLLECTIVE``  another rank's share differs
    ``RANDOM``      random numbers, nobody's fault
    ``UPDATE``      the optimizer, in the step before
    ``NOT_COMPARED``  a call without a counterpart, behind which the first origin shows
    """

    COMPUTATION = "computation"
    PARAMETER = "parameter"
    OUTSIDE = "outside"
    PRECISION = "precision"
    COLLECTIVE = "collective"
    RANDOM = "random"
    DRIFT = "drift"
    MISSING_GRADIENT = "missing gradient"
    UPDATE = "update"
    NOT_COMPARED = "not compared"

    __str__ = str.__str__


@dataclass(slots=True)
class Origin:
    """A place where error begins: what it takes in agrees, what it gives out does not.

    ``target``/``golden``    full item or entry names as in dump.json; ``golden`` is "" of a call without a counterpart
    ``reason``               one sentence of at most 160 characters: what differs, and the one thing to do
    ``details``              further findings, a sentence each, the most useful first
    ``stage``                the part of the training step it lies in; None where that is not known
    ``required_tolerance``   the least bound on the deviation with which this would have been held to agree; None where
                             nothing could be measured
    """

    target: str
    golden: str
    state: str
    reason: str
    metrics: Metrics
    kind: OriginKind = OriginKind.COMPUTATION
    required_tolerance: float | None = None
    details: Sequence[str] = ()
    stage: Stage | None = None


@dataclass(frozen=True)
class Shares:
    """Parts of two dumps that were paired.

    ``modules``, ``calls``  how many of how many; None where a side recorded none
    ``target``, ``golden``  paths of the modules without a counterpart, by the side that has them
    ``elsewhere``   paths of the modules that were compared by their outputs only, of the target and of the golden
    ``functions``   calls of functions without a counterpart, of the target and of the golden, if functions are counted
    """

    modules: tuple[int, int] | None = None
    calls: tuple[int, int] | None = None
    target: Sequence[str] = ()
    golden: Sequence[str] = ()
    elsewhere: tuple[Sequence[str], Sequence[str]] = ((), ())
    functions: tuple[Sequence[str], Sequence[str]] = ((), ())


@dataclass(frozen=True)
class Mapped:
    """What paired modules whose names differ, and what may pair those that are left.

    ``files``     the mapping files that were given
    ``found``     whether a mapping was found from the dumps (``-lm`` without a file)
    ``proposed``  lines of a layer mapping that pair modules which have no counterpart on either side
    """

    files: Sequence[str] = ()
    found: bool = False
    proposed: Sequence[str] = ()


@dataclass
class Comparison:
    """Everything one run of compare found; its pairs are measured and stay as they are.

    ``random``   random operations whose results differ: what follows them cannot be told
    ``damage``   why one of the dumps, or both, is not whole; of what it lacks nothing can be told
    ``ends``     where one of them ends before the other does, in a sentence each
    ``far_apart``  how many inputs of calls lie further apart than any drift; 0 where an origin is known
    ``growth``   where error grows most, in words, if inputs lie far apart and nothing is the origin; else ""
    ``shares``   how much was paired
    ``mapped``   what paired modules of other names
    ``asked``    what each explanation that was asked of a row allowed, of the first rows beyond their tolerance
    ``updated``  whether the parameters have been through updates, so that errors of earlier steps may show
    ``earlier``  whether both sides recorded steps before this one
    ``inherits`` the earlier step whose error this one inherits, where it is known that there is one; else None
    ``verdict``  ``divergent``, ``incomplete`` or ``consistent``, once it was judged
    """

    mode: Mode
    pairs: list[Pair]
    origins: list[Origin] = field(default_factory=list)
    random: list[Origin] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    far_apart: int = 0
    growth: str = ""
    shares: Shares = Shares()
    mapped: Mapped = Mapped()
    asked: Mapping[Row, list[tuple[str, Allowance | None]]] = field(default_factory=dict)
    updated: bool = False
    earlier: bool = False
    inherits: int | None = None
    verdict: Verdict = Verdict.UNJUDGED

    @cached_property
    def rows(self) -> Sequence[Row]:
        return [row for pair in self.pairs for row in pair.rows]

    @cached_property
    def sides(self) -> tuple[RowItems, RowItems]:
        """The items of target and golden, a place for each row."""
        return items_of(self.rows)

    @cached_property
    def deviations(self) -> RowDeviations:
        """How far the rows are apart, a place for each."""
        return deviations_of(self.rows)

    @cached_property
    def verdicts(self) -> RowVerdicts:
        """What was said of the rows, a place for each, once they were judged."""
        return verdicts_of(self.rows)

    @cached_property
    def alone(self) -> tuple[int, int]:
        """How many rows have no counterpart: of the target, and of the golden."""
        target, golden = (int(np.count_nonzero(~side.present)) for side in self.sides)
        return golden, target

    @cached_property
    def measured(self) -> Sequence[Row]:
        """Rows of which more was measured than how far apart they are; none where no tensors were read."""
        return [row for row in self.rows if row.measured] if self.mode == Mode.TENSOR else ()

    @cached_property
    def unread(self) -> Sequence[Row]:
        """Rows of which something that was recorded could not be compared."""
        return [row for row in self.rows if row.unread]


@dataclass(frozen=True)
class Outcome:
    """One comparison and the files that tell of it; ``facts``: what was compared and what not, once it was said."""

    title: str
    target: Dump
    golden: Dump
    comparison: Comparison
    files: list[Path]
    facts: Sequence[str] | None = None
