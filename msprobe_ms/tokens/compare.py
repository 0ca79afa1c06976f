"""Compare two inferences token by token, and say at which token they part and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.dtypes import coarser
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.translation import tr
from msprobe_ms.tokens.measure import TokenFigures, last_position, measure
from msprobe_ms.tokens.sources import Logits, Place, find_logits


class Judgement(Enum):
    """What is said of a token."""

    PASS = "pass"
    APART = "logits apart"
    TIE = "tie"
    ERROR = "error"
    AFTER = "after divergence"
    NONE = "not compared"


@dataclass(slots=True)
class TokenRow:
    """One token of one sequence; ``figures`` is None where it could not be compared, which ``note`` says."""

    place: Place
    sequence: int
    target: Path | None
    golden: Path | None
    figures: TokenFigures | None = None
    judgement: Judgement = Judgement.NONE
    note: str = ""


@dataclass(slots=True)
class TokenComparison:
    """``rows`` in the order of keys, tokens and sequences. ``forced``: both were fed the same tokens throughout."""

    target: Path
    golden: Path
    rows: list[TokenRow] = field(default_factory=list)
    forced: bool = False

    @property
    def first(self) -> TokenRow | None:
        """The first token that is an error, else whose logits are apart; None where there is none."""
        for judgement in (Judgement.ERROR, Judgement.APART):
            found = [row for row in self.rows if row.judgement is judgement]
            if found:
                return min(found, key=lambda row: (row.place.token, row.place.key, row.sequence))
        return None


def compare_tokens(
    target: Path, golden: Path, name: str | None = None, progress: Callable[[int, int], object] | None = None
) -> TokenComparison:
    """Compare the logits of two inferences with greedy decoding. ``name``: the module that gives them.

    ``progress`` is called with the number of tokens done and of all.

    :raises UsageError: one holds no logits
    """
    ours, theirs = find_logits(target, name), find_logits(golden, name)
    comparison = TokenComparison(target, golden, forced=_are_forced(ours, theirs))
    #: Sequences of which a token differs, so that they go on with other texts.
    parted = set[tuple[str, int]]()
    places = sorted({*ours, *theirs})
    for done, place in enumerate(places, 1):
        for row in _rows(place, ours.get(place), theirs.get(place)):
            comparison.rows.append(row)
            sequence = (place.key, row.sequence)
            if row.figures is None:
                continue
            if sequence in parted:
                row.judgement = Judgement.AFTER
                continue
            row.judgement = _judged(row.figures)
            if not row.figures.equal and not comparison.forced:
                parted.add(sequence)
        if progress is not None:
            progress(done, len(places))
    return comparison


def _are_forced(ours: dict[Place, Logits], theirs: dict[Place, Logits]) -> bool:
    """Whether both were fed the same, call by call, as far as that was recorded."""
    common = [place for place in ours if place in theirs]
    return len(common) > 1 and all(ours[each].fed and ours[each].fed == theirs[each].fed for each in common)


def _rows(place: Place, target: Logits | None, golden: Logits | None) -> Iterator[TokenRow]:
    if target is None or golden is None:
        side = tr("golden") if target is None else tr("target")
        ours_at, theirs_at = (None if each is None else each.path for each in (target, golden))
        yield TokenRow(place, 0, ours_at, theirs_at, note=tr("only in the {side}", side=side))
        return
    try:
        (one, our_dtype), (other, their_dtype) = target.load(), golden.load()
        epsilon = coarser(our_dtype, their_dtype).epsilon
        ours, theirs = last_position(one), last_position(other)
        if ours.shape != theirs.shape:
            raise ValueError(
                tr("shapes {shape} and {other_shape} differ", shape=list(ours.shape), other_shape=list(theirs.shape))
            )
    except (MsprobeError, ValueError, OSError) as error:
        yield TokenRow(place, 0, target.path, golden.path, note=tr("{error}", error=error))
        return
    for sequence, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
        figures = measure(mine, yours, epsilon or float(np.finfo(np.float32).eps))
        yield TokenRow(place, sequence, target.path, golden.path, figures, note=figures.reason)


def _judged(figures: TokenFigures) -> Judgement:
    if figures.reason:
        return Judgement.PASS if figures.passed else Judgement.ERROR
    if figures.equal:
        return Judgement.PASS if figures.passed else Judgement.APART
    # Where the logits agree otherwise, what turned over was no more than a tie.
    return Judgement.TIE if figures.passed or figures.gap <= figures.noise else Judgement.ERROR
