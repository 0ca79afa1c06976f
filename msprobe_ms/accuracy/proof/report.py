"""A proof as text, the sentence first, and as a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from msprobe_ms.accuracy.proof.trial import Trial
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.comparison.reporting.files import claimed_timestamp, writing

_HEADINGS = {True: "RIGHT", False: "WRONG", None: "UNDECIDED"}
#: Characters of a note in the table.
_LONGEST = 160


def proof_lines(proof: Proof) -> Iterator[str]:
    """Yield the sentence, the call, and a line for each experiment."""
    answer = None if proof.finding is Finding.UNDECIDED else proof.finding.is_right
    yield f"{_HEADINGS[answer]}: {proof.sentence}"
    yield f"  {proof.target}"
    if proof.golden is not None and proof.golden != proof.target:
        yield f"    golden: {proof.golden}"
    for note in proof.notes:
        yield f"  {note}"
    if proof.trials:
        yield f"{'agrees':<8}{'error, ULP':>12}{'of allowed':>12}  what was run"
    for trial in proof.trials:
        yield f"{_word(trial):<8}{_figure(trial.ulp):>12}{_figure(trial.excess):>12}  {trial.what}{_note(trial)}"


def _word(trial: Trial) -> str:
    return "-" if trial.agrees is None else "yes" if trial.agrees else "no"


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if math.isinf(value) else f"{value:.3g}"


def _note(trial: Trial) -> str:
    note = trial.note if len(trial.note) <= _LONGEST else trial.note[: _LONGEST - 1] + "…"
    return f": {note}" if note and (trial.agrees is not False or trial.ulp is None) else ""


def write_proof(proof: Proof, folder: Path) -> Path:
    """Write ``proof_{YYYYmmddHHMMSS}.json``, never over another.

    :raises UsageError: the folder cannot be written
    """
    with claimed_timestamp(folder, "proof_") as timestamp, writing(path := folder / f"proof_{timestamp}.json") as file:
        text = json.dumps(proof.to_json(), indent=1, ensure_ascii=True, allow_nan=False)
        file.write((text + "\n").encode("ascii"))
    return path
