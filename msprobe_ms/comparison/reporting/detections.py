"""Detect faults in a judged comparison, cause before consequence, and say what to do about each.

The detections are those of the expert system of Huawei's accuracy analyzer (fp16 overflow, inconsistent input, and the
consistency of the whole network: problem nodes, single-point errors, all well), over the origins found here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Comparison, Origin, OriginKind, Pair, Row
from msprobe_ms.comparison.reporting.advice_texts import (
    ADVICE_BY_KIND,
    BETWEEN_ADVICE,
    INPUT_ADVICE,
    NON_FINITE_ADVICE,
    OVERFLOW_ADVICE,
    PARAMETER_ADVICE,
    PERHAPS,
    operation_advice,
    random_advice,
)
from msprobe_ms.comparison.reporting.files import compared_count
from msprobe_ms.comparison.reporting.mapping_advice import mapping_advice
from msprobe_ms.comparison.reporting.reasons import why_beyond
from msprobe_ms.comparison.row_items import Mask
from msprobe_ms.comparison.terms import TARGET, Verdict
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, beginnings, parse_entry
from msprobe_ms.support.translation import tr, tr_count, tr_join, tr_sentence

FP16_OVERFLOW = tr("fp16 overflow")
NON_FINITE = tr("NaN or infinity")
INCONSISTENT_INPUT = tr("inconsistent input")
PROBLEM_NODE = tr("problem node")
SINGLE_POINT = tr("single-point error")
CONSISTENCY = tr("whole-network consistency")

#: Origins that get advice of their own; mend the first, then compare again.
_TOLD = 3


class Finding(NamedTuple):
    """A detection; ``row`` is the suspect's line in the spreadsheet (titles are row 1), None where it has none."""

    detection: str
    row: int | None
    suspect: str
    advice: str


@dataclass
class _Survey:
    """What one pass over the table finds; rows are numbers of the spreadsheet."""

    #: The first value that is not finite where the golden's is, and how many there are: in float16, in other dtypes.
    half: tuple[int, str] | None = None
    halves: int = 0
    odd: tuple[int, str] | None = None
    odds: int = 0
    #: The first value beyond its tolerance, and how many there are.
    differing: tuple[int, str] | None = None
    differings: int = 0
    compared: int = 0
    withdrawn: int = 0
    #: Rows of the origins, and whether an output before each agreed.
    rows: dict[str, int] = field(default_factory=dict)
    after_agreement: dict[str, bool] = field(default_factory=dict)
    #: The last output of several elements that a forward call gave out, and whether any of that call's differ: a loss,
    #: one number, hides what its input shows.
    last: str = ""
    last_differs: bool = False
    gradients_differ: bool = False
    #: The entries that enclose the origins.
    enclosing: dict[str, str] = field(default_factory=dict)


def detect(comparison: Comparison) -> Iterator[Finding]:
    """Yield all detections in a judged comparison; the last is always about the network as a whole."""
    survey = _survey(comparison)
    if survey.half:
        yield Finding(FP16_OVERFLOW, *survey.half, _first_of(survey.halves) + OVERFLOW_ADVICE)
    if survey.odd:
        yield Finding(NON_FINITE, *survey.odd, _first_of(survey.odds) + NON_FINITE_ADVICE)
    for place, origin in enumerate(comparison.origins[:_TOLD]):
        found = _of_origin(origin, survey)
        perhaps = PERHAPS if place and origin.kind in (OriginKind.COMPUTATION, OriginKind.OUTSIDE) else ""
        yield found._replace(advice=tr("{perhaps}{advice}", perhaps=perhaps, advice=found.advice))
    if survey.differing and survey.last and not survey.last_differs and not survey.gradients_differ:
        yield Finding(SINGLE_POINT, *survey.differing, _single_point(survey))
    yield _whole(comparison, survey)


def _survey(comparison: Comparison) -> _Survey:
    survey = _Survey()
    (target, golden), deviations, rows = comparison.sides, comparison.deviations, comparison.rows
    numbers = 1 + np.cumsum(target.present)  # of the lines in the table
    for place in np.flatnonzero(target.present & target.non_finite & ~golden.non_finite).tolist():
        _note_odd(survey, int(numbers[place]), rows[place])
    differing = np.flatnonzero(target.present & deviations.differs)
    survey.differings = len(differing)
    for place in differing[:1].tolist():
        survey.differing = int(numbers[place]), _name(rows[place])
    compared = target.present & deviations.known
    survey.compared = int(np.count_nonzero(compared))
    survey.withdrawn = int(np.count_nonzero(compared & deviations.misrecorded))
    directions, sizes = list(map(_direction, comparison.pairs)), [len(pair.rows) for pair in comparison.pairs]
    gradients = np.repeat([each in (BACKWARD, PARAMETERS_GRAD) for each in directions], sizes)
    survey.gradients_differ = bool((compared & gradients & deviations.differs).any())
    given = compared & np.repeat([each == FORWARD for each in directions], sizes)
    given &= np.array([row.state == "output" for row in rows], np.bool_)
    agreeing = np.flatnonzero(given & ~deviations.differs)
    _note_origins(survey, comparison, numbers, int(agreeing[0]) if len(agreeing) else len(rows))
    _note_last(survey, comparison, given)
    return survey


