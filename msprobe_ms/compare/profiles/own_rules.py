"""How our own report judges a row: by its deviation, its tolerance and where the error begins. One reason a row."""

from __future__ import annotations

from msprobe_ms.compare.measure import NOTE
from msprobe_ms.compare.model import Comparison, Origin, Pair, Row
from msprobe_ms.compare.profiles.latest_rules import IGNORED, INPUTS_IGNORED
from msprobe_ms.compare.profiles.wording import differences, remarks
from msprobe_ms.store.model import Item

#: The results, from bad to good.
ORIGIN = "origin"
INHERITED = "inherited"
DIFFERS = "differs"
UNMATCHED = "unmatched"
NOT_JUDGED = "not judged"
NOT_COMPARED = "not compared"
AGREES = "agrees"

_COLOURS = {ORIGIN: "red", INHERITED: "yellow", DIFFERS: "yellow"}

NO_CALL = "The golden has no such call."
NO_VALUE = "The golden's call has no such value."


def judge(comparison: Comparison) -> None:
    """Fill result, reason and colour of every row."""
    origins = {origin.target: origin for origin in comparison.origins}
    for pair in comparison.pairs:
        whole = origins.get(pair.target.name) if origins and pair.target else None
        for row in pair.rows:
            row.result, row.reason = _judged(pair, row, _origin_of(row, origins, whole), comparison.mode)
            row.colour = _COLOURS.get(row.result, "")


def _origin_of(row: Row, origins: dict[str, Origin], whole: Origin | None) -> Origin | None:
    """The origin a row is: it is named itself, or its entry is and the row is one of those that differ there."""
    if not origins or (target := row.target) is None:
        return None
    if whole is not None and row.differs and target.state == whole.state:
        return whole
    return origins.get(target.name)


def _judged(pair: Pair, row: Row, origin: Origin | None, mode: str) -> tuple[str, str]:
    if origin is not None:
        return ORIGIN, f"The error begins here: {origin.reason}"
    target, golden = row.target, row.golden
    if target is None or golden is None:
        return UNMATCHED, NO_VALUE if pair.matched else NO_CALL
    said = remarks(row, target, golden, mode)
    if row.deviation is None:
        return NOT_COMPARED, next(said, "There are no figures to compare.")
    if row.refuted:
        return (
            NOT_JUDGED,
            "The records differ, not the computation: later uses agree, or the parts of this gradient add up.",
        )
    if not row.differs:
        return AGREES, next(said, "")
    reason = next(differences(row, target, golden, mode))
    if row.measured and (note := row.measured.get(NOTE)):
        reason = f"{reason} by its statistics. {note}"
    if _is_ignored(pair, target):
        return NOT_JUDGED, f"{reason}; what this call leaves here is undefined or a mere copy."
    if row.inherited_from:
        return INHERITED, f"{reason}; inherited from {row.inherited_from}."
    return DIFFERS, f"{reason}."


def _is_ignored(pair: Pair, target: Item) -> bool:
    parsed = pair.target.parsed if pair.target else None
    if parsed is None or parsed.is_module:
        return False
    return parsed.name in IGNORED or (parsed.name in INPUTS_IGNORED and target.state == "input")
