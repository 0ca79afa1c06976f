"""What a proof comes to, as JSON."""

from __future__ import annotations

import json
import math

from msprobe_ms.accuracy.proof.trial import Trial
from msprobe_ms.accuracy.proof.verdict import Finding, Proof


def test_a_proof_is_plain_json_whatever_its_figures_are() -> None:
    trials = [Trial("run", False, math.inf, math.nan), Trial("run", True, 0.5, 0.1)]
    proof = Proof("a", None, Finding.SETTING, "so", trials).with_notes("", "more")
    written = json.loads(json.dumps(proof.to_json(), allow_nan=False))
    assert [trial["ulp"] for trial in written["trials"]] == ["inf", 0.5]
    assert (written["finding"], written["target_is_right"], written["notes"]) == ("setting", False, ["more"])
    assert Proof("a", None, Finding.UNDECIDED, "").to_json()["target_is_right"] is None


def test_which_findings_say_that_the_target_is_right() -> None:
    assert {each for each in Finding if each.is_right} == {Finding.RIGHT, Finding.INPUT, Finding.GOLDEN}