def _note_origins(survey: _Survey, comparison: Comparison, numbers: npt.NDArray[np.intp], agreed: int) -> None:
    """Fill what there is to say of the origins; ``agreed``: the place of the first output that agrees."""
    origins = {origin.target for origin in comparison.origins[:_TOLD]}
    entries = {beginning for name in origins for beginning in beginnings(name)}
    begin = 0
    for pair in comparison.pairs:
        if pair.target is not None and pair.target.name in entries:
            for place, row in enumerate(pair.rows, begin):
                if row.in_target and (name := _name(row)) in origins:
                    survey.rows[name], survey.after_agreement[name] = int(numbers[place]), agreed < place
                    survey.enclosing[name] = pair.target.parent or ""
        begin += len(pair.rows)


def _note_last(survey: _Survey, comparison: Comparison, given: Mask) -> None:
    """Fill what there is to say of the last of the outputs that were given."""
    several = (place for place in np.flatnonzero(given)[::-1].tolist() if _has_elements(comparison.rows[place]))
    if (last := next(several, None)) is None:
        return
    survey.last = _name(comparison.rows[last])
    starts = np.cumsum([0, *(len(pair.rows) for pair in comparison.pairs)])
    begin = starts[np.searchsorted(starts, last, "right") - 1]
    of_call = takewhile(lambda place: place >= begin, several)
    survey.last_differs = bool(comparison.deviations.differs[[last, *of_call]].any())


def _note_odd(survey: _Survey, number: int, row: Row) -> None:
    target = row.target
    if target is not None and parse_dtype(target.dtype).name == "float16":
        survey.half, survey.halves = survey.half or (number, target.name), survey.halves + 1
    elif target is not None:
        survey.odd, survey.odds = survey.odd or (number, target.name), survey.odds + 1


def _name(row: Row) -> str:
    return row.target.name if row.target is not None else ""


def _has_elements(row: Row) -> bool:
    """Whether the target's tensor has several elements."""
    stored = row.stored(TARGET)
    shape = stored[0].sort(stored[1])[3] if stored else row.target.shape if row.target else None
    return isinstance(shape, tuple) and math.prod(shape) > 1


def _direction(pair: Pair) -> str:
    parsed = pair.target.parsed if pair.target else None
    return parsed.direction if parsed else ""


def _first_of(count: int) -> str:
    return tr("The first of {count} values. ", count=count) if count > 1 else ""


def _of_origin(origin: Origin, survey: _Survey) -> Finding:
    number = survey.rows.get(origin.target)
    if origin.kind in ADVICE_BY_KIND:
        return Finding(
            PROBLEM_NODE,
            number,
            origin.target,
            tr("{told} {advice_by_kind}", told=_told(origin), advice_by_kind=ADVICE_BY_KIND[origin.kind]),
        )
    if origin.state == "parameters":
        return Finding(
            INCONSISTENT_INPUT,
            number,
            origin.target,
            tr("{told} {parameter_advice}", told=_told(origin), parameter_advice=PARAMETER_ADVICE),
        )
    if origin.state == "input":
        advice = BETWEEN_ADVICE if survey.after_agreement.get(origin.target) else INPUT_ADVICE
        return Finding(
            INCONSISTENT_INPUT, number, origin.target, tr("{told} {advice}", told=_told(origin), advice=advice)
        )
    return Finding(
        PROBLEM_NODE,
        number,
        origin.target,
        tr("{told} {by_operation}", told=_told(origin), by_operation=_by_operation(origin, survey)),
    )


def _told(origin: Origin) -> str:
    """Its reason and its details, each as a sentence."""
    return tr_join(" ", map(tr_sentence, (origin.reason, *origin.details)))


def _by_operation(origin: Origin, survey: _Survey) -> str:
    """What usually differs in an operation of this name, else in the module that calls it."""
    for entry in (_entry_name(origin.target), survey.enclosing.get(origin.target, "")):
        parsed = parse_entry(entry) if entry else None
        if parsed is not None and parsed.direction in (BACKWARD, PARAMETERS_GRAD):
            return GRADIENT_ADVICE
        if parsed is not None and (advice := operation_advice(parsed.class_name or parsed.name)):
            return advice
    return GENERAL_ADVICE


