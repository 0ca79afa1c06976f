"""The report of this tool: how it judges rows, and its columns: what a person needs to find the fault.

A row is judged by its deviation, its tolerance and where the error begins; it gets one reason. Columns that mean what a
column of msprobe means bear its title, so that scripts find them; Result comes first, and numbers are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.metrics import (
    ACCUMULATED_RELATIVE,
    MEAN_ABSOLUTE,
    MEAN_RELATIVE,
    METRICS,
    RELATIVE_EUCLIDEAN,
    ROOT_MEAN_SQUARE,
    Metric,
)
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Comparison, Origin, OriginKind, Pair, Row, Said
from msprobe_ms.comparison.pairing.coverage import is_running_statistic
from msprobe_ms.comparison.reporting.colours import OWN_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell, Cells, CodedCells
from msprobe_ms.comparison.reporting.legend import LegendLine, own_legend
from msprobe_ms.comparison.reporting.plain_reasons import PlainReason, reasons_of
from msprobe_ms.comparison.reporting.profiles.base import (
    BENCH_TITLES,
    NPU_TITLES,
    RELATIVE_TITLES,
    Block,
    Column,
    Line,
    Profile,
    SideColumns,
    Values,
    algorithm_columns,
    cells_of,
    column,
    item_name,
)
from msprobe_ms.comparison.reporting.profiles.latest import IGNORED, INPUTS_IGNORED
from msprobe_ms.comparison.reporting.profiles.wording import DEVIATES, deviates, differences, remarks
from msprobe_ms.comparison.row_items import where_sorts
from msprobe_ms.comparison.row_verdicts import Coded
from msprobe_ms.comparison.statistics import RELATIVES, STATISTICS
from msprobe_ms.comparison.terms import Mode, PairedBy, RowColour
from msprobe_ms.dump.columns import Sort
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import FORWARD, beginnings
from msprobe_ms.support.translation import tr

#: The results, from bad to good.
ORIGIN = "origin"
INHERITED = "inherited"
RANDOM = "random"
DIFFERS = "differs"
UNMATCHED = "unmatched"
NOT_JUDGED = "not judged"
NOT_COMPARED = "not compared"
AGREES = "agrees"

RESULTS = (ORIGIN, INHERITED, DIFFERS, RANDOM, UNMATCHED, NOT_JUDGED, NOT_COMPARED, AGREES)

_COLOURS = {ORIGIN: RowColour.RED, INHERITED: RowColour.YELLOW, DIFFERS: RowColour.YELLOW}

NO_SUM = tr("This gradient is the sum of the gradients of several modules, which cannot be computed from statistics.")
NO_FIGURES = tr("There are no statistics to compare.")
UNREAD = tr("It was recorded, but its figures, dtype or shape cannot be compared.")
SAID_ALONE = tr("The layer mapping says that it has no counterpart.")
NO_CALL = tr("The golden has no such call.")
ELSEWHERE = tr("The other side has no such call; its results are compared in rows of other calls.")
#: Of calls without a counterpart, by what pairing says of them.
_ALONE = {PairedBy.UNMATCHED: SAID_ALONE, PairedBy.ELSEWHERE: ELSEWHERE}
NO_VALUE = tr("The golden's call has no such value.")
LATER_AGREE = tr("later uses of it agree")
GRADIENT_AGREES = tr("{later_agree}, or the two dumps record other parts of this gradient", later_agree=LATER_AGREE)
NO_STATISTIC = tr("The golden's module has no such running statistic in its dump: buffers are not recorded.")
_INHERITED_FROM = tr(
    "It deviates by {deviation:.3g} of its size, beyond the tolerance {held_to:.3g}, inherited from {inherited_from}."
)
PASSED_ON = tr("The other side has no such value: it computes in one call what this side computes in several.")


def judge(comparison: Comparison) -> None:
    """Fill result, reason and colour of every row."""
    origins = {origin.target: origin for origin in (*comparison.random, *comparison.origins)}
    named = {beginning for name in origins for beginning in beginnings(name)}
    plainly = _plain_rows(comparison)
    differing = iter(comparison.deviations.differs.tolist())
    for pair in comparison.pairs:
        is_named = pair.target is not None and pair.target.name in named
        whole = origins.get(pair.target.name) if is_named and pair.target else None
        for row, plain, differs in zip(pair.rows, plainly, differing, strict=False):
            if plain and not is_named:
                row.said = _PLAINLY_SAID[_difference(pair, row)] if differs else _AGREES
            else:
                target = row.target
                origin = _origin_of(row, target, origins, whole) if is_named else None
                row.said = _said(*_judged(pair, row, target, origin, comparison.mode))


def _said(result: str, reason: str | Callable[[Row], str] = "") -> Said:
    return Said(result, reason, _COLOURS.get(result, RowColour.NONE))


_AGREES = _said(AGREES)


def _plain_rows(comparison: Comparison) -> Iterator[bool]:
    """Of each row whether nothing is to be said but how far apart the two are, by finite figures.

    It is of most, by what the dumps' columns hold.
    """
    if comparison.mode != Mode.STATISTICS:
        return repeat(False)
    target, golden = comparison.sides
    deviations = comparison.deviations
    compared = deviations.known & (deviations.values != np.inf) & ~deviations.misrecorded
    # Where their distance is finite, the golden holds no NaN or infinity if the target does not.
    plain = where_sorts(comparison.sides, _alike) & compared & target.regular & golden.regular
    return iter((plain & ~target.non_finite).tolist())


def _alike(mine: Sort, theirs: Sort) -> bool:
    """Whether two tensors of these sorts have one dtype, shape and word on requires_grad, and elements at all."""
    return (
        parse_dtype(mine[2]) == parse_dtype(theirs[2])
        and mine[3] == theirs[3]
        and not (isinstance(mine[3], tuple) and 0 in mine[3])
        and (None in (mine[4], theirs[4]) or mine[4] == theirs[4])
    )


def _origin_of(row: Row, target: Item | None, origins: dict[str, Origin], whole: Origin | None) -> Origin | None:
    """The origin a row is: it is named itself, or its entry is and the row is one of those that differ there."""
    if target is None:
        return None
    if whole is not None and row.differs and target.state == whole.state:
        return whole
    return origins.get(target.name)


def _judged(pair: Pair, row: Row, target: Item | None, origin: Origin | None, mode: Mode) -> tuple[str, str]:
    if origin is not None and origin.kind == OriginKind.RANDOM:
        return RANDOM, tr("Random numbers: {reason}", reason=origin.reason)
    if origin is not None:
        return ORIGIN, tr("The error begins here: {reason}", reason=origin.reason)
    golden = row.golden
    if target is None or golden is None:
        if pair.how == PairedBy.GROUP and target is not None and target.kind == "tensor":
            return UNMATCHED, PASSED_ON
        if pair.matched and is_running_statistic(row):
            return UNMATCHED, NO_STATISTIC
        return UNMATCHED, NO_VALUE if pair.matched else _ALONE.get(pair.how, NO_CALL)
    said = remarks(row, target, golden, mode)
    if row.deviation is None:
        return NOT_COMPARED, next(said, NO_SUM if pair.fused else UNREAD if row.unread else NO_FIGURES)
    if not row.differs and not row.misrecorded:
        return (NOT_COMPARED, UNREAD) if row.unread else (AGREES, next(said, ""))
    reason = next(differences(row, target, golden, mode))
    if row.misrecorded:
        return NOT_JUDGED, tr(
            "{reason}; {agree}.", reason=reason, agree=LATER_AGREE if _is_forward(pair) else GRADIENT_AGREES
        )
    if row.measured and (note := row.measured.get(NOTE)):
        reason = tr("{reason} by its statistics. {note}", reason=reason, note=note)
    return _differing(pair, row, reason)


def _differing(pair: Pair, row: Row, reason: str) -> tuple[str, str]:
    """The result of a row that differs and is no origin, and the reason in full."""
    result, in_full = _difference(pair, row)
    return result, in_full(row, reason)


def _difference(pair: Pair, row: Row) -> tuple[str, Callable[[Row, str], str]]:
    """The result of a row that differs and is no origin, and what makes the reason in full of why it differs."""
    if _is_ignored(pair, row):
        return NOT_JUDGED, _ignored
    if row.inherited_from and pair.target is not None and row.inherited_from == pair.target.name:
        return INHERITED, _from_this_call
    return (INHERITED, _inherited) if row.inherited_from else (DIFFERS, _differs)


def _ignored(row: Row, reason: str) -> str:
    return tr("{reason}; what this call leaves here is undefined or a mere copy.", reason=reason)


def _from_this_call(row: Row, reason: str) -> str:
    return tr("{reason}, as the error begins in this call.", reason=reason)


def _inherited(row: Row, reason: str) -> str:
    return tr("{reason}, inherited from {inherited_from}.", reason=reason, inherited_from=row.inherited_from)


def _differs(row: Row, reason: str) -> str:
    return tr("{reason}.", reason=reason)


def _plainly(in_full: Callable[[Row, str], str], row: Row) -> str:
    return in_full(row, deviates(row))


def _plainly_inherited(row: Row) -> str:
    """What most of all reasons say, in one message instead of two."""
    return tr(str(_INHERITED_FROM), deviation=row.deviation, held_to=row.held_to, inherited_from=row.inherited_from)


#: The same of a row of which there is no more to say than how far apart it is.
_PLAINLY: Mapping[Callable[[Row, str], str], PlainReason] = {
    **{
        each: PlainReason(partial(_plainly, each), str(each(Row(None, None), DEVIATES)))
        for each in (_ignored, _from_this_call, _differs)
    },
    _inherited: PlainReason(_plainly_inherited, _INHERITED_FROM),
}


#: What is said of such rows, once for all.
_PLAINLY_SAID = {
    (result, in_full): _said(result, reason)
    for in_full, reason in _PLAINLY.items()
    for result in (NOT_JUDGED, INHERITED, DIFFERS)
}


def _is_forward(pair: Pair) -> bool:
    parsed = pair.target.parsed if pair.target else None
    return parsed is not None and parsed.direction == FORWARD


def _is_ignored(pair: Pair, row: Row) -> bool:
    parsed = pair.target.parsed if pair.target else None
    if parsed is None or parsed.is_module:
        return False
    return parsed.name in IGNORED or (parsed.name in INPUTS_IGNORED and row.state == "input")


@dataclass(frozen=True)
class Own(Profile):
    """The report of this tool. Its thresholds are ``Tolerances``: what was measured against them decides."""

    name: str = "own"
    colours: ClassVar[Mapping[RowColour, str]] = OWN_ROWS
    more_metrics: bool = True
    algorithms: tuple[Algorithm, ...] = ()

    def columns(self, mode: Mode, *, stack: bool) -> list[Column]:
        middle = {Mode.MD5: _CHECKSUMS, Mode.TENSOR: _METRICS, Mode.STATISTICS: _RELATIVES}[mode]
        stacks = (column("Call Site", _call_site),) if stack else ()
        files = _FILES if mode == Mode.TENSOR else ()
        own = algorithm_columns(self.algorithms, mode)
        return [*_VERDICT, *_BASIC, *middle, *own, *_STATISTICS, *_GRADIENTS, *stacks, *files]

    def legend(self, titles: Sequence[str]) -> Iterator[LegendLine]:
        yield from own_legend(titles)

    def judge(self, comparison: Comparison) -> None:
        judge(comparison)


Read = Callable[[Block], Cells]


def _of_sides(read: Callable[[SideColumns], Values | CodedCells]) -> tuple[Read, Read]:
    """The cells of the target's column and of the golden's."""
    return lambda block: cells_of(read(block.columns.target)), lambda block: cells_of(read(block.columns.golden))


def _of_items(read: Callable[[Item], object]) -> tuple[Read, Read]:
    return _of_sides(lambda side: side.read(read))


def _statistic(name: str) -> Callable[[SideColumns], Values]:
    return lambda side: side.statistics[name]


def _relative(metric: str) -> Read:
    return lambda block: cells_of(block.columns.relatives[metric])


def _of_metric(metric: str) -> Read:
    return lambda block: cells_of([(line.row.measured or {}).get(metric) for line in block])


def _names(block: Block, side: SideColumns) -> Cells:
    mode = block.comparison.mode
    if mode == Mode.TENSOR:  # where the names of files count
        return cells_of(side.read(lambda item: item_name(item, mode)))
    return cells_of(side.names)


def _said_of(block: Block, said: Coded, nothing: Cell) -> Cells:
    codes, used = np.unique(said.codes[block.places], return_inverse=True)
    return CodedCells(used, [said.values[code] if code else nothing for code in codes.tolist()])


def _reasons(block: Block) -> Cells:
    return [reason or None for reason in reasons_of(block.comparison, block.places)]


def _deviations(block: Block) -> Cells:
    deviations = block.comparison.deviations
    return _figures(deviations.values[block.places], ~deviations.known[block.places])


def _tolerances(block: Block) -> Cells:
    bounds = block.comparison.deviations.held_to[block.places]
    return _figures(bounds, np.isnan(bounds))


def _figures(values: npt.NDArray[np.float64], missing: npt.NDArray[np.bool_]) -> Cells:
    if not missing.any():
        return cells_of(values)
    return cells_of(
        [None if nothing else value for value, nothing in zip(values.tolist(), missing.tolist(), strict=True)]
    )


def _call_site(line: Line) -> Cell:
    return "\n".join(" ".join(frame.split()) for frame in line.stack) if line.stack else None


def _pairs(titles: Iterable[str], cells: Iterable[tuple[Read, Read]]) -> tuple[Column, ...]:
    """Columns of the target and the golden, by their common title."""
    return tuple(
        Column(f"{prefix} {title}", each)
        for title, both in zip(titles, cells, strict=True)
        for prefix, each in zip(("NPU", "Bench"), both, strict=True)
    )


_VERDICT = (
    Column("NPU Name", lambda block: _names(block, block.columns.target)),
    Column("Bench Name", lambda block: _names(block, block.columns.golden)),
    Column("Result", lambda block: _said_of(block, block.comparison.verdicts.results, "")),
    Column("Reason", _reasons),
    Column("Inherited From", lambda block: _said_of(block, block.comparison.verdicts.inherited, None)),
    Column("Explained By", lambda block: _said_of(block, block.comparison.verdicts.explained, None)),
    Column("Deviation", _deviations),
    Column("Tolerance", _tolerances),
)

_BASIC = _pairs(
    ("Dtype", "Tensor Shape"),
    (_of_sides(attrgetter("dtypes")), _of_sides(attrgetter("shapes"))),
)

#: The statistics stand side by side, so only their relative differences have columns.
_RELATIVES = tuple(map(Column, RELATIVE_TITLES, map(_relative, RELATIVES)))

#: Metrics of this report alone that come first; further ones follow in the order of ``METRICS``.
_FIRST = (RELATIVE_EUCLIDEAN, ACCUMULATED_RELATIVE, MEAN_RELATIVE, MEAN_ABSOLUTE, ROOT_MEAN_SQUARE)


def _order(metric: Metric) -> tuple[bool, int]:
    return not metric.msprobe, _FIRST.index(metric.name) if metric.name in _FIRST else len(_FIRST)


_METRICS = tuple(Column(metric.title, _of_metric(metric.name)) for metric in sorted(METRICS, key=_order))

_CHECKSUMS = _pairs(("MD5",), (_of_items(attrgetter("md5")),))
# The table of msprobe has its second title in capitals.
_CHECKSUMS = (_CHECKSUMS[0], _CHECKSUMS[1]._replace(title="BENCH MD5"))

_OF_STATISTICS = [_of_sides(_statistic(name)) for name in STATISTICS]
_STATISTICS = (
    *(Column(title, target) for title, (target, _) in zip(NPU_TITLES, _OF_STATISTICS, strict=True)),
    *(Column(title, golden) for title, (_, golden) in zip(BENCH_TITLES, _OF_STATISTICS, strict=True)),
)

_GRADIENTS = _pairs(("Requires_grad",), (_of_sides(attrgetter("requires_grad")),))

_FILES = _pairs(("Data_name",), (_of_items(attrgetter("data_name")),))
