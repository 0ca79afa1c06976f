"""What a proof comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from msprobe_ms.accuracy.proof.trial import Trial


class Finding(str, Enum):
    """Which side is wrong, and by what; files hold the text.

    ``RIGHT``      the target's call is right, and so is the golden's
    ``INPUT``      it is right: what it takes in differs already
    ``GOLDEN``     it is right, and the golden's call is wrong
    ``SETTING``    an argument, attribute or option differs
    ``PARAMETER``  a parameter differs
    ``EXCHANGED``  two arguments are exchanged
    ``OPERATOR``   its results are not what its own arguments make
    ``OPERATION``  the two sides compute something different, each rightly
    ``UNDECIDED``  the dumps do not tell
    """

    RIGHT = "right"
    INPUT = "input"
    GOLDEN = "golden"
    SETTING = "setting"
    PARAMETER = "parameter"
    EXCHANGED = "exchanged"
    OPERATOR = "operator"
    OPERATION = "operation"
    UNDECIDED = "undecided"

    __str__ = str.__str__

    @property
    def is_right(self) -> bool:
        return self in (Finding.RIGHT, Finding.INPUT, Finding.GOLDEN)


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found of one call.

    ``target``, ``golden``  forward entries; ``golden`` is None where one dump alone was asked about
    ``sentence``            which side is wrong, and by what
    ``notes``               what else is to be known, a sentence each
    """

    target: str
    golden: str | None
    finding: Finding
    sentence: str
    trials: Sequence[Trial] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def with_notes(self, *notes: str) -> Proof:
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    def to_json(self) -> dict[str, Any]:
        """Return plain values that every JSON library writes."""
        content = asdict(self)
        for trial in content["trials"]:
            trial.update({key: _plain(trial[key]) for key in ("ulp", "excess")})
        return {**content, "finding": str(self.finding), "target_is_right": _answer(self.finding)}


def _answer(finding: Finding) -> bool | None:
    return None if finding is Finding.UNDECIDED else finding.is_right


def _plain(value: float | None) -> float | str | None:
    if value is None or value - value == 0:  # no infinity, no NaN
        return value
    return str(value)
