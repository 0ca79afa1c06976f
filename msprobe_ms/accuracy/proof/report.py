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

_AGREES = {True: "agrees:", False: "does not agree:", None: "not run:"}
#: Characters of a note in the table.
_LONGEST = 160


def proof_lines(proof: Proof) -> Iterator[str]:
    """Yield the sentence, the call, and a line for each experiment."""
    yield f"{heading(proof)}: {proof.sentence}"
    yield f"  {proof.target}"
    if proof.golden is not None and proof.golden != proof.target:
        yield f"    golden: {proof.golden}"
    for note in proof.notes:
        yield f"  {note}"
    if proof.trials:
        yield f"{'agrees':<8}{'error, ULP':>12}{'of allowed':>12}  what was run"
    for trial in proof.trials:
        yield f"{_word(trial):<8}{_figure(trial.ulp):>12}{_figure(trial.excess):>12}  {trial.what}{_note(trial)}"


def heading(proof: Proof) -> str:
    """Return what the proof says of the target: RIGHT, WRONG or UNDECIDED."""
    return "UNDECIDED" if proof.finding is Finding.UNDECIDED else "RIGHT" if proof.finding.is_right else "WRONG"


def _word(trial: Trial) -> str:
    return "-" if trial.agrees is None else "yes" if trial.agrees else "no"


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if math.isinf(value) else f"{value:.3g}"


def _note(trial: Trial) -> str:
    note = trial.note if len(trial.note) <= _LONGEST else trial.note[: _LONGEST - 1] + "…"
    return f": {note}" if note and (trial.agrees is not False or trial.ulp is None) else ""


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
        yield f"proof: {write_proof(proof, folder, about)}"
    if report is None:
        return
    page = report.with_name(report.name.replace(SUMMARY, "compare_report", 1)).with_suffix(".html")
    try:
        if folder is None:
            yield f"proof: {write_proof(proof, report.parent, about)}"
        if not page.exists():
            return
        if add_proof(page, _telling(proof, question)):
            yield f"shown in: {page}"
        else:
            logger.warning("%s: is no page that shows proofs, or too large for it; it stays as it is", page)
    except (OSError, UsageError) as error:  # a report may lie where nobody may write
        logger.warning("%s", error)


def _telling(proof: Proof, question: Question) -> TellingProof:
    """The proof in the words of a page."""
    experiments = [f"{_AGREES[trial.agrees]} {trial.what}{_sizes(trial)}{_note(trial)}" for trial in proof.trials]
    return TellingProof(
        calls=list(dict.fromkeys([question.entry, proof.target])),
        answer=heading(proof).lower(),
        sentence=proof.sentence,
        details=[*proof.notes, *experiments],
    )


def _sizes(trial: Trial) -> str:
    if trial.ulp is None:
        return ""
    return f" ({_figure(trial.ulp)} ULP off, {_figure(trial.excess)} times what is allowed)"
