"""How our own report judges a row: by its deviation, its tolerance and where the error begins. One reason a row."""

from __future__ import annotations

import math

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Comparison, Origin, Pair, Row
from msprobe_ms.comparison.pairing.rules.layer import NOWHERE
from msprobe_ms.comparison.pairing.running_statistics import is_running_statistic
from msprobe_ms.comparison.reporting.profiles.latest_rules import IGNORED, INPUTS_IGNORED
from msprobe_ms.comparison.reporting.profiles.wording import deviates, differences, remarks
from msprobe_ms.dump.columns import Sort
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import FORWARD, beginnings

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

_COLOURS = {ORIGIN: "red", INHERITED: "yellow", DIFFERS: "yellow"}

NO_SUM = "This gradient is the sum of what several modules hand back, which their figures do not tell."
SAID_ALONE = "The layer mapping says that it has no twin."
NO_CALL = "The golden has no such call."
NO_VALUE = "The golden's call has no such value."
LATER_AGREE = "later uses of it agree"
GRADIENT_AGREES = f"{LATER_AGREE}, or the two dumps record other parts of this gradient"
NO_STATISTIC = "The golden's module has no such running statistic in its dump: buffers are not recorded."
PASSED_ON = "It only passes from call to call inside of what is one call of the other side."


def judge(comparison: Comparison) -> None:
    """Fill result, reason and colour of every row."""
    origins = {origin.target: origin for origin in (*comparison.random, *comparison.origins)}
    named = {beginning for name in origins for beginning in beginnings(name)}
    plain = _Plain(comparison.mode)
    for pair in comparison.pairs:
        is_named = pair.target is not None and pair.target.name in named
        whole = origins.get(pair.target.name) if is_named and pair.target else None
        for row in pair.rows:
            if not is_named and plain.is_(row):
                row.result, row.reason = _differing(pair, row, deviates(row)) if row.differs else (AGREES, "")
            else:
                target = row.target
                origin = _origin_of(row, target, origins, whole) if is_named else None
                row.result, row.reason = _judged(pair, row, target, origin, comparison.mode)
            row.colour = _COLOURS.get(row.result, "")


class _Plain:
    """Which rows nothing is to be said of but how far apart they are, by what the dumps' columns hold: most of all."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._sorts: dict[tuple[int, int], bool] = {}

    def is_(self, row: Row) -> bool:
        if row.deviation is None or row.deviation == math.inf or row.misrecorded or row.measured:
            return False
        if self._mode != "statistics" or (numbers := row.numbers) is None:
            return False
        (ours, theirs), number, golden = numbers
        if number in ours.odd or golden in theirs.odd:
            return False
        key = ours.sorts[number], theirs.sorts[golden]
        if key not in self._sorts:
            self._sorts[key] = _alike(ours.sort(number), theirs.sort(golden))
        # Where their distance is finite, the golden holds no NaN or infinity if the target does not.
        return self._sorts[key] and all(map(math.isfinite, ours.figures[4 * number : 4 * number + 2]))


def _alike(mine: Sort, theirs: Sort) -> bool:
    """Whether two tensors of these sorts have one dtype and one word on requires_grad, and elements at all."""
    return (
        parse_dtype(mine[2]) == parse_dtype(theirs[2])
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


def _judged(pair: Pair, row: Row, target: Item | None, origin: Origin | None, mode: str) -> tuple[str, str]:
    if origin is not None and origin.kind == "random":
        return RANDOM, f"Random numbers: {origin.reason}"
    if origin is not None:
        return ORIGIN, f"The error begins here: {origin.reason}"
    golden = row.golden
    if target is None or golden is None:
        if pair.how == "group" and target is not None and target.kind == "tensor":
            return UNMATCHED, PASSED_ON
        if pair.matched and is_running_statistic(row):
            return UNMATCHED, NO_STATISTIC
        return UNMATCHED, NO_VALUE if pair.matched else SAID_ALONE if pair.how == NOWHERE else NO_CALL
    said = remarks(row, target, golden, mode)
    if row.deviation is None:
        return NOT_COMPARED, next(said, NO_SUM if pair.fused else "There are no figures to compare.")
    if not row.differs and not row.misrecorded:
        return AGREES, next(said, "")
    reason = next(differences(row, target, golden, mode))
    if row.misrecorded:
        return NOT_JUDGED, f"{reason}; {LATER_AGREE if _is_forward(pair) else GRADIENT_AGREES}."
    if row.measured and (note := row.measured.get(NOTE)):
        reason = f"{reason} by its statistics. {note}"
    return _differing(pair, row, reason)


def _differing(pair: Pair, row: Row, reason: str) -> tuple[str, str]:
    """The result of a row that differs and is no origin, and the reason in full."""
    if _is_ignored(pair, row):
        return NOT_JUDGED, f"{reason}; what this call leaves here is undefined or a mere copy."
    if row.inherited_from:
        return INHERITED, f"{reason}, inherited from {row.inherited_from}."
    return DIFFERS, f"{reason}."


def _is_forward(pair: Pair) -> bool:
    parsed = pair.target.parsed if pair.target else None
    return parsed is not None and parsed.direction == FORWARD


def _is_ignored(pair: Pair, row: Row) -> bool:
    parsed = pair.target.parsed if pair.target else None
    if parsed is None or parsed.is_module:
        return False
    return parsed.name in IGNORED or (parsed.name in INPUTS_IGNORED and row.state == "input")
