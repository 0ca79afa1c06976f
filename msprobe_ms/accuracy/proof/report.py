"""A proof as text, the sentence first; as a file; and in the page of the report that was asked about."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from msprobe_ms.accuracy.proof.question import SUMMARY, Question
from msprobe_ms.accuracy.proof.trial import Trial
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.comparison.page.proofs import TellingProof, add_proof
from msprobe_ms.comparison.reporting.files import claimed_timestamp, writing
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, translated

_HEADINGS = {
    "RIGHT": tr("RIGHT"),
    "WRONG": tr("WRONG"),
    "NOT HERE": tr("NOT HERE"),
    "UNDECIDED": tr("UNDECIDED"),
}
_NOT_HERE_OR_UNDECIDED = {Finding.INPUT: "NOT HERE", Finding.UNDECIDED: "UNDECIDED"}
_AGREES = {True: tr("agrees:"), False: tr("does not agree:"), None: tr("no result:")}
_EXPLAINS = {True: tr("explains:"), False: tr("does not explain:"), None: tr("no result:")}
#: Characters of a note in the table.
_LONGEST = 160


def proof_lines(proof: Proof) -> Iterator[str]:
    """Yield the sentence, the call, and a line for each experiment."""
    yield tr("{heading}: {sentence}", heading=_HEADINGS[heading(proof)], sentence=proof.sentence)
    yield f"  {proof.target}"
    if proof.golden is not None and proof.golden != proof.target:
        yield tr("    golden: {entry}", entry=proof.golden)
    for note in proof.notes:
        yield tr("  {note}", note=note)
    if proof.trials:
        yield tr("result    error, ULP  error/allowed  what was run")
    for trial in proof.trials:
        yield tr(
            "{agrees:<8}{ulp:>12}{excess:>15}  {experiment}",
            agrees=_word(trial),
            ulp=_figure(trial.ulp),
            excess=_figure(trial.excess),
            experiment=_with_note(trial, trial.what),
        )


def heading(proof: Proof) -> str:
    """Return what the proof says of the target: RIGHT, WRONG, UNDECIDED, or NOT HERE where the error came in."""
    if proof.finding in _NOT_HERE_OR_UNDECIDED:
        return _NOT_HERE_OR_UNDECIDED[proof.finding]
    return "RIGHT" if proof.finding.is_right else "WRONG"


def _word(trial: Trial) -> str:
    if trial.agrees is None:
        return "-"
    if trial.explains:
        return tr("explains") if trial.agrees else tr("does not")
    return tr("agrees") if trial.agrees else tr("differs")


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if math.isinf(value) else f"{value:.3g}"


def _with_note(trial: Trial, told: str) -> str:
    """What is told of an experiment, with its note where the figures do not say as much."""
    if not trial.note or (trial.agrees is False and trial.ulp is not None):
        return told
    note = trial.note if len(trial.note) <= _LONGEST else translated(trial.note)[: _LONGEST - 1] + "…"
    return tr("{experiment}: {note}", experiment=told, note=note)


def write_proof(proof: Proof, folder: Path, about: Mapping[str, str] | None = None) -> Path:
    """Write ``proof_{YYYYmmddHHMMSS}.json``, never over another; ``about``: what else it is to hold.

    :raises UsageError: the folder cannot be written
    """
    with claimed_timestamp(folder, "proof_") as timestamp, writing(path := folder / f"proof_{timestamp}.json") as file:
        text = json.dumps({**(about or {}), **proof.to_json()}, indent=1, ensure_ascii=True, allow_nan=False)
        file.write((text + "\n").encode("ascii"))
    return path


def keep(proof: Proof, question: Question, folder: Path | None) -> Iterator[str]:
    """Write a proof into ``folder``, or beside the report that was asked about, and show it in that report's page.

    Yields what was written, a line each.

    :raises UsageError: ``folder`` cannot be written
    """
    report = question.report
    about = {"asked": question.entry, **({} if report is None else {"report": report.name})}
    if folder is not None:
        yield tr("proof: {path}", path=write_proof(proof, folder, about))
    if report is None:
        return
    page = report.with_name(report.name.replace(SUMMARY, "compare_report", 1)).with_suffix(".html")
    try:
        if folder is None:
            yield tr("proof: {path}", path=write_proof(proof, report.parent, about))
        if not page.exists():
            return
        if add_proof(page, _telling(proof, question)):
            yield tr("shown in: {page}", page=page)
        else:
            logger.warning(
                tr("{page}: is no page that shows proofs, or too large for it; it stays as it is", page=page)
            )
    except (OSError, UsageError) as error:  # a report may lie where nobody may write
        logger.warning("%s", error)


def _telling(proof: Proof, question: Question) -> TellingProof:
    """The proof in the words of a page."""
    experiments = [
        tr(
            "{agrees} {experiment}",
            agrees=(_EXPLAINS if trial.explains else _AGREES)[trial.agrees],
            experiment=_with_note(trial, tr("{what}{sizes}", what=trial.what, sizes=_sizes(trial))),
        )
        for trial in proof.trials
    ]
    return TellingProof(
        calls=list(dict.fromkeys([question.entry, proof.target])),
        answer=heading(proof).lower(),
        sentence=translated(proof.sentence),
        details=[*map(translated, proof.notes), *map(translated, experiments)],
    )


def _sizes(trial: Trial) -> str:
    if trial.ulp is None:
        return ""
    return tr(" ({ulp} ULP off, {excess} times what is allowed)", ulp=_figure(trial.ulp), excess=_figure(trial.excess))