def _entry_name(item: str) -> str:
    """The entry an item belongs to: the longest beginning of its name that is an entry's."""
    name = item
    while name and parse_entry(name) is None:
        name = name.rpartition(".")[0]
    return name


def _single_point(survey: _Survey) -> str:
    return tr(
        "{counted}, yet the last output recorded, {last}, agrees: the error does not reach the end "
        "of the forward pass, and no gradient differs. Look whether this value is used at all, or "
        "stored in another layout there. It can be left as it is where results are good.",
        counted=_counted(survey.differings),
        last=survey.last,
    )


def _whole(comparison: Comparison, survey: _Survey) -> Finding:
    alone = sum(comparison.alone)
    alone_told = tr_count(
        "1 value has no counterpart and was", "{count} values have no counterpart and were", count=alone
    )
    without = tr(" {alone_told} not compared.", alone_told=alone_told) if alone else ""
    if comparison.random:
        without += random_advice(comparison.random[0].target)
    if survey.differing:
        if comparison.origins or comparison.verdict == Verdict.DIVERGENT:
            return Finding(CONSISTENCY, *survey.differing, _differing(comparison, survey, without))
        return Finding(CONSISTENCY, None, "NA", _explained(comparison, survey, without))  # and so not suspected
    if comparison.origins:  # a gradient that one side has not
        return Finding(
            CONSISTENCY,
            None,
            "NA",
            tr("All {compared} values compared agree; see the origins above.", compared=survey.compared),
        )
    to_pair = mapping_advice(comparison)
    if not survey.compared:
        pairing = tr_sentence(to_pair) if to_pair else tr("See docs/mapping.md to pair them.")
        told = tr("Nothing was compared.{without} {pairing}", without=without, pairing=pairing)
        return Finding(CONSISTENCY, None, "NA", told)
    advice = (
        tr_sentence(to_pair)
        if to_pair
        else tr(
            "If the results still differ, look at what this step does not show: the optimizer and later "
            "steps, the order of the data, other ranks, and what comes after the network."
        )
    )
    blank = len(comparison.rows) - alone - survey.compared
    figures = tr(" that have figures ({blank} more have none on either side)", blank=blank) if blank > 0 else ""
    agree = tr_count(
        "The 1 value compared{figures} agrees within its tolerance.",
        "All {count} values compared{figures} agree within their tolerances.",
        count=survey.compared - survey.withdrawn,
        figures=figures,
    )
    if survey.withdrawn:
        agree = tr("{agree} {counted} and not judged.", agree=agree, counted=_counted(survey.withdrawn))
    return Finding(
        CONSISTENCY, None, "NA", tr("{agree}{without} {advice}", agree=agree, without=without, advice=advice)
    )


def _differing(comparison: Comparison, survey: _Survey, without: str) -> str:
    """What to do where errors are left."""
    advice = (
        tr("Fix the first origin above and compare again: most other errors come from it.")
        if comparison.origins
        else tr(
            "No node is the origin of an error: the column Explained By says why each differs (none: slow drift). "
            "First compare the first step from one checkpoint, in one precision."
        )
    )
    many = tr(
        "{counted}, of {compared} compared; the first is {first}.",
        counted=_counted(survey.differings),
        compared=compared_count(comparison),
        first=survey.differing[1] if survey.differing else "",
    )
    return tr("{many}{without} {advice}", many=many, without=without, advice=advice)


def _explained(comparison: Comparison, survey: _Survey, without: str) -> str:
    """Why values are beyond their tolerances in a comparison that finds no error, and what to do in spite of that."""
    many = tr(
        "{why}. No origin of an error was found among the {compared} values compared; the column Explained By says the "
        "reason of each (none: slow drift).",
        why=why_beyond(comparison.rows),
        compared=compared_count(comparison),
    )
    advice = tr("If the results still differ, first compare the first step from one checkpoint, in one precision.")
    return tr("{many}{without} {advice}", many=many, without=without, advice=advice)


def _counted(count: int) -> str:
    return tr_count("1 value is beyond its tolerance", "{count} values are beyond their tolerances", count=count)


GRADIENT_ADVICE = tr(
    "Its forward call agrees, so look at backward: a backward of one's own (bprop, "
    "autograd.Function), what is detached or frozen, accumulation, clipping and the loss scale."
)
GENERAL_ADVICE = tr(
    "Compare the arguments and attributes of this call in both scripts, then run it alone on its "
    "dumped inputs (task tensor)."
)
